// SPDX-License-Identifier: GPL-3.0-or-later
// Puts a file together byte by byte, so that tests can make every kind of wrong one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <type_traits>

namespace sluice {

class ByteBuilder {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  ByteBuilder& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  ByteBuilder& text(const std::string& s) { bytes_ += s; return *this; }
  ByteBuilder& string(const std::string& s) { return put(std::uint64_t{s.size()}).text(s); }
  ByteBuilder& zeros(std::size_t n) { bytes_.append(n, '\0'); return *this; }
  ByteBuilder& align(std::size_t n) { return zeros((n - bytes_.size() % n) % n); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A file in the test's folder, named after the test and removed at the end.
class TempFile {
 public:
  explicit TempFile(const std::string& contents = "") : TempFile(contents, "") {}
  TempFile(const std::string& contents, const std::string& suffix) {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "sluice_" + info->test_suite_name() + "_" + info->name() + suffix;
    for (char& c : path_) {
      if (c == ' ') c = '_';
    }
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sluice

// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/dequant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/blocks.h"
#include "model/kernels/finite.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

struct GoldenRow {
  BlockType type;
  std::vector<std::byte> blocks;
  std::vector<float> values;
};

// tests/data/golden/dequant.bin, made by tests/oracle/make_dequant_golden.py.
std::vector<GoldenRow> read_golden() {
  std::ifstream file(std::string(SLUICE_TEST_DATA) + "/golden/dequant.bin", std::ios::binary);
  std::vector<GoldenRow> rows;
  std::uint32_t head[3];
  while (file.read(reinterpret_cast<char*>(head), sizeof head)) {
    GoldenRow row{static_cast<BlockType>(head[0]), std::vector<std::byte>(head[2]), std::vector<float>(head[1])};
    file.read(reinterpret_cast<char*>(row.blocks.data()), head[2]);
    file.read(reinterpret_cast<char*>(row.values.data()), 4 * static_cast<std::streamsize>(head[1]));
    rows.push_back(std::move(row));
  }
  return rows;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

TEST(Dequant, EqualsTheGgufPackageBitForBit) {
  const auto rows = read_golden();
  ASSERT_EQ(rows.size(), std::size(kAllTypes));
  for (const GoldenRow& row : rows) {
    SCOPED_TRACE(block_type_name(row.type));
    const auto n = static_cast<std::int64_t>(row.values.size());
    std::vector<float> out(row.values.size());
    reference::dequantize_row(row.type, row.blocks.data(), n, out.data());
    EXPECT_TRUE(same_bits(out, row.values)) << "reference";
    on_every_target([&] {
      std::fill(out.begin(), out.end(), NAN);
      dequantize_row(row.type, row.blocks.data(), n, out.data());
      EXPECT_TRUE(same_bits(out, row.values));
    });
  }
}

TEST(Dequant, PanelIsTheRowsAskedFor) {
  for (const GoldenRow& row : read_golden()) {
    SCOPED_TRACE(block_type_name(row.type));
    const std::int64_t cols = 256;  // four rows
    std::vector<float> out(2 * cols, NAN);
    dequant_panel(row.type, row.blocks.data(), cols, 1, 3, out.data());
    EXPECT_TRUE(same_bits(out, {row.values.begin() + cols, row.values.begin() + 3 * cols}));
  }
}

TEST(Dequant, PlainTypesOfAnyLengthAndAddress) {
  std::vector<std::byte> bytes(2 * 40 + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i & 0x3b);  // finite halves
  for (const BlockType type : {BlockType::kF16, BlockType::kBF16}) {
    for (std::int64_t n = 0; n <= 40; ++n) {
      std::vector<float> expected(n), out(n);
      reference::dequantize_row(type, bytes.data() + 1, n, expected.data());
      on_every_target([&] {
        dequantize_row(type, bytes.data() + 1, n, out.data());
        EXPECT_TRUE(same_bits(out, expected)) << block_type_name(type) << " " << n;
      });
    }
  }
}

// Each scale and minimum of the last block, and nothing else, makes a matrix not finite.
TEST(Dequant, AllFiniteLooksAtEveryScale) {
  for (const GoldenRow& row : read_golden()) {
    SCOPED_TRACE(block_type_name(row.type));
    const auto n = static_cast<std::int64_t>(row.values.size());
    EXPECT_TRUE(all_finite(row.type, row.blocks.data(), n));
    EXPECT_TRUE(all_finite(row.type, row.blocks.data(), 0));
    const std::size_t size = static_cast<std::size_t>(block_bytes(row.type)), last = row.blocks.size() - size;
    for (std::size_t at = 0; at + 2 <= size; at += 2) {
      auto blocks = row.blocks;  // as a half: NaN or infinity, both signs
      const std::uint16_t bits = row.type == BlockType::kBF16 || row.type == BlockType::kF32 ? 0xff80 : at % 4 == 0 ? 0x7c01 : 0xfc00;
      std::memcpy(blocks.data() + last + at, &bits, 2);
      std::vector<float> out(row.values.size());
      reference::dequantize_row(row.type, blocks.data(), n, out.data());
      const bool finite = std::all_of(out.begin(), out.end(), [](float v) { return std::isfinite(v); });
      EXPECT_EQ(all_finite(row.type, blocks.data(), n), finite) << "byte " << at;
    }
  }
}

// Every half: sign, subnormals, infinity and NaN.
TEST(Dequant, AllHalves) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0xc000), -2.0f);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(half_to_float(0x03ff), 1023 * 0x1p-24f);
  EXPECT_EQ(half_to_float(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(half_to_float(0x7e00)));
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  std::vector<float> expected(halves.size()), out(halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) expected[i] = half_to_float(halves[i]);
  on_every_target([&] {
    dequantize_row(BlockType::kF16, reinterpret_cast<const std::byte*>(halves.data()), 65536, out.data());
    EXPECT_TRUE(same_bits(out, expected));
  });
}

}  // namespace
}  // namespace sluice

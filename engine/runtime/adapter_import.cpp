// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/adapter_import.h"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/durable_file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kWeights = "adapter_model.safetensors";
constexpr std::uintmax_t kMostBytes = std::uintmax_t{4} << 30;

Result<std::string> read_file(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || !fs::is_regular_file(path, error)) {
    return invalid_argument(path.string() + " is missing: an adapter is a folder with " + kConfig + " and " + kWeights);
  }
  if (size > kMostBytes) return invalid_argument(path.string() + " is larger than 4 GiB");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return invalid_argument(path.string() + " can't be read");
  }
  return bytes;
}

Status write_durably(const fs::path& path, const std::string& bytes) {
  const std::span<const std::byte> part = std::as_bytes(std::span(bytes));
  return write_and_sync(path.string(), std::span(&part, 1));
}

// An adapter under a temporary name in the workspace; the files go with it unless it was kept.
class Arrival {
 public:
  explicit Arrival(std::string target) : target_(std::move(target)), temporary_(target_ + ".arriving") {}
  ~Arrival() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  Arrival(Arrival&& other) noexcept
      : target_(std::move(other.target_)), temporary_(std::exchange(other.temporary_, {})) {}
  Arrival& operator=(Arrival&&) = delete;

  const std::string& temporary() const { return temporary_; }
  Status keep() {
    std::error_code error;
    fs::rename(temporary_, target_, error);
    if (error) return unavailable(target_ + " can't be made: " + error.message());
    temporary_ = target_;  // until its row is written
    return sync_directory(fs::path(target_).parent_path().string());
  }
  void settle() { temporary_.clear(); }

 private:
  const std::string target_;
  std::string temporary_;
};

struct Arrived {
  Arrival files;
  VersionRow row;
  NewCandidate told;
};

Result<Arrived> bring_in(Store& store, const AdapterLoader& loader, SessionId session, const AdapterImport& wanted) {
  SLUICE_ASSIGN_OR_RETURN(const std::string config, read_file(fs::path(wanted.path) / kConfig));
  SLUICE_ASSIGN_OR_RETURN(const std::string weights, read_file(fs::path(wanted.path) / kWeights));
  SLUICE_ASSIGN_OR_RETURN(const VersionId version, store.reserve_version());
  Arrival files(store.adapter_folder(version));
  std::error_code error;
  fs::create_directories(files.temporary(), error);
  if (error) return unavailable(files.temporary() + " can't be made: " + error.message());
  SLUICE_RETURN_IF_ERROR(write_durably(fs::path(files.temporary()) / kConfig, config));
  SLUICE_RETURN_IF_ERROR(write_durably(fs::path(files.temporary()) / kWeights, weights));
  SLUICE_RETURN_IF_ERROR(sync_directory(files.temporary()));
  const auto adapter = loader.load(files.temporary(), version);
  if (!adapter.ok()) return invalid_argument(wanted.path + ": " + adapter.status().message());
  VersionRow row;
  row.id = version;
  row.name = wanted.name;
  row.parent = kBaseVersion;
  row.session = session;
  row.origin = "import";
  row.label = wanted.note;
  row.content_hash = (*adapter)->content_hash();
  row.bytes = (*adapter)->bytes();
  row.rank = (*adapter)->rank();
  const nlohmann::json parsed = nlohmann::json::parse(config, nullptr, false);
  const auto modules = parsed.is_object() ? parsed.find("target_modules") : parsed.end();
  NewCandidate told{wanted.name, version, row.rank, row.bytes, ""};
  if (parsed.is_object() && modules != parsed.end()) told.modules_json = modules->dump();
  return Arrived{std::move(files), std::move(row), std::move(told)};
}

}  // namespace

Result<std::vector<NewCandidate>> import_adapters(Store& store, const AdapterLoader& loader, SessionId session,
                                                     const std::vector<AdapterImport>& wanted) {
  std::vector<Arrived> arrived;
  for (const AdapterImport& each : wanted) {
    SLUICE_ASSIGN_OR_RETURN(Arrived one, bring_in(store, loader, session, each));
    arrived.push_back(std::move(one));
  }
  std::vector<VersionRow> rows;
  for (Arrived& each : arrived) {
    SLUICE_RETURN_IF_ERROR(each.files.keep());
    rows.push_back(each.row);
  }
  SLUICE_RETURN_IF_ERROR(store.add_versions(rows));
  std::vector<NewCandidate> out;
  for (Arrived& each : arrived) {
    each.files.settle();
    out.push_back(std::move(each.told));
  }
  return out;
}

}  // namespace sluice

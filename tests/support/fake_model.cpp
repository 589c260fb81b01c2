// SPDX-License-Identifier: GPL-3.0-or-later
#include "support/fake_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <thread>

#include "base/sha256.h"

namespace sluice::testing {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuwxyz";  // all but v, which opens a mark
constexpr std::size_t kPrefixBlock = 16;
constexpr std::size_t kCachedPrefixes = 16;
constexpr int kFakeExactRows = 8;
constexpr const char* kAdapterFile = "fake_adapter.txt";

// A scheduler that breaks the model's contract ends the test program with a word on why.
void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "FakeModel: %s\n", what);
  std::abort();
}

std::uint64_t mix(std::uint64_t x) {  // finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash_start(VersionId version) { return mix(static_cast<std::uint64_t>(version.value) + 0x9e3779b97f4a7c15u); }
std::uint64_t hash_next(std::uint64_t hash, TokenId token) { return mix(hash * 31 + static_cast<std::uint64_t>(token) + 1); }

bool ends_with(const std::vector<TokenId>& tokens, std::string_view text) {
  if (tokens.size() < text.size()) return false;
  return std::equal(text.begin(), text.end(), tokens.end() - static_cast<std::ptrdiff_t>(text.size()),
                    [](char c, TokenId t) { return static_cast<unsigned char>(c) == t; });
}

bool is_letter(TokenId token) {
  return token >= 0 && token < 128 && kLetters.find(static_cast<char>(token)) != std::string_view::npos;
}

// The token that follows `tokens`; -1 where the letter is due, which the hash (and the seed) picks.
TokenId next_of_mark(VersionId version, const std::vector<TokenId>& tokens) {
  const std::string mark = "v" + std::to_string(version.value);
  for (std::size_t k = mark.size(); k >= 1; --k) {
    if (ends_with(tokens, std::string_view(mark).substr(0, k))) return k == mark.size() ? -1 : mark[k];
  }
  if (tokens.size() > mark.size() && is_letter(tokens.back())) {
    const std::vector<TokenId> before(tokens.end() - 1 - static_cast<std::ptrdiff_t>(mark.size()), tokens.end() - 1);
    if (ends_with(before, mark)) return ' ';
  }
  return 'v';
}

TokenId letter(std::uint64_t hash, float temperature, std::uint64_t seed, std::size_t draw) {
  if (temperature > 0) hash = mix(hash ^ mix(seed + 0x51ed270b * (draw + 1)));
  return kLetters[hash % kLetters.size()];
}

class FakeAdapter final : public Adapter {
 public:
  FakeAdapter(VersionId version, std::string hash, int rank, std::int64_t bytes, std::shared_ptr<std::atomic<int>> live)
      : version_(version), hash_(std::move(hash)), rank_(rank), bytes_(bytes), live_(std::move(live)) {
    ++*live_;
  }
  ~FakeAdapter() override { --*live_; }
  VersionId version() const override { return version_; }
  const std::string& content_hash() const override { return hash_; }
  int rank() const override { return rank_; }
  std::int64_t bytes() const override { return bytes_; }

 private:
  const VersionId version_;
  const std::string hash_;
  const int rank_;
  const std::int64_t bytes_;
  const std::shared_ptr<std::atomic<int>> live_;
};

class FakeLoader final : public AdapterLoader {
 public:
  FakeLoader(std::function<Status(VersionId)> on_load, std::shared_ptr<std::atomic<int>> live,
             std::shared_ptr<std::atomic<int>> loads)
      : on_load_(std::move(on_load)), live_(std::move(live)), loads_(std::move(loads)) {}

  Result<std::shared_ptr<const Adapter>> load(const std::string& folder, VersionId version) const override {
    ++*loads_;
    if (on_load_) SLUICE_RETURN_IF_ERROR(on_load_(version));
    const std::string path = (std::filesystem::path(folder) / kAdapterFile).string();
    std::ifstream file(path);
    if (!file) return not_found("no adapter file " + path);
    std::string magic;
    std::int64_t bytes = 0;
    int rank = 0;
    if (!(file >> magic >> bytes >> rank) || magic != "fake_adapter") return invalid_argument(path + " is no fake adapter");
    // Where a trainer wrote weights, too, those are what the version's row names.
    const std::string weights = (std::filesystem::path(folder) / "adapter_model.safetensors").string();
    SLUICE_ASSIGN_OR_RETURN(std::string hash, sha256_file(std::filesystem::exists(weights) ? weights : path));
    return std::shared_ptr<const Adapter>(std::make_shared<FakeAdapter>(version, std::move(hash), rank, bytes, live_));
  }

 private:
  const std::function<Status(VersionId)> on_load_;
  const std::shared_ptr<std::atomic<int>> live_;
  const std::shared_ptr<std::atomic<int>> loads_;
};

class FakeContext final : public ModelContext {
 public:
  FakeContext(const FakeModelOptions& model, const ContextOptions& options) : model_(model), options_(options) {}
  ~FakeContext() override { require(sequences_.empty(), "a context dies with open sequences"); }

  Result<OpenedSequence> open(std::shared_ptr<const Adapter> adapter, const std::vector<TokenId>& prompt,
                              OpenOptions options) override {
    check_thread();
    const int reserve_tokens = options.reserve_tokens;
    require(!prompt.empty(), "open() without a prompt");
    require(reserve_tokens >= static_cast<int>(prompt.size()), "open() reserves less than the prompt");
    if (used_ + reserve_tokens > options_.kv_tokens) return busy("the KV cache is full");
    Sequence s;
    s.version = adapter ? adapter->version() : kBaseVersion;
    s.adapter = std::move(adapter);
    s.prompt = prompt;
    s.reserved = reserve_tokens;
    s.exact = options.exact;
    s.epoch = epoch_;
    const std::size_t cached = longest_prefix(s, prompt);
    s.hash = hash_start(s.version);
    for (std::size_t i = 0; i < cached; ++i) s.feed(prompt[i]);
    used_ += reserve_tokens;
    const SequenceHandle handle{++last_handle_};
    sequences_.emplace(handle.value, std::move(s));
    return OpenedSequence{handle, static_cast<int>(cached)};
  }

  Status reserve(SequenceHandle handle, int tokens) override {
    check_thread();
    const auto it = sequences_.find(handle.value);
    require(it != sequences_.end(), "reserve() for a sequence that is not open");
    const int more = tokens - it->second.reserved;
    if (more <= 0) return {};
    if (used_ + more > options_.kv_tokens) return busy("the KV cache is full");
    it->second.reserved += more;
    used_ += more;
    return {};
  }

  using ModelContext::close;
  void close(SequenceHandle handle, bool keep_prefix) override {
    check_thread();
    const auto it = sequences_.find(handle.value);
    require(it != sequences_.end(), "close() of a sequence that is not open");
    used_ -= it->second.reserved;
    if (options_.prefix_cache && keep_prefix && it->second.epoch == epoch_) {
      prefixes_.push_front({it->second.version, it->second.exact, std::move(it->second.tokens)});
      if (prefixes_.size() > kCachedPrefixes) prefixes_.pop_back();
    }
    sequences_.erase(it);
  }

  using ModelContext::step;
  Status step(const StepInput& input, StepOutput& output) override {
    check_thread();
    require(!input.items.empty(), "step() without items");
    ++steps_;
    if (model_.on_step) SLUICE_RETURN_IF_ERROR(model_.on_step(describe(input)));
    output.results.clear();
    std::vector<std::int64_t> seen;
    for (const StepItem& item : input.items) {
      require(std::find(seen.begin(), seen.end(), item.sequence.value) == seen.end(), "a sequence stands twice in a step");
      seen.push_back(item.sequence.value);
      output.results.push_back(run(item));
    }
    return {};
  }

  int exact_rows() const override { return kFakeExactRows; }
  void limit_threads(int threads) override { options_.threads = threads; }
  void flush() override {
    check_thread();
    prefixes_.clear();
    ++epoch_;
  }
  KvUsage usage() const override { return {options_.kv_tokens, used_}; }

 private:
  struct Sequence {
    VersionId version;
    std::shared_ptr<const Adapter> adapter;
    std::vector<TokenId> prompt;
    std::vector<TokenId> tokens;  // fed so far
    std::uint64_t hash = 0;
    int reserved = 0;
    bool exact = false;
    std::int64_t epoch = 0;

    void feed(TokenId token) {
      tokens.push_back(token);
      hash = hash_next(hash, token);
    }
  };
  struct Prefix {
    VersionId version;
    bool exact = false;
    std::vector<TokenId> tokens;
  };

  void check_thread() {
    if (thread_ == std::thread::id()) thread_ = std::this_thread::get_id();
    require(thread_ == std::this_thread::get_id(), "two threads use one context");
  }

  // Of ended sequences and of open ones, as the real cache does.
  std::size_t longest_prefix(const Sequence& s, const std::vector<TokenId>& prompt) const {
    std::size_t best = 0;
    const auto compare = [&](const std::vector<TokenId>& tokens) {
      const auto end = std::mismatch(tokens.begin(), tokens.end(), prompt.begin(), prompt.end()).first;
      best = std::max(best, static_cast<std::size_t>(end - tokens.begin()));
    };
    if (!options_.prefix_cache) return 0;
    for (const Prefix& p : prefixes_) {
      if (p.version == s.version && p.exact == s.exact) compare(p.tokens);
    }
    for (const auto& [handle, other] : sequences_) {
      if (other.version == s.version && other.exact == s.exact && other.epoch == epoch_) compare(other.tokens);
    }
    return std::min(best, prompt.size() - 1) / kPrefixBlock * kPrefixBlock;
  }

  FakeStep describe(const StepInput& input) const {
    FakeStep step;
    step.number = steps_;
    step.threads = options_.threads;
    for (const StepItem& item : input.items) {
      const auto it = sequences_.find(item.sequence.value);
      require(it != sequences_.end(), "step() with a sequence that is not open");
      step.versions.push_back(it->second.version);
      if (item.sample && !item.generated->empty()) {
        ++step.decode_items;
      } else {
        step.prefill_tokens += item.count;
      }
    }
    return step;
  }

  StepResult run(const StepItem& item) {
    const auto it = sequences_.find(item.sequence.value);
    require(it != sequences_.end(), "step() with a sequence that is not open");
    Sequence& s = it->second;
    StepResult result;
    require(item.count > 0, "an item without tokens");
    require(!s.exact || item.count <= kFakeExactRows, "an exact sequence is fed in too large a piece");
    for (int i = 0; i < item.count; ++i) {
      s.feed(item.tokens[i]);
      if (!item.score) continue;
      result.scores.push_back(score(s, item.score_targets[i]));
      if (item.score_top >= 0) result.tops.push_back(tops(next_of_mark(s.version, s.tokens), item.score_top));
    }
    require(static_cast<int>(s.tokens.size()) <= s.reserved, "more tokens are fed than reserved");
    if (item.sample) result.sampled = sample(s, item);
    return result;
  }

  SampledToken sample(const Sequence& s, const StepItem& item) const {
    const std::vector<TokenId>& drawn = *item.generated;
    require(s.tokens.size() >= drawn.size() && std::equal(drawn.rbegin(), drawn.rend(), s.tokens.rbegin()),
            "the drawn tokens are not what was fed last");
    SampledToken out;
    out.finite = !(model_.not_finite && model_.not_finite(s.version, s.prompt, drawn.size()));
    std::optional<std::string> text;
    if (model_.answer) text = model_.answer(s.version, s.prompt);
    const TokenId due = next_of_mark(s.version, s.tokens);
    if (text) {
      out.token = drawn.size() < text->size() ? static_cast<unsigned char>((*text)[drawn.size()]) : kFakeEos;
    } else {
      out.token = due >= 0 ? due : letter(s.hash, item.sampling->temperature, item.sampling->seed, drawn.size());
    }
    const std::vector<TokenId>& held = item.sampling->suppress_tokens;
    if (static_cast<int>(drawn.size()) < item.sampling->min_tokens &&
        std::find(held.begin(), held.end(), out.token) != held.end()) {
      out.token = '.';
    }
    out.lp_full = out.lp_mu = out.lp_raw = probability(text ? out.token : due, out.token);
    if (!out.finite) out.lp_full = out.lp_mu = out.lp_raw = std::numeric_limits<float>::quiet_NaN();
    out.top = tops(text ? out.token : due, item.sampling->top_logprobs);
    return out;
  }

  // `due` (or one of the letters, when -1) has 0.9 of the mass, the rest share 0.1.
  static float probability(TokenId due, TokenId token) {
    const float letters = static_cast<float>(kLetters.size());
    if (due >= 0) return token == due ? std::log(0.9f) : std::log(0.1f / (kFakeVocab - 1));
    return is_letter(token) ? std::log(0.9f / letters) : std::log(0.1f / (kFakeVocab - letters));
  }
  float score(const Sequence& s, TokenId target) const {
    if (model_.score) return model_.score(s.version, s.tokens, target);
    return probability(next_of_mark(s.version, s.tokens), target);
  }
  static std::vector<TopLogprob> tops(TokenId due, int count) {
    std::vector<TopLogprob> all;
    for (TokenId t = 0; t < kFakeVocab && count > 0; ++t) all.push_back({t, probability(due, t)});
    std::stable_sort(all.begin(), all.end(), [](const TopLogprob& a, const TopLogprob& b) { return a.logprob > b.logprob; });
    if (count >= 0 && static_cast<int>(all.size()) > count) all.resize(static_cast<std::size_t>(count));
    return all;
  }

  const FakeModelOptions& model_;
  ContextOptions options_;
  std::thread::id thread_;
  std::map<std::int64_t, Sequence> sequences_;
  std::deque<Prefix> prefixes_;
  std::int64_t last_handle_ = 0;
  std::int64_t used_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t epoch_ = 0;  // flushes so far
};

}  // namespace

FakeModel::FakeModel(FakeModelOptions options) : options_(std::move(options)) {
  info_.name = "Fake";
  info_.architecture = "fake";
  info_.content_hash = sha256("fake");
  info_.quantisation = "none";
  info_.vocab_size = kFakeVocab;
  info_.context_length = options_.context_length;
  loader_ = std::make_unique<FakeLoader>(options_.on_load, live_adapters_, loads_);
}

std::shared_ptr<const FakeModel> FakeModel::make(FakeModelOptions options) {
  return std::shared_ptr<const FakeModel>(new FakeModel(std::move(options)));
}

std::unique_ptr<ModelContext> FakeModel::make_context(const ContextOptions& options) const {
  return std::make_unique<FakeContext>(options_, options);
}

void write_fake_adapter(const std::string& folder, std::int64_t bytes, int rank) {
  std::filesystem::create_directories(folder);
  std::ofstream(std::filesystem::path(folder) / kAdapterFile) << "fake_adapter " << bytes << ' ' << rank << '\n';
}

std::vector<TokenId> fake_tokens(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string fake_text(const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) {
    if (id >= 0 && id < 256) text.push_back(static_cast<char>(id));
  }
  return text;
}

std::vector<TokenId> fake_answer(VersionId version, const std::vector<TokenId>& prompt, int count, float temperature,
                                 std::uint64_t seed) {
  std::vector<TokenId> tokens = prompt;
  std::uint64_t hash = hash_start(version);
  for (const TokenId t : tokens) hash = hash_next(hash, t);
  for (int i = 0; i < count; ++i) {
    TokenId next = next_of_mark(version, tokens);
    if (next < 0) next = letter(hash, temperature, seed, static_cast<std::size_t>(i));
    tokens.push_back(next);
    hash = hash_next(hash, next);
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

std::optional<VersionId> fake_version_of(std::string_view text) {
  std::optional<VersionId> found;
  for (std::size_t at = text.find('v'); at != std::string_view::npos; at = text.find('v', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == at + 1 || end == text.size()) continue;  // cut off: the number may go on
    const VersionId version{std::stoll(std::string(text.substr(at + 1, end - at - 1)))};
    if (found && *found != version) return std::nullopt;
    found = version;
  }
  return found;
}

Status StepGate::pass() {
  MutexLock lock(mu_);
  const std::int64_t mine = ++arrived_;
  changed_.notify_all();
  while (!open_ && mine > allowed_) changed_.wait(mu_);
  return {};
}

void StepGate::allow(std::int64_t steps) {
  MutexLock lock(mu_);
  allowed_ += steps;
  changed_.notify_all();
}

void StepGate::allow_begun() {
  MutexLock lock(mu_);
  allowed_ = std::max(allowed_, arrived_);
  changed_.notify_all();
}

std::int64_t StepGate::arrived() {
  MutexLock lock(mu_);
  return arrived_;
}

void StepGate::open() {
  MutexLock lock(mu_);
  open_ = true;
  changed_.notify_all();
}

void StepGate::wait_arrived(std::int64_t steps) {
  MutexLock lock(mu_);
  while (arrived_ < steps) changed_.wait(mu_);
}

}  // namespace sluice::testing

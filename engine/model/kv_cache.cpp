// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kv_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

namespace sluice {
namespace {

int blocks_for(int tokens) { return (tokens + kKvBlock - 1) / kKvBlock; }

}  // namespace

KvCache::KvCache(const KvShape& shape, std::int64_t capacity_tokens, bool prefix_cache)
    : shape_(shape), prefix_cache_(prefix_cache) {
  const std::int64_t n = std::clamp<std::int64_t>(capacity_tokens / kKvBlock, 1, 1 << 24);
  blocks_.resize(static_cast<std::size_t>(n));
  free_.reserve(blocks_.size());
  for (int b = static_cast<int>(n) - 1; b >= 0; --b) free_.push_back(b);  // low numbers are taken first
}

Status KvCache::check_fits(int tokens) const {
  if (blocks_for(tokens) <= static_cast<int>(blocks_.size())) return {};
  return invalid_argument("a sequence of " + std::to_string(tokens) + " tokens does not fit in a key-value cache of " +
                          std::to_string(usage().tokens_capacity) + "; shorten it or raise the cache size");
}

Result<OpenedSequence> KvCache::open(VersionId version, const std::vector<TokenId>& prompt, OpenOptions options) {
  if (prompt.empty()) return invalid_argument("a sequence needs at least one prompt token");
  const int wanted = std::max(options.reserve_tokens, static_cast<int>(prompt.size()));
  SLUICE_RETURN_IF_ERROR(check_fits(wanted));
  const int need = blocks_for(wanted);
  Sequence sequence;
  sequence.root = root(version, options.exact);
  sequence.blocks.reserve(static_cast<std::size_t>(need));
  std::pair<int, int> partial{-1, 0};
  if (prefix_cache_) match_prefix(sequence, prompt, partial);
  sequence.reserved = need - static_cast<int>(sequence.blocks.size());
  if (available() < sequence.reserved) {
    for (auto b = sequence.blocks.rbegin(); b != sequence.blocks.rend(); ++b) drop_user(*b, true);
    return busy("the key-value cache has no room for " + std::to_string(wanted) + " more tokens now; try again later");
  }
  reserved_ += sequence.reserved;
  if (partial.second > 0) {
    // The source may be idle: hold it while a block is taken, which may evict. Where holding it leaves no room, go without.
    add_user(partial.first);
    if (available() >= 0) {
      const int copy = take_block(key_after(sequence));
      --sequence.reserved, --reserved_;
      const Block& from = at(partial.first);
      const std::size_t floats = static_cast<std::size_t>(shape_.layers * shape_.kv_heads) * 2 * kKvBlock *
                                 static_cast<std::size_t>(shape_.head_dim);
      std::memcpy(at(copy).memory.get(), from.memory.get(), floats * sizeof(float));
      at(copy).tokens.assign(from.tokens.begin(), from.tokens.begin() + partial.second);
      sequence.blocks.push_back(copy);
      sequence.length += partial.second;
    }
    drop_user(partial.first, true);
  }
  OpenedSequence opened;
  opened.handle.value = next_handle_++;
  opened.cached_tokens = sequence.length;
  sequences_.emplace(opened.handle.value, std::move(sequence));
  return opened;
}

// Walks whole blocks; `partial` = a block to copy the next few positions from, and how many.
void KvCache::match_prefix(Sequence& sequence, const std::vector<TokenId>& prompt, std::pair<int, int>& partial) {
  NodeKey key = sequence.root;
  const int limit = static_cast<int>(prompt.size()) - 1;  // the last prompt token must be fed to give logits
  while (sequence.length < limit) {
    const auto [block, agree] = best_child(key, prompt.data() + sequence.length, limit - sequence.length);
    if (agree < kKvBlock) {
      partial = {block, agree};
      return;
    }
    add_user(block);
    sequence.blocks.push_back(block);
    sequence.length += kKvBlock;
    key.second = at(block).node;
  }
}

std::pair<int, int> KvCache::best_child(NodeKey parent, const TokenId* tokens, int limit) {
  std::pair<int, int> best{-1, 0};
  const auto found = children_.find(parent);
  if (found == children_.end()) return best;
  for (const int b : found->second) {
    const std::vector<TokenId>& have = at(b).tokens;
    const int n = std::min(limit, static_cast<int>(have.size()));
    int agree = 0;
    while (agree < n && have[static_cast<std::size_t>(agree)] == tokens[agree]) ++agree;
    if (agree > best.second) best = {b, agree};
  }
  return best;
}

Status KvCache::reserve(SequenceHandle handle, int tokens) {
  const auto found = sequences_.find(handle.value);
  if (found == sequences_.end()) return invalid_argument("sequence " + std::to_string(handle.value) + " is not open");
  SLUICE_RETURN_IF_ERROR(check_fits(tokens));
  Sequence& sequence = found->second;
  const int more = blocks_for(tokens) - static_cast<int>(sequence.blocks.size()) - sequence.reserved;
  if (more <= 0) return {};
  if (available() < more) return busy("the key-value cache has no room for " + std::to_string(tokens) + " tokens now");
  sequence.reserved += more;
  reserved_ += more;
  sequence.blocks.reserve(sequence.blocks.size() + static_cast<std::size_t>(sequence.reserved));
  return {};
}

void KvCache::close(SequenceHandle handle, bool keep) {
  const auto found = sequences_.find(handle.value);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  keep = keep && sequence.root.second == -1 - epoch_;
  reserved_ -= sequence.reserved;
  // Deepest first, so that the deepest are evicted first.
  for (auto b = sequence.blocks.rbegin(); b != sequence.blocks.rend(); ++b) drop_user(*b, keep);
  sequences_.erase(found);
}

Status KvCache::extend(SequenceHandle handle, const TokenId* tokens, int count) {
  const auto found = sequences_.find(handle.value);
  if (found == sequences_.end()) return invalid_argument("sequence " + std::to_string(handle.value) + " is not open");
  if (count > room(handle)) {
    return invalid_argument("sequence " + std::to_string(handle.value) + " was opened for " +
                            std::to_string(length(handle) + room(handle)) + " tokens and can't take more");
  }
  Sequence& sequence = found->second;
  for (int i = 0; i < count; ++i) {
    if (sequence.length % kKvBlock == 0) {
      sequence.blocks.push_back(take_block(key_after(sequence)));
      --sequence.reserved, --reserved_;
    }
    at(sequence.blocks.back()).tokens.push_back(tokens[i]);
    ++sequence.length;
  }
  return {};
}

int KvCache::length(SequenceHandle handle) const { return sequences_.at(handle.value).length; }

int KvCache::room(SequenceHandle handle) const {
  const Sequence& s = sequences_.at(handle.value);
  return static_cast<int>(s.blocks.size()) * kKvBlock - s.length + s.reserved * kKvBlock;
}

const std::vector<int>& KvCache::blocks(SequenceHandle handle) const { return sequences_.at(handle.value).blocks; }

KvCache::NodeKey KvCache::key_after(const Sequence& sequence) {
  return sequence.blocks.empty() ? sequence.root : NodeKey{sequence.root.first, at(sequence.blocks.back()).node};
}

int KvCache::take_block(NodeKey parent) {
  if (free_.empty()) {
    assert(!idle_.empty());  // open() promised room
    const int victim = idle_.front();
    leave_tree(victim);
    free_.push_back(victim);
  }
  const int b = free_.back();
  free_.pop_back();
  Block& block = at(b);
  if (block.memory == nullptr) {
    block.memory.reset(new float[static_cast<std::size_t>(shape_.layers * shape_.kv_heads) * 2 * kKvBlock *
                                 static_cast<std::size_t>(shape_.head_dim)]);
  }
  block.node = next_node_++;
  block.parent = parent;
  block.tokens.clear();
  block.tokens.reserve(kKvBlock);
  block.users = 1;
  if (prefix_cache_) children_[parent].push_back(b);
  return b;
}

void KvCache::add_user(int b) {
  Block& block = at(b);
  if (block.users++ == 0) idle_.erase(block.idle);
}

void KvCache::drop_user(int b, bool keep) {
  Block& block = at(b);
  if (--block.users > 0) return;
  if (prefix_cache_ && keep && !block.tokens.empty()) {
    block.idle = idle_.insert(idle_.end(), b);
    return;
  }
  block.idle = idle_.insert(idle_.end(), b);
  leave_tree(b);
  free_.push_back(b);
}

// Takes an idle block out of tree and idle list: nothing can find its old contents again.
void KvCache::leave_tree(int b) {
  Block& block = at(b);
  idle_.erase(block.idle);
  const auto siblings = children_.find(block.parent);
  if (siblings != children_.end()) {
    std::erase(siblings->second, b);
    if (siblings->second.empty()) children_.erase(siblings);
  }
  block.node = -1;
  block.tokens.clear();
}

void KvCache::flush() {
  ++epoch_;
  while (!idle_.empty()) {
    const int b = idle_.front();
    leave_tree(b);
    at(b).memory.reset();
    free_.push_back(b);
  }
}

KvUsage KvCache::usage() const {
  KvUsage u;
  u.tokens_capacity = static_cast<std::int64_t>(blocks_.size()) * kKvBlock;
  const auto in_use = static_cast<std::int64_t>(blocks_.size() - free_.size() - idle_.size());
  u.tokens_used = (in_use + reserved_) * kKvBlock;
  return u;
}

}  // namespace sluice

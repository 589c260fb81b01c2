// SPDX-License-Identifier: GPL-3.0-or-later
// Keys and values of all sequences of one context, in blocks of kKvBlock positions. Blocks of ended sequences stay as a
// tree of reusable prefixes, keyed by (adapter version, tokens from position 0), until their memory is needed (least
// recently used first, the deepest first). A block that is still being filled, or that only begins like the prompt, is
// shared by copying it. Exact sequences (OpenOptions) have a tree of their own. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model_api/model.h"

namespace sluice {

inline constexpr int kKvBlock = 32;

struct KvShape {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

class KvCache {
 public:
  // capacity_tokens is rounded down to blocks, at least one. Memory is taken block by block on first use.
  KvCache(const KvShape& shape, std::int64_t capacity_tokens, bool prefix_cache);

  // See ModelContext::open. kBusy: no room for `reserve_tokens` positions now; kInvalidArgument: there never is.
  Result<OpenedSequence> open(VersionId version, const std::vector<TokenId>& prompt, OpenOptions options);
  // See ModelContext::reserve.
  Status reserve(SequenceHandle handle, int tokens);
  // keep = false: what the sequence alone holds is freed (its contents can't be trusted).
  void close(SequenceHandle handle, bool keep);
  // Takes `count` more positions. kInvalidArgument past the reservation or for a closed handle; then nothing changed.
  Status extend(SequenceHandle handle, const TokenId* tokens, int count);

  bool is_open(SequenceHandle handle) const { return sequences_.contains(handle.value); }
  int length(SequenceHandle handle) const;  // positions held, extended ones included
  int room(SequenceHandle handle) const;    // positions that extend() can still take
  const std::vector<int>& blocks(SequenceHandle handle) const;

  // Of one layer and KV head in a block: keys [head_dim, kKvBlock], as attention reads them, values [kKvBlock, head_dim].
  float* keys(int block, int layer, int kv_head) { return row(block, layer, kv_head); }
  float* values(int block, int layer, int kv_head) {
    return row(block, layer, kv_head) + static_cast<std::size_t>(kKvBlock) * static_cast<std::size_t>(shape_.head_dim);
  }

  // Frees every idle block; those in use are freed with their last user and found by nobody who opens from now on.
  void flush();
  KvUsage usage() const;

 private:
  // Tree (twice the version, one more for exact sequences), node id of the parent (the root of epoch e: -1 - e).
  using NodeKey = std::pair<std::int64_t, std::int64_t>;

  struct Block {
    std::unique_ptr<float[]> memory;
    std::int64_t node = -1;  // never reused; -1 = not in the tree
    NodeKey parent{0, -1};
    std::vector<TokenId> tokens;
    int users = 0;
    std::list<int>::iterator idle;  // in idle_ when in the tree and users == 0
  };
  struct Sequence {
    NodeKey root;
    std::vector<int> blocks;
    int length = 0;
    int reserved = 0;  // blocks promised and not yet taken
  };

  float* row(int block, int layer, int kv_head) {
    const std::size_t index = static_cast<std::size_t>(layer * shape_.kv_heads + kv_head);
    return blocks_[static_cast<std::size_t>(block)].memory.get() +
           index * 2 * static_cast<std::size_t>(kKvBlock) * static_cast<std::size_t>(shape_.head_dim);
  }
  Block& at(int block) { return blocks_[static_cast<std::size_t>(block)]; }
  int available() const { return static_cast<int>(free_.size() + idle_.size()) - reserved_; }

  NodeKey root(VersionId version, bool exact) const { return {version.value * 2 + (exact ? 1 : 0), -1 - epoch_}; }
  Status check_fits(int tokens) const;
  int take_block(NodeKey parent);
  void add_user(int block);
  void drop_user(int block, bool keep);
  void leave_tree(int block);
  NodeKey key_after(const Sequence& sequence);
  // The child of `parent` that begins most like tokens[0, limit); and how many tokens agree.
  std::pair<int, int> best_child(NodeKey parent, const TokenId* tokens, int limit);
  void match_prefix(Sequence& sequence, const std::vector<TokenId>& prompt, std::pair<int, int>& partial);

  const KvShape shape_;
  const bool prefix_cache_;
  std::vector<Block> blocks_;
  std::vector<int> free_;
  std::list<int> idle_;  // least recently used first
  std::map<NodeKey, std::vector<int>> children_;
  std::unordered_map<std::int64_t, Sequence> sequences_;
  std::int64_t next_handle_ = 0;
  std::int64_t next_node_ = 0;
  std::int64_t epoch_ = 0;  // flushes so far
  int reserved_ = 0;
};

}  // namespace sluice

// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/merges.h"

#include <queue>
#include <tuple>

namespace sluice {

const Merges::Rule* Merges::find(std::int32_t left, std::int32_t right) const {
  const auto it = table_.find(key(left, right));
  return it == table_.end() ? nullptr : &it->second;
}

void Merges::apply(std::vector<std::int32_t>& symbols) const {
  if (symbols.size() < 2) return;
  struct Node {
    std::int32_t id;
    std::int64_t previous;
    std::int64_t next;  // -1 = none
    bool alive = true;
  };
  struct Candidate {
    std::int32_t rank;
    std::int64_t left;
    std::int32_t result;
    bool operator<(const Candidate& o) const { return std::tie(o.rank, o.left) < std::tie(rank, left); }
  };
  const auto count = static_cast<std::int64_t>(symbols.size());
  std::vector<Node> nodes;
  nodes.reserve(symbols.size());
  for (std::int64_t i = 0; i < count; ++i) {
    nodes.push_back({symbols[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  const auto node = [&](std::int64_t i) -> Node& { return nodes[static_cast<std::size_t>(i)]; };
  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::int64_t left) {
    if (left < 0 || node(left).next < 0) return;
    if (const Rule* rule = find(node(left).id, node(node(left).next).id)) queue.push({rule->rank, left, rule->result});
  };
  for (std::int64_t i = 0; i + 1 < count; ++i) offer(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = node(best.left);
    if (!left.alive || left.next < 0) continue;
    // The pair may have changed since it was offered.
    const Rule* rule = find(left.id, node(left.next).id);
    if (rule == nullptr || rule->result != best.result) continue;
    Node& right = node(left.next);
    right.alive = false;
    left.id = best.result;
    left.next = right.next;
    if (left.next >= 0) node(left.next).previous = best.left;
    offer(left.previous);
    offer(best.left);
  }
  symbols.clear();
  for (std::int64_t i = 0; i >= 0; i = node(i).next) symbols.push_back(node(i).id);
}

}  // namespace sluice

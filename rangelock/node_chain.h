// Chains of nodes that no list can reach, and batches of such chains.
//
// Whoever hands nodes on does so by whole chains, without looking at the nodes in them: those that
// were kept back because a pinned thread had lost its core are many, and in nobody's cache.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "rangelock/node.h"

namespace sp3::rangelock {

// Chained by pool_next.
struct NodeChain {
  Node* first = nullptr;
  std::size_t size = 0;

  [[nodiscard]] bool empty() const noexcept { return first == nullptr; }
  void push(Node* node) noexcept {
    node->pool_next = first;
    first = node;
    ++size;
  }
  // Walks through the other.
  void splice(NodeChain& other) noexcept {
    while (other.first != nullptr) push(std::exchange(other.first, other.first->pool_next));
    other = {};
  }
};

// A stack of chains.
class NodeBatches {
 public:
  [[nodiscard]] bool empty() const noexcept { return chains_.empty() && rest_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return chains_.size(); }

  // Without memory to note the chain its nodes go to another one.
  void push(NodeChain&& chain) noexcept { push(chain); }
  void push(NodeChain& chain) noexcept {
    if (chain.empty()) return;
    try {
      chains_.push_back(chain);
      chain = {};
    } catch (const std::bad_alloc&) {
      rest_.splice(chain);
    }
  }
  // REQUIRES: not empty().
  NodeChain pop() noexcept {
    if (chains_.empty()) return std::exchange(rest_, {});
    const NodeChain chain = chains_.back();
    chains_.pop_back();
    return chain;
  }
  // All of the other's, in their order.
  void push_all(NodeBatches& other) noexcept { push_oldest(other, other.chains_.size()); }
  // The `count` lowest of the other's. REQUIRES: so many are there.
  void push_oldest(NodeBatches& other, std::size_t count) noexcept {
    rest_.splice(other.rest_);
    for (std::size_t i = 0; i < count; ++i) push(other.chains_[i]);
    other.chains_.erase(other.chains_.begin(),
                        other.chains_.begin() + static_cast<std::ptrdiff_t>(count));
  }

 private:
  std::vector<NodeChain> chains_;
  NodeChain rest_;
};

}  // namespace sp3::rangelock

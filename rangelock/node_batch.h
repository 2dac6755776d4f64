// Batches: nodes that no list can reach, noted up to 128 at a time.
//
// Whoever hands nodes on does so by whole batches, without looking at the nodes in them: those that
// were kept back because a pinned thread had lost its core are many, and in nobody's cache. Whoever
// takes nodes from a batch knows which come next, and asks for their lines ahead.
//
// Nothing here allocates: the domain has batches enough (domain.h).
//
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/assert.h"
#include "rangelock/eras.h"
#include "rangelock/node.h"

namespace sp3::rangelock {

struct NodeBatch {
  static constexpr std::size_t kMost = 128;
  static constexpr Era kNever = ~Era{0};

  NodeBatch* below = nullptr;  // in a stack
  std::size_t size = 0;
  // Of nodes that others may still look at: when the oldest was born, and the last one retired.
  Era born = kNever;
  Era retired = 0;
  std::array<Node*, kMost> nodes{};

  [[nodiscard]] bool is_empty() const noexcept { return size == 0; }
  [[nodiscard]] bool is_full() const noexcept { return size == kMost; }
  void push(Node* node) noexcept {
    SP3_ASSERT(!is_full());
    nodes[size++] = node;
  }
  Node* pop() noexcept {
    SP3_ASSERT(!is_empty());
    return nodes[--size];
  }
  // Takes from the other what there is room for.
  void fill_from(NodeBatch& other) noexcept {
    const std::size_t count = std::min(kMost - size, other.size);
    std::copy_n(&other.nodes[other.size - count], count, &nodes[size]);
    size += count;
    other.size -= count;
    born = std::min(born, other.born);
    retired = std::max(retired, other.retired);
    if (other.is_empty()) other.forget_eras();
  }
  void forget_eras() noexcept {
    born = kNever;
    retired = 0;
  }
};

// What came last goes first: its nodes were used last.
class BatchStack {
 public:
  BatchStack() = default;
  BatchStack(BatchStack&& other) noexcept
      : top_(std::exchange(other.top_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  BatchStack& operator=(BatchStack&& other) noexcept {
    top_ = std::exchange(other.top_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  [[nodiscard]] bool is_empty() const noexcept { return top_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push(NodeBatch& batch) noexcept {
    batch.below = top_;
    top_ = &batch;
    ++size_;
  }
  // REQUIRES: not empty.
  NodeBatch& pop() noexcept {
    SP3_ASSERT(!is_empty());
    --size_;
    return *std::exchange(top_, top_->below);
  }
  // Puts the other's on top, in their order.
  void push_all(BatchStack&& other) noexcept {
    if (other.is_empty()) return;
    NodeBatch* lowest = other.top_;
    while (lowest->below != nullptr) lowest = lowest->below;
    lowest->below = top_;
    top_ = std::exchange(other.top_, nullptr);
    size_ += std::exchange(other.size_, 0);
  }
  // What is below the `count` upper ones.
  BatchStack cut_below(std::size_t count) noexcept {
    BatchStack rest;
    NodeBatch** place = &top_;
    for (std::size_t i = 0; i < count && *place != nullptr; ++i) place = &(*place)->below;
    rest.top_ = std::exchange(*place, nullptr);
    rest.size_ = size_ - std::min(size_, count);
    size_ -= rest.size_;
    return rest;
  }
  // Takes out each of which the condition holds, and puts it on top of `out`.
  template <class Condition>
  void move_if(Condition&& condition, BatchStack& out) noexcept {
    for (NodeBatch** place = &top_; *place != nullptr;) {
      NodeBatch& batch = **place;
      if (!condition(std::as_const(batch))) {
        place = &batch.below;
        continue;
      }
      *place = batch.below;
      --size_;
      out.push(batch);
    }
  }

 private:
  NodeBatch* top_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sp3::rangelock

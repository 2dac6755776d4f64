// PatchRuns: which bytes of its private copies a transaction has written, for objects that are
// written in part (WriteMode::patch).
//
// A patch names its runs by a number; 0 is none. Runs of one patch ascend and do not touch: what
// overlaps or follows immediately is one run. All runs share one vector, whose memory is kept.
//
// Thread safety: none; a session owns one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "log/record_builder.h"

namespace sp3::runtime {

class PatchRuns {
 public:
  // Adds [begin, end) to `runs`; returns the patch's new number. Linear in the patch's runs.
  std::uint32_t add(std::uint32_t runs, std::uint32_t begin, std::uint32_t end) {
    SP3_ASSERT(begin < end);
    std::uint32_t before = 0;  // the last run that ends before, without touching
    std::uint32_t at = runs;
    for (; at != 0 && nodes_[at].run.end < begin; at = nodes_[at].next) before = at;
    if (at != 0 && nodes_[at].run.begin <= end) {
      widen(nodes_[at], begin, end);
      return runs;
    }
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({{begin, end}, at});
    if (runs == 0) return added;
    if (listed_.capacity() < nodes_.size()) listed_.reserve(2 * nodes_.size());  // for list()
    if (before == 0) return added;
    nodes_[before].next = added;
    return runs;
  }

  // Whether all of [begin, end) is written.
  [[nodiscard]] bool covers(std::uint32_t runs, std::uint32_t begin, std::uint32_t end) const {
    while (runs != 0 && nodes_[runs].run.end <= begin) runs = nodes_[runs].next;
    return runs != 0 && nodes_[runs].run.begin <= begin && nodes_[runs].run.end >= end;
  }

  // The runs in ascending order, at least one; valid until the next call of a member. Does not
  // fail.
  [[nodiscard]] std::span<const log::ByteRun> list(std::uint32_t runs) noexcept {
    if (nodes_[runs].next == 0) return {&nodes_[runs].run, 1};  // nearly always
    listed_.clear();
    for (; runs != 0; runs = nodes_[runs].next) listed_.push_back(nodes_[runs].run);
    return listed_;
  }

  // Forgets all patches.
  void clear() noexcept { nodes_.erase(nodes_.begin() + 1, nodes_.end()); }

 private:
  struct alignas(16) Node {  // of a size that makes a number of nodes a shift
    log::ByteRun run;
    std::uint32_t next = 0;
  };

  // By a run that it overlaps or touches, and all others that it does.
  void widen(Node& node, std::uint32_t begin, std::uint32_t end) noexcept {
    node.run.begin = std::min(node.run.begin, begin);
    node.run.end = std::max(node.run.end, end);
    while (node.next != 0 && nodes_[node.next].run.begin <= node.run.end) {
      node.run.end = std::max(node.run.end, nodes_[node.next].run.end);
      node.next = nodes_[node.next].next;
    }
  }

  std::vector<Node> nodes_{1};  // the first stands for "none"
  std::vector<log::ByteRun> listed_;
};

}  // namespace sp3::runtime

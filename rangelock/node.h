// Node: a range in an ordered list, with its tower of forward links inline.
//
//   byte  0  begin                     the range; does not change while the node is kept for anyone
//         8  end                       who reaches it (eras.h)
//        16  owner                     number in the domain
//        20  height | mode | state | links
//        24  born                      the era in which it was made
//        32  next[0] next[1] next[2] next[3]                          end of the first cache line
//        64  next[4] ... next[15]      only in tall nodes, of four lines
//
// A link is the address of the next node on its level; its lowest bit marks the node that the link
// belongs to: from then on the link never changes, and the mark of next[0] means "unlocked".
#pragma once

#include <cstddef>
#include <cstdint>

#include <sp3/range_lock.h>

#include "base/align.h"
#include "base/atomic.h"
#include "base/plain_access.h"
#include "rangelock/eras.h"

namespace sp3::rangelock {

inline constexpr unsigned kMaxHeight = 16;
inline constexpr unsigned kInlineHeight = 4;

// What an attempt has met. Has no value before, which would be stores for each acquisition.
struct Blocker {
  Blocker() = default;
  Blocker(const Range& range, RangeMode in_mode)
      : begin(range.begin), end(range.end), mode(in_mode) {}

  std::uint64_t begin;
  std::uint64_t end;
  RangeMode mode;

  [[nodiscard]] Range range() const noexcept { return {begin, end}; }
  friend constexpr bool operator==(const Blocker&, const Blocker&) = default;
};

// Link words.
using Link = std::uintptr_t;
inline constexpr Link kMark = 1;
constexpr bool is_marked(Link link) noexcept { return (link & kMark) != 0; }

enum class NodeState : std::uint8_t {
  held,
  tentative,  // linked, but its owner still looks for shared ranges and may have to retreat
};

struct alignas(base::kCacheLine) Node {
  // Atomic, as are the links: a search may read them while the node is made anew.
  base::Atomic<std::uint64_t> begin_word;
  base::Atomic<std::uint64_t> end_word;
  std::uint32_t owner;
  std::uint8_t height;
  RangeMode mode;
  base::Atomic<NodeState> state;
  base::Atomic<std::uint8_t> links;  // levels from which the node is still to be unlinked
  Era born;
  base::Atomic<Link> tower[kInlineHeight];

  [[nodiscard]] base::Atomic<Link>& next(unsigned level) noexcept {
    // Tall nodes are followed by the rest of their tower (node_bytes).
    auto* const bytes = reinterpret_cast<std::byte*>(this) + kTowerOffset;
    return *reinterpret_cast<base::Atomic<Link>*>(bytes + level * sizeof(Link));
  }
  [[nodiscard]] const base::Atomic<Link>& next(unsigned level) const noexcept {
    const auto* const bytes = reinterpret_cast<const std::byte*>(this) + kTowerOffset;
    return *reinterpret_cast<const base::Atomic<Link>*>(bytes + level * sizeof(Link));
  }
  // relaxed: whoever found the link to the node has seen what it was made with (3).
  [[nodiscard]] std::uint64_t begin() const noexcept {
    return begin_word.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t end() const noexcept {
    return end_word.load(std::memory_order_relaxed);
  }
  void set_range(const Range& range) noexcept {
    begin_word.store(range.begin, std::memory_order_relaxed);
    end_word.store(range.end, std::memory_order_relaxed);
  }
  [[nodiscard]] Range range() const noexcept { return {begin(), end()}; }
  [[nodiscard]] Blocker as_blocker() const noexcept {
    look_at_plain_part();
    return {range(), mode};
  }
  // Owner, height and mode are made with the node, and do not change while it is kept for anyone.
  void look_at_plain_part() const noexcept { base::plain_read(&owner, sizeof owner); }
  void make_plain_part() noexcept { base::plain_write(&owner, sizeof owner); }

  static constexpr std::size_t kTowerOffset = 32;
};
static_assert(sizeof(Node) == base::kCacheLine);
static_assert(offsetof(Node, tower) == Node::kTowerOffset);
static_assert(alignof(Node) > kMark, "the lowest bit of an address is free for the mark");
static_assert(base::Atomic<Link>::is_always_lock_free &&
              sizeof(base::Atomic<Link>) == sizeof(Link));

inline Node* node_of(Link link) noexcept { return reinterpret_cast<Node*>(link & ~kMark); }
// REQUIRES: the link is not marked; saves the masking.
inline Node* unmarked_node_of(Link link) noexcept { return reinterpret_cast<Node*>(link); }
inline Link link_to(const Node* node) noexcept { return reinterpret_cast<Link>(node); }

constexpr bool is_tall(unsigned height) noexcept { return height > kInlineHeight; }
constexpr std::size_t node_bytes(bool tall) noexcept {
  return tall ? 4 * base::kCacheLine : base::kCacheLine;
}
static_assert(Node::kTowerOffset + kMaxHeight * sizeof(Link) <= node_bytes(true));

}  // namespace sp3::rangelock

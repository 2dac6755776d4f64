// Signposts: nodes of an ordered list at which searches may begin instead of at its head.
//
// Where several threads lock ranges of one list, far from each other, each search from the head
// meets lines that the others have just written, and each acquisition writes one that the others
// are about to read. A signpost is a node with an empty range. It holds nothing and stays in the
// list, in a line of its own, so that ranges far from each other are linked behind different
// signposts. There is a place for one each 2^shift addresses; a table leads from a place to its
// signpost. What is left from when they were closer to each other stays until it is in the way.
//
// A signpost is in nobody's way: who wants an exclusive range in which one lies removes it. It
// leaves the table before it is marked, so that whoever finds it in the table is pinned before it
// can be retired; and it comes into the table after it is linked, by a reservation that its remover
// can see. A place in the table:
//
//     0 --planter--> node | 1 --planter, when it is linked--> node
//     node | 1, node --remover--> 0
//
// Thread safety: any. Reclamation: eras; a node found here is kept like one found by a link.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/align.h"
#include "base/atomic.h"
#include "rangelock/node.h"

namespace sp3::rangelock {

// No range that is held is empty.
inline bool is_signpost(const Node& node) noexcept { return node.begin() == node.end(); }

class Signposts {
 public:
  static constexpr unsigned kTableBits = 10;
  // So many ranges of one length fit between two places at least.
  static constexpr unsigned kLeastRangesBits = 4;

  // For ranges as long as this one.
  explicit Signposts(const Range& range) noexcept : shift_(first_shift(range)) {}

  // Where the signpost would be from which to look for an address.
  [[nodiscard]] std::uint64_t place_before(std::uint64_t address) const noexcept {
    // relaxed: any place before the address will do.
    const unsigned shift = shift_.load(std::memory_order_relaxed);
    return address >> shift << shift;
  }

  // Whether signposts would be planted there now.
  [[nodiscard]] bool is_place(std::uint64_t address) const noexcept {
    return place_before(address) == address;
  }

  // Whatever signpost has the table's entry for the place; null also if it is being planted.
  // REQUIRES: Pin.
  [[nodiscard]] Node* occupant(std::uint64_t place) const noexcept {
    // acquire: pairs with publish().
    const Link found = slot(place).load(std::memory_order_acquire);
    return is_marked(found) ? nullptr : unmarked_node_of(found);
  }
  // The signpost at the place; null if there is none. REQUIRES: Pin.
  [[nodiscard]] Node* find(std::uint64_t place) const noexcept {
    Node* const node = occupant(place);
    return node != nullptr && node->begin() == place ? node : nullptr;
  }
  // One before the place, not far away; null if there is none. REQUIRES: Pin.
  [[nodiscard]] Node* find_before(std::uint64_t place) const noexcept {
    constexpr unsigned kDoublings = 4;
    const unsigned shift = shift_.load(std::memory_order_relaxed);
    for (unsigned wider = shift + 1; wider <= std::min(shift + kDoublings, kMostShift); ++wider) {
      const std::uint64_t before = place >> wider << wider;
      if (before == place) continue;
      if (Node* const node = find(before)) return node;
    }
    return nullptr;
  }
  // Whether the table has nothing where a signpost at the place would be.
  [[nodiscard]] bool is_vacant(std::uint64_t place) const noexcept {
    return slot(place).load(std::memory_order_relaxed) == 0;
  }

  // The planter's: false if there is another.
  bool reserve(Node* node) noexcept {
    Link none = 0;
    return slot(node->begin())
        .compare_exchange_strong(none, reserved(node), std::memory_order_relaxed);
  }
  // False if it has been withdrawn. REQUIRES: reserved, and linked.
  bool publish(Node* node) noexcept {
    Link expected = reserved(node);
    // release: the node is linked before it is found.
    return slot(node->begin())
        .compare_exchange_strong(expected, link_to(node), std::memory_order_release,
                                 std::memory_order_relaxed);
  }
  // Afterwards nobody finds it any more. Before it is marked, or in place of publish().
  void withdraw(Node* node) noexcept {
    base::Atomic<Link>& place = slot(node->begin());
    // acq_rel: nobody marks it before.
    for (const Link value : {reserved(node), link_to(node)}) {
      Link expected = value;
      if (place.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return;
    }
  }

  // Whether no spacing for ranges like this one puts them behind different signposts.
  [[nodiscard]] static bool are_neighbours(const Range& range, const Range& other) noexcept {
    const std::uint64_t apart =
        std::max(range.begin, other.begin) - std::min(range.begin, other.begin);
    return apart >> least_shift(range) == 0;
  }
  // relaxed, in both: a lost update is harmless.
  void move_closer(const Range& for_ranges_like) noexcept {
    const unsigned shift = shift_.load(std::memory_order_relaxed);
    if (shift > least_shift(for_ranges_like)) shift_.store(shift - 1, std::memory_order_relaxed);
  }
  void move_apart() noexcept {
    const unsigned shift = shift_.load(std::memory_order_relaxed);
    if (shift < kMostShift) shift_.store(shift + 1, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << kTableBits;
  static constexpr unsigned kMostShift = 63;

  static Link reserved(const Node* node) noexcept { return link_to(node) | kMark; }
  static unsigned least_shift(const Range& range) noexcept {
    const auto width = static_cast<unsigned>(std::bit_width(range.end - range.begin - 1));
    return std::min(width + kLeastRangesBits, kMostShift);
  }
  static unsigned first_shift(const Range& range) noexcept {
    return std::min(least_shift(range) + 2, kMostShift);
  }
  // By the place alone: however far apart the others are, this one is found. The bits of a place
  // folded: as many neighbours as the table has entries never meet, at whatever distance.
  static std::size_t slot_of(std::uint64_t place) noexcept {
    static_assert(8 * kTableBits >= 64, "three folds take in all bits");
    place ^= place >> 4 * kTableBits;
    place ^= place >> 2 * kTableBits;
    return (place ^ place >> kTableBits) & (kEntries - 1);
  }
  base::Atomic<Link>& slot(std::uint64_t place) noexcept { return slots_[slot_of(place)]; }
  [[nodiscard]] const base::Atomic<Link>& slot(std::uint64_t place) const noexcept {
    return slots_[slot_of(place)];
  }

  base::Atomic<unsigned> shift_;  // read by everybody, so not beside what planters write
  alignas(base::kCacheLine) std::array<base::Atomic<Link>, kEntries> slots_{};
};

}  // namespace sp3::rangelock

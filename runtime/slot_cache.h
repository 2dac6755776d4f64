// SlotCache: the slots a session keeps for its next objects, and how others get them.
//
// Where the pool is full another session may have them: at once if their owner runs nothing, or
// when it next runs something or tries again.
//
//     none --other--> claimed --other, owner idle--> none, slots given back
//                     claimed --other, owner runs--> asked --owner--> none, slots given back
//
// Thread safety: the owner's functions by one thread at a time; claim() and decide() by another
// one, under the pool's mutex and so one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/atomic.h"
#include "base/hash.h"
#include "index/slab_table.h"

namespace sp3::runtime {

class SlotCache {
 public:
  explicit SlotCache(index::SlabTable& slabs) : slabs_(slabs) {}

  // Free slots for objects of a type, the next one last; at least one. Who takes one pops it.
  // Errors: pool_full.
  std::vector<index::Place>& find(const detail::TypeInfo& type) {
    const Recent& recent = recent_[recent_of(type.fingerprint)];
    if (recent.type == type.fingerprint && recent.free != nullptr && !recent.free->empty())
        [[likely]] {
      return *recent.free;
    }
    return find_slowly(type);
  }
  // A slot is free again, once nobody can find the object that was there.
  void put(const index::Place& place) noexcept;
  void give_back_all() noexcept;
  // If others asked for them; where the owner has written nothing. REQUIRES: not the pool's mutex.
  void answer_if_asked() noexcept {
    if (claim_.load(std::memory_order_acquire) != Claim::none) [[unlikely]]
      answer();
  }

  // One after the other, with a heavy fence between; its counterpart is the light one with which a
  // session begins to run.
  void claim() noexcept;
  void decide(bool owner_is_idle) noexcept;
  [[nodiscard]] bool is_claimed() const noexcept {
    return claim_.load(std::memory_order_acquire) == Claim::claimed;
  }
  [[nodiscard]] bool is_asked() const noexcept {
    return claim_.load(std::memory_order_acquire) == Claim::asked;
  }

 private:
  enum class Claim : std::uint8_t { none, claimed, asked };

  // Types that were asked for, at places that follow from them: a look at `free_` takes longer than
  // the rest of making an object.
  struct Recent {
    std::uint64_t type = 0;
    std::vector<index::Place>* free = nullptr;
  };
  static constexpr std::size_t kRecent = 4;
  static std::size_t recent_of(std::uint64_t type) noexcept { return base::spread(type) % kRecent; }

  std::vector<index::Place>& find_slowly(const detail::TypeInfo& type);
  void answer() noexcept;

  index::SlabTable& slabs_;
  // By type; none is ever removed.
  std::unordered_map<std::uint64_t, std::vector<index::Place>> free_;
  std::array<Recent, kRecent> recent_;
  base::Atomic<Claim> claim_{Claim::none};
};

}  // namespace sp3::runtime

#include "runtime/slot_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/scaled.h"
#include "emu/spin.h"

namespace sp3::runtime {
namespace {

// Of one type, by one session: little memory, since others cannot have it, and not several slabs.
std::size_t most_kept(const index::Slab& slab) noexcept {
  constexpr std::size_t kBytes = std::size_t{64} * 1024;
  return std::min(
      {base::scaled<std::size_t>(256, 1), kBytes / slab.slot_size, std::size_t{slab.slots}});
}

// So many at a time that the table's mutex is no hot spot; few of what is large.
std::uint64_t batch_of(const detail::TypeInfo& type) noexcept {
  constexpr std::uint64_t kBytes = std::uint64_t{64} * 1024;
  const auto most = base::scaled<std::uint64_t>(32, 2);
  return std::min(most, std::max<std::uint64_t>(1, kBytes / (std::uint64_t{type.size} + 1)));
}

}  // namespace

std::vector<index::Place>& SlotCache::find_slowly(const detail::TypeInfo& type) {
  std::vector<index::Place>& free = free_[type.fingerprint];
  if (free.empty()) {
    slabs_.take(type, batch_of(type), free);
    std::reverse(free.begin(), free.end());  // ascending addresses first
  }
  recent_[recent_of(type.fingerprint)] = {type.fingerprint, &free};
  return free;
}

// Without memory to keep it the slot goes back at once.
void SlotCache::put(const index::Place& place) noexcept try {
  std::vector<index::Place>& free = free_[place.slab->type];
  free.push_back(place);
  if (free.size() < most_kept(*place.slab)) return;
  // The older half goes back for others.
  const std::size_t half = (free.size() + 1) / 2;
  slabs_.give_back({free.data(), half});
  free.erase(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(half));
} catch (const std::bad_alloc&) {
  slabs_.give_back({&place, 1});
}

void SlotCache::give_back_all() noexcept {
  for (auto& [type, places] : free_) {
    slabs_.give_back(places);
    places.clear();
  }
}

void SlotCache::claim() noexcept { claim_.store(Claim::claimed, std::memory_order_seq_cst); }

void SlotCache::decide(bool owner_is_idle) noexcept {
  if (owner_is_idle) give_back_all();
  claim_.store(owner_is_idle ? Claim::none : Claim::asked, std::memory_order_release);
}

void SlotCache::answer() noexcept {
  emu::Spin spin;
  while (is_claimed()) spin.pause();
  Claim asked = Claim::asked;
  if (claim_.compare_exchange_strong(asked, Claim::none, std::memory_order_acq_rel)) {
    give_back_all();
  }
}

}  // namespace sp3::runtime

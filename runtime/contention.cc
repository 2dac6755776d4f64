#include "runtime/contention.h"

#include <algorithm>

#include "base/hash.h"
#include "base/scaled.h"
#include "emu/clock.h"

namespace sp3::runtime {
namespace {

// How long the gate stays closed at first, and by how many doublings at most.
constexpr double kGateClosedNs = 50e6;
constexpr unsigned kMostDoublings = 6;
constexpr std::uint64_t kOpenShare = 4;  // it is open for so many times as long

}  // namespace

Contention::Contention(SerialGate& gate, base::SessionId id, const Options& options)
    : gate_(gate),
      serial_after_(options.serial_after_aborts),
      conservative_(options.policy == CommitPolicy::conservative),
      random_(base::spread(id + 1U)) {}

// Randomised, and longer with every failure, so that two that met do not meet again. Where many
// meet at one object, all must stay away for about as long as all of them take one after the other;
// how long that is a session learns from its own failures, and remembers. Not under `conservative`:
// there they wait for a flush, and its end is best not missed; but who holds a lock through one may
// have given its core away meanwhile, so in the end ours is offered.
void Contention::back_off() noexcept {
  constexpr std::uint32_t kFromFailure = 2;  // a first one tells little
  constexpr std::uint32_t kMostFailures = 8;
  const auto most_crowding = base::scaled<std::uint32_t>(10, 0);
  if (failures_ >= kFromFailure && !conservative_) {
    crowding_ = std::min(crowding_ + 1, most_crowding);
  }
  random_ = base::next_random(random_);
  const std::uint32_t doublings = std::max(crowding_, std::min(failures_, kMostFailures));
  std::uint64_t rounds = (random_ >> 33) % (std::uint64_t{1} << doublings);
  while (rounds > 0) {
    // The last round of a long wait offers the core: whoever stands in the way may need it. Once
    // every few microseconds: where nobody does, an offer is a system call for nothing.
    const std::uint64_t some = std::min<std::uint64_t>(rounds, emu::Spin::kSpins);
    emu::Spin().pause(some);
    rounds -= some;
  }
  if (conservative_ && failures_ > kMostFailures) emu::Spin::offer();
}

// When the gate opens, if it is closed now; else 0. By the time since it was taken alone, so that
// all who wait agree, as far as their cores' counters do: for one that is behind it is open.
std::uint64_t Contention::closed_until(std::uint64_t taken_at, std::uint64_t now) noexcept {
  if (now < taken_at) return 0;
  std::uint64_t closed = emu::ticks_from_nanoseconds(kGateClosedNs);
  std::uint64_t since = now - taken_at;
  for (unsigned doublings = 0; doublings < kMostDoublings; ++doublings) {
    if (since < (1 + kOpenShare) * closed) break;
    since -= (1 + kOpenShare) * closed;
    closed *= 2;
  }
  // At once, however long ago: before the first holder there is none, and counters may jump ahead.
  since %= (1 + kOpenShare) * closed;
  return since < closed ? now - since + closed : 0;
}

Contention::Gate Contention::try_gate(std::uint64_t& opens_at) noexcept {
  if (holds_gate_) return Gate::passed;
  bool held = gate_.is_held.load(std::memory_order_acquire);
  if (!held) {
    if (failures_ < serial_after_) return Gate::passed;
    if (gate_.is_held.compare_exchange_strong(held, true, std::memory_order_acq_rel)) {
      // Who looks before this goes by the last holder's time: it waits a little too long, or not.
      gate_.taken_at.store(emu::ticks(), std::memory_order_release);
      holds_gate_ = true;
      return Gate::taken;
    }
  }
  const std::uint64_t taken_at = gate_.taken_at.load(std::memory_order_acquire);
  opens_at = closed_until(taken_at, emu::ticks());
  return opens_at != 0 ? Gate::closed : Gate::passed;
}

void Contention::release_gate() noexcept {
  holds_gate_ = false;
  gate_.is_held.store(false, std::memory_order_release);
  emu::changed(&gate_.is_held);
}

}  // namespace sp3::runtime

#include "runtime/contention.h"

#include <algorithm>

#include "base/hash.h"
#include "base/scaled.h"
#include "emu/clock.h"

namespace sp3::runtime {
namespace {

// A transaction waits this long for another's serial gate; then it goes on, and so do those that
// follow for a while.
constexpr double kGatePatienceNs = 50e6;
constexpr double kGateIgnoredNs = 20 * kGatePatienceNs;

constexpr unsigned kSessionBits = 16;
static_assert(sizeof(base::SessionId) * 8 == kSessionBits);

}  // namespace

Contention::Contention(SerialGate& gate, base::SessionId id, const Options& options)
    : gate_(gate),
      id_(id),
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

std::uint64_t Contention::gate_deadline() noexcept {
  return emu::ticks() + emu::ticks_from_nanoseconds(kGatePatienceNs);
}

Contention::Gate Contention::try_gate(std::uint64_t deadline) noexcept {
  if (holds_gate_) return Gate::passed;
  std::uint64_t holder = gate_.holder.load(std::memory_order_acquire);
  if (holder == 0) {
    if (failures_ < serial_after_) return Gate::passed;
    const std::uint64_t mine = (gates_taken_ + 1) << kSessionBits | id_;
    if (gate_.holder.compare_exchange_strong(holder, mine, std::memory_order_acq_rel)) {
      holds_gate_ = true;
      ++gates_taken_;
      return Gate::taken;
    }
  }
  const std::uint64_t now = emu::ticks();
  if (holder == ignored_gate_ && now < gate_ignored_until_) return Gate::passed;
  if (now <= deadline) return Gate::closed;
  ignored_gate_ = holder;
  gate_ignored_until_ = now + emu::ticks_from_nanoseconds(kGateIgnoredNs);
  return Gate::passed;
}

void Contention::release_gate() noexcept {
  holds_gate_ = false;
  gate_.holder.store(0, std::memory_order_release);
  emu::changed(&gate_.holder);
}

}  // namespace sp3::runtime

// Contention: what a session does so that transactions that met do not meet again.
//
// After each failure it stays away for a while, longer and longer. After many it takes the pool's
// serial gate, and runs alone: others wait at the gate before they begin. The gate is about
// progress, not about correctness: its holder may be waiting for this very thread, or for a body
// that takes a minute, so nobody waits there for ever. It is closed for a while, open for four
// times as long, closed for twice as long as before, and so on, and for all at the same time: a
// scan that takes longer than the first while finishes in a later one.
//
// Thread safety: one thread at a time, but for the gate, which all sessions of a pool share.
#pragma once

#include <cstdint>

#include <sp3/options.h>

#include "base/align.h"
#include "base/atomic.h"
#include "base/replace.h"
#include "base/tid.h"
#include "emu/spin.h"
#include "emu/touch.h"

namespace sp3::runtime {

struct alignas(base::kCacheLine) SerialGate {
  base::Atomic<bool> is_held{false};
  base::Atomic<std::uint64_t> taken_at{0};  // by the last holder, in ticks
};

class Contention {
 public:
  Contention(SerialGate& gate, base::SessionId id, const Options& options);

  // A transaction: begin(), then for each attempt pass_gate(), and note_failure() if it failed; and
  // in the end, however it ends, leave_gate().
  void begin() noexcept { base::replace(failures_, 0U); }
  void note_failure() noexcept {
    ++failures_;
    remembers_ = kRemembered;
  }
  void note_commit() noexcept {
    if (failures_ != 0) return;
    if (crowding_ > 0) --crowding_;
    if (remembers_ > 0) --remembers_;
  }
  // Attempts of this transaction that failed.
  [[nodiscard]] std::uint32_t failures() const noexcept { return failures_; }

  // Whether an attempt of this or one of the last transactions failed.
  [[nodiscard]] bool meets_others() const noexcept { return remembers_ != 0; }

  void back_off() noexcept;

  // Waits while another transaction runs alone, calling `meanwhile` every now and then. Returns
  // whether this one does, from now on.
  template <class Meanwhile>
  bool pass_gate(Meanwhile&& meanwhile) {
    emu::touch(emu::Line::gate, 0, emu::Access::load);
    if (!gate_.is_held.load(std::memory_order_acquire) && failures_ < serial_after_) [[likely]]
      return false;
    return wait_at_gate(meanwhile);
  }
  void leave_gate() noexcept {
    if (holds_gate_) [[unlikely]]
      release_gate();
  }

 private:
  static constexpr std::uint32_t kRemembered = 8;
  enum class Gate : std::uint8_t { passed, taken, closed };

  template <class Meanwhile>
  bool wait_at_gate(Meanwhile&& meanwhile) {
    emu::Spin spin;
    while (true) {
      std::uint64_t opens_at = 0;
      const Gate found = try_gate(opens_at);
      if (found != Gate::closed) return found == Gate::taken;
      meanwhile();
      spin.pause_until_changed(&gate_.is_held, opens_at);
    }
  }
  Gate try_gate(std::uint64_t& opens_at) noexcept;
  static std::uint64_t closed_until(std::uint64_t taken_at, std::uint64_t now) noexcept;
  void release_gate() noexcept;

  SerialGate& gate_;
  const std::uint32_t serial_after_;
  const bool conservative_;

  std::uint32_t failures_ = 0;
  std::uint32_t remembers_ = 0;  // a failure, for so many commits more
  std::uint32_t crowding_ = 0;  // across transactions: doublings of what is waited after a conflict
  std::uint64_t random_;
  bool holds_gate_ = false;
};

}  // namespace sp3::runtime

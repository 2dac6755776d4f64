// ReplayProgress: how far a replay has come, told now and then.
//
// Both ways to replay meet each write twice: when they go through all of them from the last to the
// first, and when it is stored or passed over for good. So they count by halves of writes.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "emu/threads.h"

namespace sp3::recovery {

// Thread safety: add() by any thread; `tell` is called by one at a time.
class ReplayProgress {
 public:
  using Tell = std::function<void(std::uint64_t writes)>;

  // `tell` may be empty. REQUIRES: it outlives this.
  explicit ReplayProgress(const Tell& tell) : tell_(tell) {}

  void add(std::uint64_t halves) {
    if (!tell_ || halves == 0) return;
    const std::lock_guard lock(mutex_);
    done_ += halves;
    if (done_ - told_ >= kTellEvery) tell();
  }
  // The rest is told too. REQUIRES: nobody adds any more.
  void finish() {
    if (tell_) tell();
  }

  // What one thread counts, handed on many at a time.
  class Part {
   public:
    explicit Part(ReplayProgress& whole) : whole_(whole) {}
    void half() { add(1); }
    void whole() { add(2); }
    // REQUIRED at the end.
    void finish() {
      whole_.add(halves_);
      halves_ = 0;
    }

   private:
    static constexpr std::uint64_t kHandOnEvery = 4096;
    void add(std::uint64_t halves) {
      halves_ += halves;
      if (halves_ >= kHandOnEvery) finish();
    }

    ReplayProgress& whole_;
    std::uint64_t halves_ = 0;
  };

 private:
  static constexpr std::uint64_t kTellEvery = std::uint64_t{128} * 1024;

  void tell() {
    told_ = done_;
    tell_(done_ / 2);
  }

  const Tell& tell_;
  emu::Mutex mutex_;
  std::uint64_t done_ = 0;  // halves
  std::uint64_t told_ = 0;
};

}  // namespace sp3::recovery

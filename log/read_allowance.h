// ReadAllowance: how much a scan may read in all, and how much of it keep in mind.
//
// Runs that overlap are read once for each of them. In a log that was written they are few: what is
// live does not overlap, and of what is history a session's head leaves one run. In a log that was
// made up every segment may claim all that follow, and reading would take time, and what was found
// memory, by the square of their number.
//
// Thread safety: all members by any thread. Each reader counts in a Reading of its own.
#pragma once

#include <cstdint>
#include <utility>

#include "base/atomic.h"

namespace sp3::log {

class ReadAllowance {
 public:
  // How many bytes may be read, and records and dependencies kept.
  ReadAllowance(std::uint64_t bytes, std::uint64_t kept) : bytes_(bytes), most_kept_(kept) {}

  // Relaxed, all of them: a sum that is known a little later lets a little more be read.
  void use(std::uint64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void keep(std::uint64_t count) { kept_.fetch_add(count, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t kept() const { return kept_.load(std::memory_order_relaxed); }
  void set(std::uint64_t used, std::uint64_t kept) {
    used_.store(used, std::memory_order_relaxed);
    kept_.store(kept, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_spent() const { return used() > bytes_ || kept() > most_kept_; }

 private:
  const std::uint64_t bytes_;
  const std::uint64_t most_kept_;
  base::Atomic<std::uint64_t> used_{0};
  base::Atomic<std::uint64_t> kept_{0};
};

// What one reader reads, told to the allowance in portions.
class Reading {
 public:
  explicit Reading(ReadAllowance& allowance) : allowance_(allowance) {}
  ~Reading() { tell(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // Returns whether anything more may be read.
  bool add(std::uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ < kPortion) return true;
    tell();
    return may_begin();
  }
  void keep(std::uint64_t count) { kept_ += count; }
  [[nodiscard]] bool may_begin() const { return !allowance_.is_spent(); }

 private:
  static constexpr std::uint64_t kPortion = std::uint64_t{64} * 1024;

  void tell() {
    allowance_.use(std::exchange(bytes_, 0));
    allowance_.keep(std::exchange(kept_, 0));
  }

  ReadAllowance& allowance_;
  std::uint64_t bytes_ = 0;
  std::uint64_t kept_ = 0;
};

}  // namespace sp3::log

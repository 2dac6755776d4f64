// PlainMemory: who has read and written memory that is not atomic, and whether that was ordered.
//
// Each core counts its accesses, and knows up to which number those of the others come before what
// it does now (its clock, which synchronisation hands on). An access races with an earlier one of
// another core if it does not know of that one, and one of the two is a write.
//
// Memory is looked at in words of eight bytes, each with its last write and the last read of each
// core since. After Flanagan, Freund: FastTrack, PLDI 2009, without its compression of reads.
//
// Thread safety: as Machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/memory_model.h"

namespace sp3::emu::sim {

class Machine;

class PlainMemory {
 public:
  explicit PlainMemory(const Machine& machine) : machine_(machine) {}

  // Of each core, by number, how many of its accesses come before what is done now; whose number is
  // missing, none.
  using Clock = std::vector<std::uint64_t>;

  // Each is the next access of `core`, which `clock` learns. `bytes` from `at` on.
  void read(std::uint32_t core, Clock& clock, const void* at, std::size_t bytes,
            const base::Site& site);
  void write(std::uint32_t core, Clock& clock, const void* at, std::size_t bytes,
             const base::Site& site);
  // The core reads there, and again when it says that this ends.
  void read_for_long(std::uint32_t core, Clock& clock, const void* at, std::size_t bytes,
                     const base::Site& site);
  void end_long_reads(std::uint32_t core, Clock& clock);
  // What was done there comes before everything.
  void forget(const void* at, std::size_t bytes) noexcept;

  // The first race in words; empty if there was none.
  [[nodiscard]] const std::string& race() const noexcept { return race_; }

  static void join(Clock& clock, const Clock& more);

 private:
  struct Access {
    std::uint64_t number;
    std::uint32_t core;
    base::Site site;
    std::uint64_t event;  // the last before it
  };
  struct Word {
    std::optional<Access> write;
    std::vector<Access> reads;  // at most one of each core
  };
  struct LongRead {
    const void* at;
    std::size_t bytes;
    base::Site site;
  };

  template <class Action>
  void for_each_word(const void* at, std::size_t bytes, Action action);
  Access next_access(std::uint32_t core, Clock& clock, const base::Site& site) const;
  void check(const Clock& clock, const Access& earlier, const char* earlier_did, const Access& now,
             const char* does);

  const Machine& machine_;
  std::unordered_map<std::uintptr_t, Word> words_;
  std::vector<std::vector<LongRead>> long_reads_;  // by core
  std::string race_;
};

}  // namespace sp3::emu::sim

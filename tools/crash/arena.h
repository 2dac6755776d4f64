// Arena: one pool that is crashed again and again, and the oracle that watches it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/crash/oracle.h"
#include "tools/crash/process.h"
#include "tools/crash/victim.h"
#include "tools/crash/watch.h"
#include "workloads/pool_remover.h"
#include "workloads/rng.h"

namespace sp3::tools::crash {

struct ArenaOptions {
  std::filesystem::path path;
  Plan plan;
  bool asynchronous = false;
  MemoryKind memory = MemoryKind::emulated;
  std::optional<RangeLockKind> range_lock;  // of ranged objects; none: either, for each victim anew
  std::uint64_t seed = 1;                   // for how and when to kill
  std::chrono::seconds deadline{120};       // a victim that is silent for so long hangs
};

struct RoundResult {
  RecoveryStrategy strategy = RecoveryStrategy::stamp;
  std::string death;  // how the victim died, for people
  unsigned kills = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t survivors = 0;  // unacknowledged ones that survived
  std::uint64_t records = 0;    // found by the recovery that was checked
  std::uint64_t dropped = 0;
  std::vector<std::string> violations;
};

// Its files go with it, also where a signal ends the process, unless they are kept.
class Arena {
 public:
  static constexpr std::uint64_t kPoolSize = 16 << 20;
  static constexpr unsigned kFiles = 2;  // the pool and its copy

  explicit Arena(ArenaOptions options);

  // Makes the pool. Returns violations; throws if there cannot be such a pool here.
  std::vector<std::string> create();
  // Opens and checks the pool, runs transactions, kills, recovers by `strategy`, checks again.
  RoundResult round(RecoveryStrategy strategy);
  // Opens, checks and closes the pool, then looks for damage and leaked objects.
  RoundResult finish(RecoveryStrategy strategy);

  [[nodiscard]] const ArenaOptions& options() const { return options_; }
  // The pool as it was when the last victim died, before it was recovered.
  [[nodiscard]] std::filesystem::path crashed_copy() const;
  void keep_files() noexcept;

 private:
  // What came of one victim.
  struct Life {
    bool told = false;  // the dump was complete and verified
    bool closed = false;
    bool killed_itself = false;  // at an armed step
    std::uint64_t items = 0;     // values or keys in the dump
  };

  class Receiver;

  VictimOptions victim(VictimMode mode, RecoveryStrategy strategy);
  // Follows a victim until it is gone; kills it `lifetime_ms` after it is ready (told, for `tell`),
  // and where it hangs.
  Life follow(const VictimOptions& options, double lifetime_ms, RoundResult& result);
  [[nodiscard]] std::string describe_hang(const VictimOptions& options, const Life& life,
                                          const Watch& watch, pid_t pid) const;
  void judge_end(const VictimOptions& options, bool killed, int status, Life& life,
                 RoundResult& result);
  void arm_running(VictimOptions& options, RoundResult& result);
  void recover(RecoveryStrategy strategy, RoundResult& result);
  void check_closed_pool(const Life& life, RoundResult& result);

  ArenaOptions options_;
  std::array<workloads::PoolRemover, kFiles> files_;
  workloads::Rng rng_;
  unsigned window_;
  Oracle oracle_;
  std::uint64_t empty_objects_ = 0;  // objects in the pool while the structure holds nothing
};

}  // namespace sp3::tools::crash

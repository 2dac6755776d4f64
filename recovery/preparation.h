// Preparation: everything that can be found wrong with the kept records is found before the first
// byte of a home changes, and the writes are sorted into shards on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/align.h"
#include "base/hash.h"
#include "emu/executor.h"
#include "log/log_scanner.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

// What is replayed: the first `kept` records of each prefix.
struct Selection {
  const std::byte* file = nullptr;
  std::span<const log::LogPrefix> prefixes;
  std::span<const std::uint64_t> kept;
};

// A write entry to replay.
struct WriteRef {
  base::Stamp stamp = 0;
  std::uint64_t offset = 0;  // of its WriteHeader in the file
};
static_assert(sizeof(WriteRef) == 16);

// A record that contradicts the pool.
struct BadRecord {
  std::size_t prefix = 0;
  std::uint64_t record = 0;
  std::uint64_t offset = 0;
  std::string what;
};

struct Preparation {
  // A stretch of one prefix's records. Stretches are in prefix order, then record order.
  struct Stretch {
    std::size_t prefix = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<std::vector<WriteRef>> shards;  // by shard: its writes, in stamp order
  };
  std::uint32_t shards = 1;
  std::vector<Stretch> stretches;
  std::vector<BadRecord> bad;  // the first of each prefix that has one, in their order
  std::uint64_t transactions = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes = 0;  // of records

  // How many writes each shard has.
  [[nodiscard]] std::vector<std::uint64_t> by_shard() const;
};

// The shard that a slot belongs to: all its writes are replayed by one thread. Slots of one page go
// together.
inline std::uint32_t shard_of(std::uint64_t slot, std::uint32_t shards) {
  const std::uint64_t mixed = base::spread(slot / base::kPage);
  return static_cast<std::uint32_t>(((mixed >> 32) * shards) >> 32);
}

// Checks all writes and carves `plan` as the makes among them say.
Preparation prepare(const Selection& selection, SlabPlan& plan, std::uint32_t shards,
                    emu::Executor& executor);

}  // namespace sp3::recovery

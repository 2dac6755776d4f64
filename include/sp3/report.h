// What recovery, check and info tell.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <sp3/detail/export.h>
#include <sp3/options.h>

namespace sp3 {

// Something in a pool file that should not be as it is.
struct Damage {
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::string what;          // one sentence, with what was wanted and found
};

// Why a record in the log was not replayed.
struct DroppedRecord {
  std::uint16_t session = 0;
  std::uint64_t lsn = 0;
  std::uint64_t stamp = 0;
  std::string reason;
};

struct RecoveryReport {
  bool was_clean = true;  // the pool had been closed; nothing was replayed
  RecoveryStrategy strategy = RecoveryStrategy::stamp;  // the one that replayed
  std::uint32_t threads = 0;
  std::uint64_t sessions = 0;  // logs with at least one transaction
  // Complete records of transactions above the checkpoint, also those behind a torn or damaged one.
  // Watermarks are not counted, here and below.
  std::uint64_t records = 0;
  std::uint64_t replayed = 0;  // of these
  // The others: a predecessor is missing or dropped, a record before it in its log is torn or
  // damaged, or one of its log contradicts the slab it writes to.
  std::uint64_t dropped = 0;
  // logs that end in an incomplete record (normal after a crash)
  std::uint64_t torn = 0;
  std::uint64_t dependencies = 0;  // edges between sessions among the records
  std::uint64_t bytes_scanned = 0;
  std::uint64_t bytes_replayed = 0;
  std::uint64_t checkpoint_floor = 0;  // L at the start
  std::uint64_t largest_stamp = 0;     // anywhere on media, dropped records included
  double scan_seconds = 0;
  double cut_seconds = 0;
  double order_seconds = 0;  // checking and dealing out writes; dag: building the graph as well
  double replay_seconds = 0;
  double flush_seconds = 0;
  double total_seconds = 0;
  std::vector<DroppedRecord> dropped_records;  // the first 1000
  std::vector<Damage> damage;                  // empty unless accept_loss was given; the first 1000
  std::uint64_t more_damage = 0;               // places that `damage` leaves out
};

struct CheckReport {
  bool clean = false;       // closed cleanly (not the same as sound)
  std::uint64_t slabs = 0;  // carved slabs checked
  std::uint64_t objects = 0;
  // complete records of transactions in the log, but for those behind a torn or damaged one
  std::uint64_t records = 0;
  std::vector<Damage> damage;     // the first 1000
  std::uint64_t more_damage = 0;  // places that `damage` leaves out
  [[nodiscard]] bool sound() const noexcept { return damage.empty(); }
};

struct PoolInfo {
  std::string path;
  std::array<std::uint8_t, 16> uuid{};
  std::uint32_t format_version = 0;
  std::uint32_t compat_features = 0;
  std::uint32_t ro_compat_features = 0;
  std::uint32_t incompat_features = 0;
  std::uint64_t size = 0;
  Geometry geometry;
  std::uint64_t generation = 0;         // grows with every opening
  std::uint64_t checkpoint_number = 0;  // grows with every checkpoint
  std::uint64_t checkpoint_floor = 0;   // L, of the last checkpoint: all records up to it are home
  bool clean = false;
  std::uint64_t slabs_total = 0;
  // As of the last checkpoint, of a pool that is open as well (PoolStatistics::slabs_used is of
  // now): slabs that belong to a type, empty ones included, and what they hold.
  std::uint64_t slabs_carved = 0;
  std::uint64_t objects = 0;
};

// The UUID as 8-4-4-4-12 lower-case hexadecimal digits.
SP3_API std::string format_uuid(const std::array<std::uint8_t, 16>& uuid);

}  // namespace sp3

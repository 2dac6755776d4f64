// What a program may choose when it creates or opens a pool. Every member has a default that is
// right for most programs. Impossible values of what they use are reported as
// Error{invalid_argument} by create and open, with the option, the value wanted and the value found.
// Limits are told at each member; where nothing is said of 0, it is not special.
//
//     const sp3::Options options{.memory = sp3::MemoryKind::emulated, .recovery = {.threads = 1}};
//
// Every member has an initialiser, if an empty one: -Wextra warns of those that have none and are
// not named.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include <sp3/detail/export.h>

namespace sp3 {

// Where the pool's bytes live and what makes them durable.
enum class MemoryKind : std::uint8_t {
  automatic,  // dax where libpmem says the file is persistent memory, else file
  dax,        // persistent memory, flushed by the CPU; survives power loss
  // any file: the log by writes through to the disk, homes by the checkpointer; survives power loss
  file,
  emulated,  // a DRAM-backed mapping with real flush instructions and timed latency; survives a
             // crash of the process, not of the machine
};

// When an emulated flush pays the latency that persistent memory would have.
enum class LatencyModel : std::uint8_t {
  line,   // after every flushed line (clflush waits for each)
  fence,  // once at every fence that follows a flush (clwb and clflushopt overlap)
  yield,  // as fence, but the waiting thread offers its core to others until the time has come
};

// What makes the log and metadata durable. Checkpoints and recovery store whole lines of objects
// past the caches whatever is chosen here, except with clflush and none, and in `file` memory.
enum class FlushInstruction : std::uint8_t {
  automatic,  // non_temporal; with dax none, where libpmem says that the platform flushes caches
  clflush,
  clflushopt,
  clwb,
  non_temporal,  // records of synchronous commits by streaming stores, past the caches; all else by
                 // the best flush that CPUID offers: clwb, clflushopt, clflush
  none,          // the platform flushes caches at power loss (eADR): only fence
};

// When a transaction's effects become visible relative to its log record becoming durable.
enum class CommitPolicy : std::uint8_t {
  // SP3: visible first, durable after, acknowledged when all predecessors are durable
  speculative,
  conservative,   // NVM-TX: durable first, visible after
  ideal,          // NVM-Ideal: no concurrency control. NOT SAFE with more than one session; for
                  // comparison only; make and destroy are refused
  volatile_only,  // DRAM-TX: nothing is logged and nothing survives; for comparison only
};

enum class LockTiming : std::uint8_t {
  commit,     // write locks are taken at commit, in address order
  encounter,  // write locks are taken at the first write of each object, as in the paper
};

enum class RecoveryStrategy : std::uint8_t {
  stamp,  // each thread replays a shard of the objects, by the stamps of what was written to them
  // the paper's: build the dependency DAG and replay it in parallel topological order. A log of some
  // 100 GiB or more is replayed by stamp. oneTBB, which walks the graph with several threads, may
  // wait for ever, then and in later recoveries of the process, if it finds no memory.
  dag,
};

// What holds the ranges that transactions write in ranged objects; docs/RANGE_LOCKS.md says when to
// take which.
enum class RangeLockKind : std::uint8_t {
  skiplist,  // the same cost for ranges of every size
  grid,      // cheaper for ranges up to a few KiB
};

// The shape of a pool file, fixed when it is created. All sizes are in bytes and powers of two
// where noted; zero means "chosen from the size of the pool".
struct Geometry {
  std::uint64_t log_size = 0;      // bytes for all logs together
  std::uint32_t segment_size = 0;  // a session's log grows by segments; power of two, >= 4096
  std::uint32_t slab_size = 0;     // objects of one type share slabs; power of two, >= 4096
  std::uint32_t max_sessions = 0;  // sessions that may be open at once, 1 to 16383
};

// For MemoryKind::emulated. FlushInstruction::none is charged like the others, for the lines that
// they would have flushed.
struct Latency {
  LatencyModel model = LatencyModel::fence;
  std::uint32_t nanoseconds = 0;           // added by the model, at most 0.1 s; 0 adds nothing
  std::uint32_t per_line_nanoseconds = 0;  // bandwidth cost, added per line at the fence; likewise
};

struct CheckpointOptions {
  std::uint32_t interval_ms = 1000;  // 0: no checkpoints by time
  // a checkpoint starts when this much of the log is in use: 1 to 100
  std::uint32_t log_percent = 50;
  // false: only on request, when a session finds the log or the pool full, and at close
  bool background = true;
  // that bring objects home together, while a checkpoint does: at most 64; 0: one for each eight
  // cores, begun ones counted, at most eight
  std::uint32_t threads = 0;
};

// When run_async flushes its log.
struct AsyncOptions {
  std::uint32_t group_records = 32;       // at this many sealed records: 1 to 512,
  std::uint32_t group_bytes = 64 * 1024;  // at this many bytes: at least 1,
  // or, by the flusher, after one to two times this: 1 to 60,000,000
  std::uint32_t group_microseconds = 500;
};

// Progress of recovery, called from one thread at a time, often enough to draw a bar.
struct Progress {
  const char* phase = "";  // "scan", "cut", "replay", "flush"
  // bytes ("scan"), records ("cut", all at once) or writes ("replay"); "flush" is not begun or over
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

struct RecoveryReport;

struct RecoveryOptions {
  RecoveryStrategy strategy = RecoveryStrategy::stamp;
  std::uint32_t threads = 0;  // at most 4096; 0: as many as there are cores
  // Recover the largest dependency-closed set of a damaged log; leave damaged bitmaps that the log
  // does not change as they are.
  bool accept_loss = false;
  // What it throws leaves `open`, perhaps after other calls of it; the next one recovers.
  std::function<void(const Progress&)> progress{};
  // Called once when it is known what recovery will do, before it writes anything: damage and
  // dropped records are in the report, and are final soon after this returns; most times are not in
  // it yet. What it throws leaves `open`, with the pool as it was. For a pool that was closed
  // called only if something is given up.
  std::function<void(const RecoveryReport&)> assessed{};
};

struct Options {
  MemoryKind memory = MemoryKind::automatic;
  Latency latency{};
  FlushInstruction flush = FlushInstruction::automatic;
  CommitPolicy policy = CommitPolicy::speculative;
  LockTiming locks = LockTiming::commit;
  RangeLockKind range_lock = RangeLockKind::skiplist;
  Geometry geometry{};  // for create; open takes the pool's own
  CheckpointOptions checkpoint{};
  AsyncOptions async{};
  RecoveryOptions recovery{};
  // a log that is idle is covered by a durable watermark after one to two times this, one in a new
  // run after once at most; 0: never
  std::uint32_t watermark_ms = 10;
  // aborts of one transaction before it takes the serial gate: at least 1
  std::uint32_t serial_after_aborts = 64;
  // Create and open map pages of the log ahead for up to so long (dax, emulated; kernels from 5.14
  // on): the first transaction to touch one waits for the system, 1 us, or 12 where a hypervisor
  // has to be asked as well. What is not reached is mapped as it is used. 0: nothing is.
  std::uint32_t prefault_ms = 20;
  // a transaction pinned longer is counted (PoolStatistics): at least 1
  std::uint32_t long_transaction_ms = 1000;
  std::optional<std::array<std::uint8_t, 16>> expect_uuid{};  // open: only this very pool
};

SP3_API const char* to_string(MemoryKind) noexcept;
SP3_API const char* to_string(LatencyModel) noexcept;
SP3_API const char* to_string(FlushInstruction) noexcept;
SP3_API const char* to_string(CommitPolicy) noexcept;
SP3_API const char* to_string(LockTiming) noexcept;
SP3_API const char* to_string(RangeLockKind) noexcept;
SP3_API const char* to_string(RecoveryStrategy) noexcept;

}  // namespace sp3

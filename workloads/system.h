// System: what every compared system looks like to a benchmark.
//
// A System is one store that holds one workload's data; a Client is one thread's way into it. The
// hot path is Client::execute: one indirect call per transaction, everything below it is the
// system's own code for that workload and entry size.
//
// Thread safety: a System's members by one thread while no client runs; different clients in
// parallel.
// Lifetime: clients end before close(). create or open, then connect as often as wanted, then
// close.
// Errors: sp3::Error or std::runtime_error, with one line that says what failed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sp3/options.h>

#include "workloads/contents.h"
#include "workloads/workload.h"

namespace sp3::workloads {

// How a store is to be set up; what a system has no notion of, it ignores.
struct SystemOptions {
  std::filesystem::path path;   // of the pool file; replaced if it is there
  std::uint64_t pool_size = 0;  // bytes; 0: chosen from the workload
  bool asynchronous = false;    // acknowledge when visible; durable in groups
  bool simulated = false;       // the path is on a simulated machine
  Options pool;                 // memory, latency, flush, locks, groups, checkpoints
};

// What one client did since it connected, by the thread that runs it.
struct ClientCounters {
  std::uint64_t commits = 0;
  std::uint64_t writing_commits = 0;
  std::uint64_t aborts = 0;  // attempts that were thrown away
  std::uint64_t lines = 0;   // flushed on the commit path
  std::uint64_t fences = 0;
  std::uint64_t helped_lines = 0;  // flushed for other clients
  std::uint64_t helped_fences = 0;
  std::uint64_t waits = 0;  // commits that waited for a predecessor
  std::uint64_t log_bytes = 0;

  ClientCounters& operator+=(const ClientCounters& other);
  ClientCounters& operator-=(const ClientCounters& other);
};

// Work outside the commit path, since create.
struct BackgroundCounters {
  std::uint64_t checkpoints = 0;
  std::uint64_t checkpoint_lines = 0;
  std::uint64_t checkpoint_fences = 0;
  std::uint64_t checkpoint_longest_ns = 0;
  std::uint64_t flusher_lines = 0;
  std::uint64_t flusher_fences = 0;

  BackgroundCounters& operator-=(const BackgroundCounters& other);
};

class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // Runs one operation as one transaction. Returns whether it found what it was for: a search and
  // a modify their key, a scan an entry, a dequeue a value, a transfer enough on the account, a
  // new-order all its items; true for all others. Synchronous systems: durable on return.
  virtual bool execute(const Operation& operation) = 0;
  // Of a map: the tag of the entry that was read last, of a scan of its last.
  [[nodiscard]] virtual std::uint64_t last_tag() const { return 0; }
  // Everything executed is durable when this returns.
  virtual void drain() {}
  [[nodiscard]] virtual ClientCounters counters() const = 0;
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  // Makes an empty store for the workload, replacing any at the path.
  virtual void create(const WorkloadSpec& spec, const SystemOptions& options) = 0;
  // Finds the store that create() made earlier with the same spec, closed or left behind by a
  // process that died, and recovers it. REQUIRES: the system is durable.
  virtual void open(const WorkloadSpec& spec, const SystemOptions& options) = 0;
  // Fills it with what the workload starts from. Once, after create.
  virtual void populate() = 0;
  virtual std::unique_ptr<Client> connect() = 0;
  [[nodiscard]] virtual BackgroundCounters background() const = 0;
  // Empty if the data structure's own invariants hold; else a sentence that names the violation.
  virtual std::string check_structure() = 0;
  // Shows every item: an array in the order of its indices, a queue from its front, a map in any.
  virtual void visit(const ItemVisitor& visitor) = 0;
  // Makes everything durable and lets go of the files.
  virtual void close() = 0;
};

struct SystemInfo {
  std::string_view name;
  std::string_view what;    // one line
  bool durable = true;      // whether what it acknowledges survives a crash
  bool has_async = false;   // whether SystemOptions::asynchronous means something
  bool has_ranges = false;  // whether it has ranged objects
  bool isolates = true;     // whether several clients leave what whole transactions leave
  unsigned most_clients = kMostThreads;  // at once
};

// All systems in this build.
const std::vector<SystemInfo>& systems();
// Throws std::invalid_argument, with the names there are, for any other.
const SystemInfo& system_info(std::string_view name);
std::unique_ptr<System> make_system(std::string_view name);
// Empty if the system can run the workload with these options and so many clients; else the reason
// why not.
std::string why_unsupported(std::string_view name, const WorkloadSpec& spec,
                            const SystemOptions& options, unsigned clients = 1);

// Why a system whose structures serve Table I alone does not run one of several rows.
std::string why_no_application(std::string_view name, WorkloadKind kind);

// Empty if the structure's invariants hold and its contents are what whole transactions of the
// workload, run by threads below `producers`, leave; else a sentence that names the violation.
std::string check(System& system, const WorkloadSpec& spec, unsigned producers = kMostThreads);
// The same after a run by so many clients of the named system; without the contents if it does not
// isolate them from each other.
std::string check_run(std::string_view name, System& system, const WorkloadSpec& spec,
                      unsigned clients);

// Bytes that hold the workload's data, with links, bitmaps and half-full nodes.
std::uint64_t data_size(const WorkloadSpec& spec);
// A pool size that holds the workload's data, the versions a run adds, and a log of moderate size.
std::uint64_t default_pool_size(const WorkloadSpec& spec);

}  // namespace sp3::workloads

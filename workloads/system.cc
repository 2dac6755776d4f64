#include "workloads/system.h"

#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "workloads/systems/keyvalue/system.h"
#include "workloads/systems/mnemosyne.h"
#include "workloads/systems/quadra.h"
#include "workloads/systems/runtime_system.h"
#include "workloads/tpcc/initial.h"
#ifdef SP3_WITH_PMDK
#include "workloads/systems/pmdk/pmdk_system.h"
#endif

namespace sp3::workloads {

namespace {

constexpr std::uint64_t ClientCounters::*kClientCounters[] = {
    &ClientCounters::commits,       &ClientCounters::writing_commits, &ClientCounters::aborts,
    &ClientCounters::lines,         &ClientCounters::fences,          &ClientCounters::helped_lines,
    &ClientCounters::helped_fences, &ClientCounters::waits,           &ClientCounters::log_bytes,
};
static_assert(sizeof(ClientCounters) == std::size(kClientCounters) * sizeof(std::uint64_t));

}  // namespace

ClientCounters& ClientCounters::operator+=(const ClientCounters& other) {
  for (const auto counter : kClientCounters) this->*counter += other.*counter;
  return *this;
}

ClientCounters& ClientCounters::operator-=(const ClientCounters& other) {
  for (const auto counter : kClientCounters) this->*counter -= other.*counter;
  return *this;
}

BackgroundCounters& BackgroundCounters::operator-=(const BackgroundCounters& other) {
  checkpoints -= other.checkpoints;
  checkpoint_lines -= other.checkpoint_lines;
  checkpoint_fences -= other.checkpoint_fences;
  flusher_lines -= other.flusher_lines;
  flusher_fences -= other.flusher_fences;
  return *this;  // the longest checkpoint is not a sum: it stays
}

namespace {

// A system and what is known of it before it is made.
struct Listed {
  SystemInfo info;
  std::unique_ptr<System> (*make)();
  // As why_unsupported() below, of what is particular to the system.
  std::string (*why_unsupported)(const WorkloadSpec& spec, const SystemOptions& options);
};

template <CommitPolicy policy, bool asynchronous = false>
std::unique_ptr<System> make_runtime() {
  return make_runtime_system({policy, asynchronous});
}

#if defined(SP3_WITH_LMDB) || defined(SP3_WITH_ROCKSDB) || defined(SP3_WITH_SQLITE)
template <keyvalue::OpenStore open>
std::unique_ptr<System> make_keyvalue() {
  return keyvalue::make_system(open);
}
#endif

std::string runs_everything(const WorkloadSpec&, const SystemOptions&) { return {}; }

std::string only_updates(const WorkloadSpec& spec, const SystemOptions&) {
  if (spec.kind == WorkloadKind::queue) return "nvm-ideal cannot make or destroy queue nodes";
  if (is_application(spec.kind)) {
    return fmt::format("nvm-ideal does not isolate transactions, which {} is about",
                       to_string(spec.kind));
  }
  if (adds_keys(spec.mix)) {
    return fmt::format("nvm-ideal only updates: it cannot add the keys of {}", to_string(spec.mix));
  }
  if (spec.fill < 1.0) return "nvm-ideal only updates: it needs all keys present (--fill 1)";
  return {};
}

// Adding a system: one entry here.
const std::vector<Listed>& listed() {
  static const std::vector<Listed> all = {
      {{"sp3", "this library: visible first, durable after, acknowledged in order", true, true,
        true},
       make_runtime<CommitPolicy::speculative>,
       runs_everything},
      {{"sp3-async", "this library, acknowledged when visible, made durable in groups", true, true,
        true},
       make_runtime<CommitPolicy::speculative, true>,
       runs_everything},
      {{"nvm-tx", "same runtime, but durable before it unlocks", true, false, true},
       make_runtime<CommitPolicy::conservative>,
       runs_everything},
      {{"nvm-ideal", "same runtime without concurrency control; updates only, not safe", true,
        false, true, false},
       make_runtime<CommitPolicy::ideal>,
       only_updates},
      {{"dram-tx", "same runtime without persistence", false, false, true},
       make_runtime<CommitPolicy::volatile_only>,
       runs_everything},
#ifdef SP3_WITH_PMDK
      {{"pmdk", "libpmemobj: undo log, locks held to commit", true, false},
       make_pmdk,
       why_not_pmdk},
#endif
#ifdef SP3_WITH_LMDB
      {{"lmdb", "LMDB: a B+ tree copied on write, one writer at a time", true, true},
       make_keyvalue<keyvalue::open_lmdb>,
       keyvalue::why_not},
#endif
#ifdef SP3_WITH_ROCKSDB
      {{"rocksdb", "RocksDB's TransactionDB: a log-structured tree with a log", true, true},
       make_keyvalue<keyvalue::open_rocksdb>,
       keyvalue::why_not},
#endif
#ifdef SP3_WITH_SQLITE
      {{"sqlite", "SQLite in WAL mode", true, true},
       make_keyvalue<keyvalue::open_sqlite>,
       keyvalue::why_not},
#endif
      {{.name = "mnemosyne",
        .what = "re-implemented from ASPLOS 2011: word-based STM, redo logs with torn bits",
        .most_clients = kMnemosyneClients},
       make_mnemosyne,
       why_not_mnemosyne},
      {{"quadra", "re-implemented from PPoPP 2021: data beside its backup, one fence, combining"},
       make_quadra,
       why_not_quadra},
  };
  return all;
}

std::string why_not_mixed(const WorkloadSpec& spec) {
  if (spec.mix == Mix::paper || spec.kind == WorkloadKind::bptree) return {};
  if (spec.kind != WorkloadKind::hashtable) {
    return fmt::format("{} is a mix for hashtable and bptree", to_string(spec.mix));
  }
  if (scans(spec.mix))
    return fmt::format("{} scans, and a hash table has no order", to_string(spec.mix));
  return {};
}

const Listed& find_listed(std::string_view name) {
  for (const Listed& candidate : listed()) {
    if (candidate.info.name == name) return candidate;
  }
  std::vector<std::string_view> names;
  for (const SystemInfo& info : systems()) names.push_back(info.name);
  throw std::invalid_argument(
      fmt::format("system: wanted one of {}, found '{}'", fmt::join(names, ", "), name));
}

}  // namespace

const std::vector<SystemInfo>& systems() {
  static const std::vector<SystemInfo> infos = [] {
    std::vector<SystemInfo> all;
    for (const Listed& entry : listed()) all.push_back(entry.info);
    return all;
  }();
  return infos;
}

const SystemInfo& system_info(std::string_view name) { return find_listed(name).info; }

std::unique_ptr<System> make_system(std::string_view name) { return find_listed(name).make(); }

std::string why_unsupported(std::string_view name, const WorkloadSpec& spec,
                            const SystemOptions& options, unsigned clients) {
  const Listed& system = find_listed(name);
  if (clients > system.info.most_clients) {
    return fmt::format("{} serves at most {} threads, not {}", name, system.info.most_clients,
                       clients);
  }
  if (options.asynchronous && !system.info.has_async) {
    return fmt::format("{} has no asynchronous commit", name);
  }
  if (std::string reason = why_not_mixed(spec); !reason.empty()) return reason;
  if (spec.kind == WorkloadKind::ranges && !system.info.has_ranges) {
    return fmt::format("{} has no ranged objects", name);
  }
  return system.why_unsupported(spec, options);
}

std::string why_no_application(std::string_view name, WorkloadKind kind) {
  return fmt::format(
      "{}'s structures here serve one operation a transaction each; {} is of several", name,
      to_string(kind));
}

std::string check(System& system, const WorkloadSpec& spec, unsigned producers) {
  std::string violation = system.check_structure();
  if (!violation.empty()) return violation;
  ContentsCheck contents(spec, producers);
  system.visit([&](const Item& item) { return contents.add(item); });
  return contents.violation();
}

std::string check_run(std::string_view name, System& system, const WorkloadSpec& spec,
                      unsigned clients) {
  const bool whole = clients == 1 || system_info(name).isolates;
  return whole ? check(system, spec, clients) : system.check_structure();
}

std::uint64_t data_size(const WorkloadSpec& spec) {
  if (spec.kind == WorkloadKind::tpcc) return tpcc::data_size(spec.warehouses);
  // What comes on top is less than the entry again plus 128 bytes.
  return spec.key_space() * (2 * std::uint64_t{spec.entry_size} + 128);
}

std::uint64_t default_pool_size(const WorkloadSpec& spec) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  return (256 * kMiB + 2 * data_size(spec) + kMiB - 1) / kMiB * kMiB;
}

}  // namespace sp3::workloads

// Mnemosyne's store: making, opening, recovery, and the log manager.
#include "workloads/systems/mnemosyne/engine.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include <sp3/error.h>

namespace sp3::workloads::mnemosyne {

namespace {

constexpr std::uint64_t kMagic = 0x3176'656e'736f'6d6e;  // "nmosnev1"

std::uint64_t load_u64(const emu::Memory& memory, std::uint64_t offset) {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(memory.log_view(offset)),
                         __ATOMIC_RELAXED);
}

// The log words of one log.
auto log_loader(const emu::Memory& memory, std::uint64_t base) {
  return [&memory, base](std::uint64_t index) {
    return load_u64(memory, base + index * sizeof(std::uint64_t));
  };
}

void store_and_flush(emu::Memory& memory, std::uint64_t offset, std::uint64_t value,
                     emu::FlushCounts& counts) {
  memory.store_word(offset, value);
  static_cast<void>(memory.log_flush(offset, sizeof value, false, counts));
}

}  // namespace

Engine::Engine(const std::filesystem::path& path, std::uint64_t size, const Options& options)
    : file_(word_tm::StoreFile::create(path, std::max(size, Layout::kLeast))),
      words_(file_.map(options, options.flush)),
      logs_(file_.map(options, FlushInstruction::non_temporal)),
      layout_(file_.size()),
      heap_(layout_.words, Tx::kGrain),
      locks_(std::make_unique<Lock[]>(kLocks)) {
  Client client(*this);
  const auto format = [&](Tx& tx) {
    heap_.format(tx);
    return true;
  };
  update(client, Body(format));
  file_.complete(*words_, kMagic);
  start_manager();
}

Engine::Engine(const std::filesystem::path& path, const Options& options)
    : file_(word_tm::StoreFile::open(path, kMagic)),
      words_(file_.map(options, options.flush)),
      logs_(file_.map(options, FlushInstruction::non_temporal)),
      layout_(file_.size()),
      heap_(layout_.words, Tx::kGrain),
      locks_(std::make_unique<Lock[]>(kLocks)) {
  recover(path.string());
  start_manager();
}

Engine::~Engine() { close(); }

void Engine::close() {
  if (!manager_.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  wanted_.notify_all();
  manager_.join();
}

// All whole records that are not truncated, in the order of their times.
std::vector<Record> Engine::read_logs() const {
  const std::uint64_t truncated = load_u64(*words_, Layout::kTruncated);
  const std::uint64_t capacity = layout_.log_capacity();
  std::vector<Record> records;
  for (std::uint64_t log = 0; log < Layout::kLogs; ++log) {
    const auto load = log_loader(*logs_, layout_.log_at(log));
    std::uint64_t at = load_u64(*words_, Layout::head_at(log));
    for (;;) {
      std::optional<Record> record = read_record(load, capacity, at);
      if (!record) break;
      at = record->end;
      if (record->time > truncated) records.push_back(std::move(*record));
    }
  }
  std::ranges::sort(records, {}, &Record::time);
  return records;
}

// Replays the logs, makes the words durable, then the time up to which they were replayed; only
// then are the logs cleared. A crash before that time is on media replays the same records again,
// one after it none of them.
void Engine::recover(const std::string& path) {
  emu::FlushCounts counts;
  std::uint64_t latest = load_u64(*words_, Layout::kTruncated);
  for (const Record& record : read_logs()) {
    for (const Stored& stored : record.stores) {
      if (stored.at >= layout_.words) {
        ErrorFacts facts;
        facts.path = path;
        facts.wanted = "a word below " + std::to_string(layout_.words);
        facts.found = std::to_string(stored.at);
        throw Error(ErrorCode::damaged_log, "a record names a word outside the store", facts);
      }
      store_and_flush(*words_, layout_.word_at(stored.at), stored.value, counts);
    }
    latest = record.time;
  }
  static_cast<void>(words_->fence(counts));
  store_and_flush(*words_, Layout::kTruncated, latest, counts);
  static_cast<void>(words_->fence(counts));
  for (std::uint64_t log = 0; log < Layout::kLogs; ++log) clear_log(log, counts);
  static_cast<void>(words_->fence(counts));         // before a client may write to a log
  clock_.store(latest, std::memory_order_relaxed);  // before any client
  truncated_ = latest;
}

// Leaves no word that a record from the head on could use: what is there of one that a crash cut,
// whose time may be given out again, would pass for words of the next one written in its place.
//
// A word is cleared by giving it the torn bit that is wrong from the head on, and the head stays:
// so whatever part of the clearing a crash leaves, fewer records are whole than before, never more.
// Zeros would be right on every second pass, and complete a record that was cut; and from position
// 0 on, in the log as it was before, a word in the middle of a record would be taken for the time
// of one.
void Engine::clear_log(std::uint64_t log, emu::FlushCounts& counts) {
  const std::uint64_t capacity = layout_.log_capacity();
  const auto load = log_loader(*logs_, layout_.log_at(log));
  const std::uint64_t head = load_u64(*words_, Layout::head_at(log));
  for (std::uint64_t at = head; at < head + capacity; ++at) {
    const std::uint64_t expected = torn_bit(at, capacity);
    if ((load(at % capacity) & kTornBit) != expected) continue;
    const std::uint64_t offset = layout_.log_at(log) + at % capacity * sizeof(std::uint64_t);
    store_and_flush(*words_, offset, expected ^ kTornBit, counts);
  }
  // A killed process may have stored it only: with an older one after a power failure, the words
  // that are written over from here on would hide all behind them.
  store_and_flush(*words_, Layout::head_at(log), head, counts);
  // relaxed: before any client and the manager.
  slots_[log].head.store(head, std::memory_order_relaxed);
  slots_[log].tail.store(head, std::memory_order_relaxed);
}

void Engine::start_manager() {
  manager_ = emu::Thread([this] { manage_logs(); });
}

void Engine::manage_logs() {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      wanted_.wait(lock,
                   [this] { return truncation_wanted_.load(std::memory_order_relaxed) || stop_; });
      last = stop_;
      truncation_wanted_.store(false, std::memory_order_relaxed);
    }
    truncate_logs();
  }
}

void Engine::want_truncation() {
  // relaxed: whoever misses that it is wanted already only says so again.
  if (truncation_wanted_.load(std::memory_order_relaxed)) return;
  const std::lock_guard guard(mutex_);
  truncation_wanted_.store(true, std::memory_order_relaxed);
  wanted_.notify_all();
}

// P3: the time is durable before any head moves: a record that is replayed although a later one of
// another log is gone would bring back old values. P4: a head is durable before its log is written
// over.
void Engine::truncate_logs() {
  // Before `active`: see Tx::commit.
  std::uint64_t bound = clock_.load(std::memory_order_seq_cst);
  for (const Slot& slot : slots_) {
    bound = std::min(bound, slot.active.load(std::memory_order_seq_cst) - 1);
  }
  if (bound <= truncated_) return;
  // After `active`: what finished by then is in the tails.
  std::array<std::uint64_t, Layout::kLogs> tails;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    tails[i] = slots_[i].tail.load(std::memory_order_acquire);  // (7)
  }
  emu::FlushCounts counts;
  store_and_flush(*words_, Layout::kTruncated, bound, counts);
  static_cast<void>(words_->fence(counts));  // P3
  truncated_ = bound;

  const std::uint64_t capacity = layout_.log_capacity();
  std::array<std::uint64_t, Layout::kLogs> heads;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    // relaxed: only this thread and recovery move heads.
    const std::uint64_t from = slots_[i].head.load(std::memory_order_relaxed);
    heads[i] = from;
    while (heads[i] < tails[i]) {
      Unpacker unpacker(log_loader(*logs_, layout_.log_at(i)), capacity, heads[i]);
      const std::optional<RecordHead> head = read_head(unpacker, capacity, heads[i]);
      SP3_ASSERT(head.has_value());
      if (!head || head->time > bound) break;
      heads[i] = head->end;
    }
    if (heads[i] == from) continue;
    store_and_flush(*words_, Layout::head_at(i), heads[i], counts);
  }
  static_cast<void>(words_->fence(counts));  // P4
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].head.store(heads[i], std::memory_order_release);  // (9)
  }
  const std::lock_guard guard(mutex_);
  manager_flushes_.lines += counts.lines;
  manager_flushes_.fences += counts.fences;
  ++truncations_;
}

BackgroundCounters Engine::background() const {
  const std::lock_guard guard(mutex_);
  BackgroundCounters all;
  all.checkpoints = truncations_;
  all.flusher_lines = manager_flushes_.lines;
  all.flusher_fences = manager_flushes_.fences;
  return all;
}

Engine::Client::Client(Engine& engine)
    : SlotClient(engine.places_, [](std::size_t) {}),
      engine_(engine),
      tail_(engine.slots_[slot_].tail.load(std::memory_order_acquire)) {}

}  // namespace sp3::workloads::mnemosyne

// A transaction of Mnemosyne's: reading, storing and the five steps of commit (engine.h).
//
// The steps and touches make the simulated machine charge what our runtime is charged: for each
// lock's words read the cost of reading an object, for those stored twice that of writing one (when
// they are put aside, and when they are written back). Natively instructions were counted; they
// agree roughly.
#include <algorithm>
#include <string>

#include <sp3/error.h>

#include "base/assert.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "emu/touch.h"
#include "workloads/systems/mnemosyne/engine.h"
#include "workloads/systems/word_tm/waiting.h"

namespace sp3::workloads::mnemosyne {

namespace {

constexpr std::uint64_t kHeldBit = 1;

// relaxed: the lock around it says whether the value counts; acquire keeps the second look at the
// lock after it.
std::uint64_t load_word(const std::uint64_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

void touch_words(Word at, emu::Access access) {
  emu::touch(emu::Line::word, at * sizeof(Word) / base::kCacheLine, access);
}
void touch_lock(std::size_t lock, emu::Access access) {
  emu::touch(emu::Line::word_lock, lock * sizeof(std::uint64_t) / base::kCacheLine, access);
}

}  // namespace

void Engine::Tx::begin() {
  client_.reads_.clear();
  client_.held_.clear();
  client_.writes_.clear();
  emu::step(emu::Step::epoch_pin);
  emu::touch(emu::Line::word_clock, 0, emu::Access::load);
  client_.snapshot_ = engine_.clock_.load(std::memory_order_acquire);  // (1) pairs with (4)
}

void Engine::Tx::load(Word at, std::uint64_t* to, std::size_t count) {
  constexpr std::size_t kStripe = std::size_t{1} << kWordsPerLockBits;
  while (count > 0) {
    const std::size_t part = std::min(count, kStripe - at % kStripe);
    load_stripe(at, to, part);
    at += part;
    to += part;
    count -= part;
  }
}

// Words under one lock.
void Engine::Tx::load_stripe(Word at, std::uint64_t* to, std::size_t count) {
  const std::size_t index = lock_of(at);
  const Lock& lock = engine_.locks_[index];
  emu::step(emu::Step::entry_read);
  for (;;) {
    touch_lock(index, emu::Access::check);
    const std::uint64_t before = lock.load(std::memory_order_acquire);  // (2) pairs with (5)
    if ((before & kHeldBit) != 0) {
      if (before != own_lock()) throw Restart{index};
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t* const stored = client_.writes_.find(at + i);
        to[i] = stored != nullptr ? *stored : load_word(engine_.home(at + i));
      }
      return;
    }
    if (before >> 1 > client_.snapshot_) {
      extend();
      continue;
    }
    touch_words(at, emu::Access::load);
    for (std::size_t i = 0; i < count; ++i) to[i] = load_word(engine_.home(at + i));
    // relaxed: after the acquire loads above.
    if (lock.load(std::memory_order_relaxed) != before) continue;
    if (client_.reads_.empty() || client_.reads_.back().lock != index) {
      client_.reads_.push_back({index, before >> 1});
    }
    return;
  }
}

void Engine::Tx::store(Word at, const std::uint64_t* from, std::size_t count) {
  std::size_t locked = kNoLock;
  for (std::size_t i = 0; i < count; ++i) {
    if (const std::size_t lock = lock_of(at + i); lock != locked) acquire(locked = lock);
    client_.writes_.put(at + i, from[i]);
  }
}

void Engine::Tx::acquire(std::size_t index) {
  Lock& lock = engine_.locks_[index];
  // relaxed: the exchange below decides.
  std::uint64_t found = lock.load(std::memory_order_relaxed);
  if (found == own_lock()) return;
  emu::step(emu::Step::commit_publish);
  touch_lock(index, emu::Access::exchange);
  do {
    if ((found & kHeldBit) != 0) throw Restart{index};
    // (3) acquire pairs with (5): what the last owner stored is seen.
  } while (!lock.compare_exchange_weak(found, own_lock(), std::memory_order_acquire,
                                       std::memory_order_relaxed));
  client_.held_.push_back({index, found >> 1});
  // What was read of it before must still hold; a snapshot that is too old would not tell.
  if (found >> 1 > client_.snapshot_) extend();
}

// Moves the snapshot to now, if nothing that was read has changed since.
void Engine::Tx::extend() {
  const std::uint64_t now = engine_.clock_.load(std::memory_order_acquire);
  if (!reads_are_valid()) throw Restart{kNoLock};
  client_.snapshot_ = now;
}

bool Engine::Tx::reads_are_valid() const {
  for (const Client::Read& read : client_.reads_) {
    const std::uint64_t found = engine_.locks_[read.lock].load(std::memory_order_acquire);
    if (found == read.version << 1) continue;
    if (found != own_lock()) return false;
    const auto held = std::ranges::find(client_.held_, read.lock, &Client::Held::lock);
    SP3_ASSERT(held != client_.held_.end());
    if (held->version != read.version) return false;
  }
  return true;
}

void Engine::Tx::give_up() {
  for (const Client::Held& held : client_.held_) {
    engine_.locks_[held.lock].store(held.version << 1, std::memory_order_release);
  }
  client_.held_.clear();
}

void Engine::Tx::commit() {
  if (client_.writes_.empty()) {
    ++client_.counters_.commits;
    return;
  }
  const std::uint64_t values = kRecordHead + 2 * client_.writes_.stores().size();
  reserve_log(log_words(values));

  // The manager loads the clock, then `active` (store buffering: hence seq_cst). Either it sees
  // that this commit is under way, or its clock is from before our time.
  Slot& slot = engine_.slots_[client_.slot_];
  slot.active.store(engine_.clock_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  emu::step(emu::Step::commit_stamp);
  emu::touch(emu::Line::word_clock, 0, emu::Access::exchange);
  const std::uint64_t time = engine_.clock_.fetch_add(1, std::memory_order_seq_cst) + 1;  // (4)
  if (time > client_.snapshot_ + 1 && !reads_are_valid()) {
    slot.active.store(kIdle, std::memory_order_release);
    throw Restart{kNoLock};
  }
  write_log(time);
  write_back(time);
  // (6) release pairs with (7): the manager sees a finished record, in memory and in the log.
  slot.tail.store(client_.tail_, std::memory_order_release);
  slot.active.store(kIdle, std::memory_order_seq_cst);
  ++client_.counters_.commits;
  ++client_.counters_.writing_commits;
}

// Waits until the log has room. Before the commit is announced: nobody waits for it yet.
void Engine::Tx::reserve_log(std::uint64_t words) {
  const std::uint64_t capacity = engine_.layout_.log_capacity();
  if (words > capacity) {
    ErrorFacts facts;
    facts.wanted = "at most " + std::to_string(capacity) + " log words";
    facts.found = std::to_string(words);
    throw Error(ErrorCode::transaction_too_large, "the record is larger than the log", facts);
  }
  const Slot& slot = engine_.slots_[client_.slot_];
  const auto used = [&] {
    return client_.tail_ + words - slot.head.load(std::memory_order_acquire);  // (8) pairs with (9)
  };
  if (used() <= capacity / 2) return;
  engine_.want_truncation();
  if (used() <= capacity) return;
  ++client_.counters_.waits;
  for (emu::Spin spin; used() > capacity;) {
    spin.pause_or_offer(word_tm::kWaitingRounds);
    // Again: while another commit was under way the manager may have freed too little for us, and
    // that one's client may be waiting for a lock of ours by now.
    engine_.want_truncation();
  }
}

void Engine::Tx::write_log(std::uint64_t time) {
  const std::uint64_t capacity = engine_.layout_.log_capacity();
  const std::uint64_t values = kRecordHead + 2 * client_.writes_.stores().size();
  client_.log_.resize(log_words(values));
  Packer packer(client_.log_.data(), client_.tail_, capacity);
  packer.put(time);
  packer.put(client_.writes_.stores().size());
  for (const Stored& stored : client_.writes_.stores()) {
    packer.put(stored.at);
    packer.put(stored.value);
  }
  packer.finish(client_.log_.data() + client_.log_.size());

  emu::Memory& logs = *engine_.logs_;
  const std::uint64_t base = engine_.layout_.log_at(client_.slot_);
  for (std::uint64_t done = 0; done < client_.log_.size();) {
    const std::uint64_t index = (client_.tail_ + done) % capacity;
    const std::uint64_t part = std::min(client_.log_.size() - done, capacity - index);
    const std::uint64_t at = base + index * sizeof(std::uint64_t);
    logs.log_store(at, &client_.log_[done], part * sizeof(std::uint64_t), true);
    static_cast<void>(logs.log_flush(at, part * sizeof(std::uint64_t), true, client_.flushes_));
    done += part;
  }
  static_cast<void>(logs.fence(client_.flushes_));  // P1
  client_.tail_ += client_.log_.size();
  client_.counters_.log_bytes += client_.log_.size() * sizeof(std::uint64_t);
}

// The fence P1 also keeps these stores after the acquisition of the locks in sight of readers.
void Engine::Tx::write_back(std::uint64_t time) {
  emu::Memory& words = *engine_.words_;
  const Layout& layout = engine_.layout_;
  for (const Stored& stored : client_.writes_.stores()) {
    touch_words(stored.at, emu::Access::store);
    words.store_word(layout.word_at(stored.at), stored.value);
  }
  for (const Client::Held& held : client_.held_) {
    emu::step(emu::Step::commit_publish);
    touch_lock(held.lock, emu::Access::store);
    engine_.locks_[held.lock].store(time << 1, std::memory_order_release);  // (5)
  }
  // Each line once, whichever words of it were stored when.
  std::vector<std::uint64_t>& lines = client_.lines_;
  lines.clear();
  for (const Stored& stored : client_.writes_.stores()) {
    const std::uint64_t line = base::round_down(layout.word_at(stored.at), base::kCacheLine);
    if (lines.empty() || lines.back() != line) lines.push_back(line);  // fewer to sort
  }
  std::ranges::sort(lines);
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  for (const std::uint64_t line : lines) {
    static_cast<void>(words.log_flush(line, base::kCacheLine, false, client_.flushes_));
  }
  static_cast<void>(words.fence(client_.flushes_));  // P2
  client_.held_.clear();
}

bool Engine::update(Client& client, Body body) {
  for (;;) {
    Tx tx(client);
    tx.begin();
    try {
      const bool result = body(tx);
      tx.commit();
      return result;
    } catch (const Restart& restart) {
      tx.give_up();
      ++client.counters_.aborts;
      if (restart.lock != kNoLock) wait_until_free(restart.lock);
    } catch (...) {
      tx.give_up();
      throw;
    }
  }
}

void Engine::wait_until_free(std::size_t lock) const {
  // relaxed: only a hint; the next attempt looks again.
  for (emu::Spin spin; (locks_[lock].load(std::memory_order_relaxed) & kHeldBit) != 0;) {
    spin.pause_or_offer(word_tm::kWaitingRounds);
  }
}

}  // namespace sp3::workloads::mnemosyne

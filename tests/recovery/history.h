// A random history of transactions, what a crash leaves of it in a pool, and what recovery must
// make of that. The model is as plain as can be: a map from slot to bytes, records in a list.
//
//   run()     transactions of several sessions, their dependencies, and when each was committed
//   crash()   each session's log ends somewhere behind its last committed record; the homes are
//             what a checkpoint at a random floor may have left
//   expect()  the largest closed set by brute force, applied in stamp order
#pragma once

#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/log/synthetic_log.h"

namespace sp3::test {

class History {
 public:
  struct Class {
    std::uint64_t type;
    std::uint32_t size;
    std::uint32_t slot_size;
  };
  struct Object {
    bool alive = false;
    std::vector<std::byte> bytes;  // size rounded up to 8
    bool operator==(const Object&) const = default;
  };
  struct Write {
    std::uint64_t slot = 0;
    Object before;
    Object after;
  };
  struct Transaction {
    base::Tid tid;
    Lsn persisted_upto = 0;
    std::vector<Write> writes;
    std::set<base::Tid> predecessors;  // all but the own session's
    std::set<base::Tid> recorded;      // those not committed when it was sealed
    bool committed = false;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  using State = std::map<std::uint64_t, Object>;

  explicit History(std::uint64_t seed, std::uint32_t sessions = 4)
      : random_(seed), sessions_(sessions) {
    committed_.resize(sessions);
    logs_.resize(sessions);
    last_lsn_.resize(sessions);
  }

  // Adds `count` transactions.
  void run(std::size_t count);
  // Writes logs, homes and metadata into `pool`.
  void crash(SyntheticPool& pool);

  // After crash(): the state that recovery must bring about, and the records it must replay.
  [[nodiscard]] const State& expected() const { return expected_; }
  [[nodiscard]] std::size_t expected_replayed() const { return replayed_; }
  [[nodiscard]] Stamp floor() const { return floor_; }
  [[nodiscard]] const std::vector<Transaction>& transactions() const { return transactions_; }
  // The largest stamp that is whole on media, replayed or not.
  [[nodiscard]] Stamp largest_stamp() const {
    Stamp largest = floor_;
    for (std::size_t s = 0; s < sessions_; ++s) {
      if (survive_[s] == 0) continue;
      largest = std::max(largest, transactions_[logs_[s][survive_[s] - 1]].tid.stamp);
    }
    return largest;
  }
  [[nodiscard]] const State& homes() const { return homes_; }

  // Which class the slab of `slot` has in this model.
  [[nodiscard]] const Class& class_of(std::uint64_t slot) const {
    return classes()[layout_.slab_of(slot) % classes().size()];
  }
  static const std::vector<Class>& classes() {
    static const std::vector<Class> all{{11, 40, 40}, {12, 60, 64}, {13, 128, 128}};
    return all;
  }
  void set_layout(const pool::Layout& layout) {
    layout_ = layout;
    make_slots();
  }

 private:
  void make_slots();
  void add_transaction();
  void commit_some();
  void choose_floor();
  void make_homes();
  void store_homes(SyntheticPool& pool) const;
  void write_logs(SyntheticPool& pool);
  void expect();
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  std::vector<std::byte> random_bytes(const Class& of);

  std::mt19937_64 random_;
  const std::uint32_t sessions_;
  pool::Layout layout_;
  std::vector<std::uint64_t> slots_;
  State state_;
  std::map<std::uint64_t, base::Tid> last_writer_;
  std::vector<Transaction> transactions_;       // in stamp order
  std::vector<std::vector<std::size_t>> logs_;  // per session: indices of its transactions
  std::vector<std::size_t> committed_;          // per session: how many of them are committed
  std::vector<std::size_t> survive_;            // per session: how many are whole on media
  std::vector<Lsn> last_lsn_;
  Stamp clock_ = 1000;
  Stamp floor_ = 0;
  State homes_;
  State expected_;
  std::size_t replayed_ = 0;
};

inline void History::make_slots() {
  for (std::uint32_t slab = 0; slab < 6; ++slab) {
    const Class& of = classes()[slab % classes().size()];
    const pool::SlabShape shape = pool::slab_shape(layout_.slab_size, of.slot_size);
    for (std::uint32_t i = 0; i < 5; ++i) {
      const std::uint64_t at = std::uint64_t{pick(shape.slots)} * of.slot_size;
      slots_.push_back(layout_.slab_offset(slab) + shape.data + at);
    }
  }
  for (const std::uint64_t slot : slots_) state_[slot] = {};
}

inline std::vector<std::byte> History::random_bytes(const Class& of) {
  std::vector<std::byte> bytes((of.size + 7) / 8 * 8);
  for (std::uint32_t i = 0; i < of.size; ++i) bytes[i] = static_cast<std::byte>(random_());
  return bytes;
}

inline void History::run(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    add_transaction();
    commit_some();
  }
}

inline void History::add_transaction() {
  Transaction tx;
  const auto session = static_cast<SessionId>(pick(sessions_));
  clock_ += 1 + pick(3);
  tx.tid = {clock_, session};
  std::set<std::uint64_t> chosen;
  for (std::uint64_t n = 1 + pick(4); n > 0; --n) chosen.insert(slots_[pick(slots_.size())]);
  for (const std::uint64_t slot : chosen) {
    Write write;
    write.slot = slot;
    write.before = state_[slot];
    write.after = write.before;
    if (!write.before.alive) {
      write.after = {true, random_bytes(class_of(slot))};
    } else if (pick(5) == 0) {
      write.after.alive = false;
    } else if (pick(3) == 0) {
      write.after.bytes = random_bytes(class_of(slot));
    } else {
      for (std::uint64_t n = pick(3); n > 0; --n) {
        write.after.bytes[8 * pick(write.after.bytes.size() / 8)] ^= std::byte{0x41};
      }
    }
    state_[slot] = write.after;
    if (const auto last = last_writer_.find(slot); last != last_writer_.end()) {
      tx.predecessors.insert(last->second);
    }
    tx.writes.push_back(std::move(write));
  }
  // It may also have read something.
  if (pick(2) == 0) {
    const auto last = last_writer_.find(slots_[pick(slots_.size())]);
    if (last != last_writer_.end()) tx.predecessors.insert(last->second);
  }
  std::erase_if(tx.predecessors, [&](const base::Tid& tid) { return tid.session == session; });
  for (const base::Tid& tid : tx.predecessors) {
    const std::size_t committed = committed_[tid.session];
    const bool known =
        committed > 0 && transactions_[logs_[tid.session][committed - 1]].tid.stamp >= tid.stamp;
    if (!known) tx.recorded.insert(tid);
  }
  // As in a real log, only the largest stamp of each session is kept.
  std::map<SessionId, Stamp> largest;
  for (const base::Tid& tid : tx.recorded)
    largest[tid.session] = std::max(largest[tid.session], tid.stamp);
  tx.recorded.clear();
  for (const auto& [on, stamp] : largest) tx.recorded.insert({stamp, on});
  tx.persisted_upto = committed_[session];
  for (const Write& write : tx.writes) last_writer_[write.slot] = tx.tid;
  logs_[session].push_back(transactions_.size());
  transactions_.push_back(std::move(tx));
}

// A few sessions find a record durable and its predecessors committed.
inline void History::commit_some() {
  for (std::uint64_t n = pick(4); n > 0; --n) {
    const std::size_t session = pick(sessions_);
    if (committed_[session] == logs_[session].size()) continue;
    Transaction& tx = transactions_[logs_[session][committed_[session]]];
    bool ready = true;
    for (const base::Tid& tid : tx.recorded) {
      const std::size_t committed = committed_[tid.session];
      ready = ready && committed > 0 &&
              transactions_[logs_[tid.session][committed - 1]].tid.stamp >= tid.stamp;
    }
    if (!ready) continue;
    tx.committed = true;
    ++committed_[session];
  }
}

inline void History::crash(SyntheticPool& pool) {
  survive_.clear();
  for (std::size_t s = 0; s < sessions_; ++s) {
    survive_.push_back(committed_[s] + pick(logs_[s].size() - committed_[s] + 1));
  }
  choose_floor();
  make_homes();
  expect();
  store_homes(pool);
  write_logs(pool);
}

// Everything up to the floor must be committed.
inline void History::choose_floor() {
  std::size_t safe = 0;
  while (safe < transactions_.size() && transactions_[safe].committed) ++safe;
  const std::size_t below = pick(3) == 0 ? 0 : pick(safe + 1);
  floor_ = below == 0 ? 500 : transactions_[below - 1].tid.stamp;
}

// Each home holds the version as of the floor, or a later committed one.
inline void History::make_homes() {
  homes_.clear();
  for (const std::uint64_t slot : slots_) {
    Object home;
    for (const Transaction& tx : transactions_) {
      if (!tx.committed || (tx.tid.stamp > floor_ && pick(3) == 0)) break;
      for (const Write& write : tx.writes) {
        if (write.slot == slot) home = write.after;
      }
    }
    homes_[slot] = home;
  }
}

// The definition, word for word: lower cuts until no dependency is missing.
inline void History::expect() {
  std::vector<std::size_t> cut = survive_;
  const auto reaches = [&](const base::Tid& tid) {
    const std::size_t count = cut[tid.session];
    return tid.stamp <= floor_ ||
           (count > 0 && transactions_[logs_[tid.session][count - 1]].tid.stamp >= tid.stamp);
  };
  for (bool lowered = true; lowered;) {
    lowered = false;
    for (std::size_t s = 0; s < sessions_; ++s) {
      for (std::size_t i = 0; i < cut[s]; ++i) {
        const Transaction& tx = transactions_[logs_[s][i]];
        if (tx.tid.stamp <= floor_) continue;
        if (std::all_of(tx.recorded.begin(), tx.recorded.end(), reaches)) continue;
        cut[s] = i;
        lowered = true;
      }
    }
  }
  replayed_ = 0;
  expected_ = homes_;
  std::vector<std::size_t> next(sessions_, 0);
  for (const Transaction& tx : transactions_) {
    const bool kept = next[tx.tid.session]++ < cut[tx.tid.session];
    if (!kept || tx.tid.stamp <= floor_) continue;
    ++replayed_;
    for (const Write& write : tx.writes) expected_[write.slot] = write.after;
  }
}

inline void History::store_homes(SyntheticPool& pool) const {
  std::map<std::uint32_t, pool::Bitmap> bitmaps;
  for (const auto& [slot, object] : homes_) {
    if (!object.bytes.empty()) {
      std::memcpy(pool.bytes.data() + slot, object.bytes.data(), object.bytes.size());
    }
    if (!object.alive) continue;
    const std::uint32_t slab = layout_.slab_of(slot);
    const pool::SlabShape shape = pool::slab_shape(layout_.slab_size, class_of(slot).slot_size);
    pool::Bitmap& bitmap = bitmaps[slab];
    bitmap.resize(shape.bitmap_bytes / 8);
    const std::uint64_t index =
        (slot - layout_.slab_offset(slab) - shape.data) / class_of(slot).slot_size;
    bitmap[index / 64] |= std::uint64_t{1} << (index % 64);
  }
  // The directory's own code writes the metadata, into the file.
  pool.superblock.fixed.floor = floor_;
  auto file = pool.open();
  auto directory = pool::SlabDirectory::load(file->memory(), layout_, file->identity(), 0);
  emu::FlushCounts counts;
  for (const auto& [slab, bitmap] : bitmaps) {
    const Class& of = classes()[slab % classes().size()];
    for (const int copy : {0, 1}) {
      pool::SlabRecord record;
      record.type = of.type;
      record.type_size = of.size;
      record.slot_size = of.slot_size;
      directory.store(file->memory(), copy, slab, record, bitmap, counts);
    }
  }
  file.reset();
  pool.bytes = read_file(pool.path().path());
}

inline void History::write_logs(SyntheticPool& pool) {
  RecordBuilder builder;
  for (std::uint32_t s = 0; s < sessions_; ++s) {
    const auto session = static_cast<SessionId>(s);
    Lsn head = 1;
    for (std::size_t i = 0; i < logs_[s].size(); ++i) {
      Transaction& tx = transactions_[logs_[s][i]];
      builder.reset();
      for (const Write& write : tx.writes) {
        const Class& of = class_of(write.slot);
        const auto size8 = static_cast<std::uint32_t>(write.after.bytes.size());
        if (!write.before.alive) {
          builder.add_make(write.slot, {of.type, of.size, of.slot_size}, write.after.bytes.data(),
                           size8);
        } else if (!write.after.alive) {
          builder.add_destroy(write.slot);
        } else {
          builder.add_update(write.slot, write.before.bytes.data(), write.after.bytes.data(),
                             size8);
        }
      }
      for (const base::Tid& tid : tx.recorded) builder.add_dependency(tid.session, tid.stamp);
      const auto place = pool.append(session, builder, tx.tid.stamp, tx.persisted_upto);
      tx.offset = place.offset;
      tx.size = place.size;
      if (tx.tid.stamp <= floor_) head = i + 2;
      // What did not survive is torn somewhere, or not there at all.
      if (i >= survive_[s]) {
        const std::uint64_t from = pick(3) == 0 ? 0 : pick(place.size / 8) * 8;
        const std::uint64_t kept = std::min<std::uint64_t>(from, builder.length() - 8);
        std::memset(pool.bytes.data() + place.offset + kept, 0xA5, place.size - kept);
      }
    }
    pool.superblock.heads[s] = head;
  }
  pool.superblock.fixed.floor = floor_;
  pool.superblock.fixed.largest_stamp = floor_;
}

}  // namespace sp3::test

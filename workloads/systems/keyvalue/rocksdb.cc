// RocksDB: a log-structured merge tree with a write-ahead log, through its TransactionDB (locks on
// keys, held to commit).
//
// Synchronous: WriteOptions::sync. One thread writes and syncs the log for all that wait meanwhile.
// Asynchronous: records stay in the log's buffer (manual_wal_flush) until FlushWAL(sync) for a
// group, as sp3's do.
#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>

#include "base/scope_exit.h"
#include "workloads/systems/keyvalue/store.h"

namespace sp3::workloads::keyvalue {

namespace {

void require(const rocksdb::Status& status, const char* what) {
  if (status.ok()) return;
  throw std::runtime_error(fmt::format("rocksdb: {}: {}", what, status.ToString()));
}

// Keys in their numeric order: most significant byte first.
class Key {
 public:
  explicit Key(std::uint64_t key) : bytes_(std::bit_cast<Bytes>(__builtin_bswap64(key))) {}
  operator rocksdb::Slice() const { return {bytes_.data(), bytes_.size()}; }

  static std::uint64_t number(const rocksdb::Slice& slice) {
    Bytes bytes{};
    std::copy_n(slice.data(), std::min(slice.size(), bytes.size()), bytes.begin());
    return __builtin_bswap64(std::bit_cast<std::uint64_t>(bytes));
  }

 private:
  using Bytes = std::array<char, sizeof(std::uint64_t)>;
  Bytes bytes_;
};

rocksdb::Slice slice_of(Value value) {
  return {reinterpret_cast<const char*>(value.data()), value.size()};
}

// Whether there was a value; it is then copied.
bool copy_found(const rocksdb::Status& status, const rocksdb::PinnableSlice& found,
                std::span<std::byte> value) {
  if (status.IsNotFound()) return false;
  require(status, "Get");
  std::copy_n(reinterpret_cast<const std::byte*>(found.data()),
              std::min(value.size(), found.size()), value.begin());
  return true;
}

// Leaves the body of a transaction that has to start over.
struct Conflict {};

void require_locked(const rocksdb::Status& status, const char* what) {
  if (status.IsBusy() || status.IsTimedOut() || status.IsTryAgain()) throw Conflict();
  require(status, what);
}

// Locks what it reads, shared, and what it writes, so that all appear to happen at the commit.
class RocksdbTransaction final : public Transaction {
 public:
  RocksdbTransaction(rocksdb::TransactionDB& db, rocksdb::Transaction& transaction)
      : table_(db.DefaultColumnFamily()), transaction_(transaction) {}

  bool get(std::uint64_t key, std::span<std::byte> value, Use use) override {
    found_.Reset();
    const rocksdb::ReadOptions options;
    if (use == Use::constant) {
      return copy_found(transaction_.Get(options, table_, Key(key), &found_), found_, value);
    }
    const bool exclusive = use == Use::change;
    const rocksdb::Status status =
        transaction_.GetForUpdate(options, table_, Key(key), &found_, exclusive);
    if (!status.IsNotFound()) require_locked(status, "GetForUpdate");
    return copy_found(status, found_, value);
  }
  void put(std::uint64_t key, Value value) override {
    require_locked(transaction_.Put(Key(key), slice_of(value)), "Put");
    wrote_ = true;
  }
  void erase(std::uint64_t key) override {
    require_locked(transaction_.Delete(Key(key)), "Delete");
    wrote_ = true;
  }
  [[nodiscard]] bool wrote() const { return wrote_; }

 private:
  rocksdb::ColumnFamilyHandle* table_;
  rocksdb::Transaction& transaction_;
  rocksdb::PinnableSlice found_;
  bool wrote_ = false;
};

// One state of the store, without locks.
class RocksdbSnapshot final : public Transaction {
 public:
  explicit RocksdbSnapshot(rocksdb::TransactionDB& db) : db_(db), snapshot_(&db) {
    options_.snapshot = snapshot_.snapshot();
  }

  bool get(std::uint64_t key, std::span<std::byte> value, Use /*use*/) override {
    found_.Reset();
    return copy_found(db_.Get(options_, db_.DefaultColumnFamily(), Key(key), &found_), found_,
                      value);
  }
  void put(std::uint64_t /*key*/, Value /*value*/) override { refuse(); }
  void erase(std::uint64_t /*key*/) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("rocksdb: a snapshot is read only"); }

  rocksdb::TransactionDB& db_;
  rocksdb::ManagedSnapshot snapshot_;
  rocksdb::ReadOptions options_;
  rocksdb::PinnableSlice found_;
};

class RocksdbSession final : public Session {
 public:
  RocksdbSession(rocksdb::TransactionDB& db, bool synchronous) : db_(db) {
    write_.sync = synchronous;
    locking_.lock_timeout = -1;  // of put_all, which fills the store: nobody else is there
    several_.deadlock_detect = true;
    several_.lock_timeout = 1000;  // milliseconds: were a deadlock overlooked, it would end
  }

  void put(std::uint64_t key, Value value) override {
    // One key is atomic by itself. Its lock would keep the writers of one key out of one sync.
    require(db_.GetBaseDB()->Put(write_, Key(key), slice_of(value)), "Put");
  }

  void put_all(std::span<const std::uint64_t> keys,
               const std::function<Value(std::uint64_t)>& value_of) override {
    begin(locking_);
    for (const std::uint64_t key : keys) {
      require(transaction_->Put(Key(key), slice_of(value_of(key))), "Put");
    }
    require(transaction_->Commit(), "Commit");
  }

  bool get(std::uint64_t key, std::span<std::byte> value) override {
    found_.Reset();
    const rocksdb::Status status =
        db_.Get(rocksdb::ReadOptions(), db_.DefaultColumnFamily(), Key(key), &found_);
    return copy_found(status, found_, value);
  }

  // An iterator sees the store as it was when it was made.
  std::uint64_t scan(std::uint64_t from, std::uint64_t count,
                     const std::function<void(Value)>& visitor) override {
    const std::unique_ptr<rocksdb::Iterator> at(db_.NewIterator(rocksdb::ReadOptions()));
    std::uint64_t found = 0;
    for (at->Seek(Key(from)); found < count && at->Valid(); at->Next(), ++found) {
      visitor({reinterpret_cast<const std::byte*>(at->value().data()), at->value().size()});
    }
    require(at->status(), "Iterator");
    return found;
  }

  std::uint64_t transact(const TransactionBody& body) override {
    for (std::uint64_t attempts = 0;; ++attempts) {
      if (attempt(body)) return attempts;
    }
  }

  std::uint64_t transact_reading(const TransactionBody& body) override {
    RocksdbSnapshot snapshot(db_);
    body(snapshot);
    return 0;
  }

 private:
  // The object of the transaction before is used again.
  void begin(const rocksdb::TransactionOptions& options) {
    transaction_.reset(db_.BeginTransaction(write_, options, transaction_.release()));
  }

  // Returns whether it came to an end.
  bool attempt(const TransactionBody& body) {
    begin(several_);
    RocksdbTransaction seen(db_, *transaction_);
    // Locks go with the end, whatever it is; an empty commit would sync the log.
    bool ended = false;
    const base::ScopeExit undo([&] {
      if (!ended) static_cast<void>(transaction_->Rollback());
    });
    try {
      body(seen);
    } catch (const Conflict&) {
      return false;
    }
    if (!seen.wrote()) return true;
    const rocksdb::Status status = transaction_->Commit();
    ended = status.ok();
    if (status.IsBusy() || status.IsTimedOut() || status.IsTryAgain()) return false;
    require(status, "Commit");
    return true;
  }

  rocksdb::TransactionDB& db_;
  rocksdb::WriteOptions write_;
  rocksdb::TransactionOptions locking_;
  rocksdb::TransactionOptions several_;
  std::unique_ptr<rocksdb::Transaction> transaction_;
  rocksdb::PinnableSlice found_;
};

class RocksdbStore final : public Store {
 public:
  explicit RocksdbStore(const StoreOptions& options) : synchronous_(options.synchronous) {
    rocksdb::Options settings;
    settings.create_if_missing = true;
    settings.compression = rocksdb::kNoCompression;
    settings.manual_wal_flush = !synchronous_;
    rocksdb::TransactionDB* db = nullptr;
    require(rocksdb::TransactionDB::Open(settings, rocksdb::TransactionDBOptions(),
                                         options.directory.string(), &db),
            "Open");
    db_.reset(db);
  }

  std::unique_ptr<Session> connect() override {
    return std::make_unique<RocksdbSession>(*db_, synchronous_);
  }

  void sync() override { require(db_->FlushWAL(true), "FlushWAL"); }

  std::string check() override {
    const rocksdb::Status status = db_->VerifyChecksum();
    return status.ok() ? std::string() : status.ToString();
  }

  void visit(const std::function<bool(std::uint64_t, Value)>& visitor) override {
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(at->value().data());
      if (!visitor(Key::number(at->key()), {bytes, at->value().size()})) break;
    }
    require(at->status(), "Iterator");
  }

 private:
  bool synchronous_;
  std::unique_ptr<rocksdb::TransactionDB> db_;
};

}  // namespace

std::unique_ptr<Store> open_rocksdb(const StoreOptions& options) {
  return std::make_unique<RocksdbStore>(options);
}

}  // namespace sp3::workloads::keyvalue

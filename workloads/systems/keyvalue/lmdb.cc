// LMDB: one B+ tree in a file, copied on write, mapped for reading; one writer at a time.
//
// Synchronous: the default. A commit writes the changed pages, calls fdatasync, and writes the page
// that names the new root through a descriptor opened with O_DSYNC: two syncs, of which the second
// is no call. Asynchronous: MDB_NOSYNC, and mdb_env_sync for a group.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <lmdb.h>

#include "base/scope_exit.h"
#include "workloads/systems/keyvalue/store.h"

namespace sp3::workloads::keyvalue {

namespace {

void require(int result, const char* what) {
  if (result == MDB_SUCCESS) return;
  throw std::runtime_error(fmt::format("lmdb: {}: {}", what, mdb_strerror(result)));
}

MDB_val as_value(const void* data, std::size_t bytes) { return {bytes, const_cast<void*>(data)}; }

class WriteTransaction {
 public:
  explicit WriteTransaction(MDB_env* env) {
    require(mdb_txn_begin(env, nullptr, 0, &transaction_), "mdb_txn_begin");
  }
  ~WriteTransaction() {
    if (transaction_ != nullptr) mdb_txn_abort(transaction_);
  }
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;

  void commit() { require(mdb_txn_commit(std::exchange(transaction_, nullptr)), "mdb_txn_commit"); }
  [[nodiscard]] MDB_txn* get() const { return transaction_; }

 private:
  MDB_txn* transaction_ = nullptr;
};

class LmdbTransaction final : public Transaction {
 public:
  LmdbTransaction(MDB_txn* transaction, MDB_dbi table) : transaction_(transaction), table_(table) {}

  // Nobody else writes meanwhile, so there is nothing to lock.
  bool get(std::uint64_t key, std::span<std::byte> value, Use /*use*/) override {
    MDB_val k = as_value(&key, sizeof key);
    MDB_val v{};
    const int result = mdb_get(transaction_, table_, &k, &v);
    if (result == MDB_NOTFOUND) return false;
    require(result, "mdb_get");
    std::copy_n(static_cast<const std::byte*>(v.mv_data), std::min(value.size(), v.mv_size),
                value.begin());
    return true;
  }
  void put(std::uint64_t key, Value value) override {
    MDB_val k = as_value(&key, sizeof key);
    MDB_val v = as_value(value.data(), value.size());
    require(mdb_put(transaction_, table_, &k, &v, 0), "mdb_put");
  }
  void erase(std::uint64_t key) override {
    MDB_val k = as_value(&key, sizeof key);
    require(mdb_del(transaction_, table_, &k, nullptr), "mdb_del");
  }

 private:
  MDB_txn* transaction_;
  MDB_dbi table_;
};

// A read transaction that is renewed for every use: taking a reader's slot anew would cost more.
class ReadTransaction {
 public:
  explicit ReadTransaction(MDB_env* env) {
    require(mdb_txn_begin(env, nullptr, MDB_RDONLY, &transaction_), "mdb_txn_begin");
    mdb_txn_reset(transaction_);
  }
  ~ReadTransaction() { mdb_txn_abort(transaction_); }
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

  // Runs `body` on the newest snapshot.
  template <class F>
  auto run(F&& body) {
    require(mdb_txn_renew(transaction_), "mdb_txn_renew");
    const base::ScopeExit reset([this] { mdb_txn_reset(transaction_); });
    return body(transaction_);
  }

 private:
  MDB_txn* transaction_ = nullptr;
};

class LmdbSession final : public Session {
 public:
  LmdbSession(MDB_env* env, MDB_dbi table) : env_(env), table_(table), reader_(env) {}
  ~LmdbSession() override {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
  }

  void put(std::uint64_t key, Value value) override {
    WriteTransaction transaction(env_);
    LmdbTransaction(transaction.get(), table_).put(key, value);
    transaction.commit();
  }

  void put_all(std::span<const std::uint64_t> keys,
               const std::function<Value(std::uint64_t)>& value_of) override {
    WriteTransaction transaction(env_);
    LmdbTransaction writer(transaction.get(), table_);
    for (const std::uint64_t key : keys) writer.put(key, value_of(key));
    transaction.commit();
  }

  bool get(std::uint64_t key, std::span<std::byte> value) override {
    return reader_.run([&](MDB_txn* transaction) {
      return LmdbTransaction(transaction, table_).get(key, value, Use::read);
    });
  }

  std::uint64_t scan(std::uint64_t from, std::uint64_t count,
                     const std::function<void(Value)>& visitor) override {
    return reader_.run([&](MDB_txn* transaction) {
      // Opened once for the session, as its documentation advises for read transactions.
      if (cursor_ == nullptr) {
        require(mdb_cursor_open(transaction, table_, &cursor_), "mdb_cursor_open");
      } else {
        require(mdb_cursor_renew(transaction, cursor_), "mdb_cursor_renew");
      }
      MDB_val k = as_value(&from, sizeof from);
      MDB_val v{};
      std::uint64_t found = 0;
      MDB_cursor_op where = MDB_SET_RANGE;
      while (found < count) {
        const int result = mdb_cursor_get(cursor_, &k, &v, where);
        if (result == MDB_NOTFOUND) break;
        require(result, "mdb_cursor_get");
        visitor({static_cast<const std::byte*>(v.mv_data), v.mv_size});
        ++found;
        where = MDB_NEXT;
      }
      return found;
    });
  }

  std::uint64_t transact(const TransactionBody& body) override {
    WriteTransaction transaction(env_);
    LmdbTransaction seen(transaction.get(), table_);
    body(seen);
    transaction.commit();
    return 0;
  }

  std::uint64_t transact_reading(const TransactionBody& body) override {
    return reader_.run([&](MDB_txn* transaction) {
      LmdbTransaction seen(transaction, table_);
      body(seen);
      return std::uint64_t{0};
    });
  }

 private:
  MDB_env* env_;
  MDB_dbi table_;
  ReadTransaction reader_;
  MDB_cursor* cursor_ = nullptr;  // of reader_
};

class LmdbStore final : public Store {
 public:
  explicit LmdbStore(const StoreOptions& options) {
    require(mdb_env_create(&env_), "mdb_env_create");
    try {
      set_up(options);
    } catch (...) {
      mdb_env_close(env_);
      throw;
    }
  }
  ~LmdbStore() override { mdb_env_close(env_); }

  std::unique_ptr<Session> connect() override {
    return std::make_unique<LmdbSession>(env_, table_);
  }

  void sync() override { require(mdb_env_sync(env_, 1), "mdb_env_sync"); }

  std::string check() override {
    std::size_t entries = 0;
    visit([&](std::uint64_t, Value) { return ++entries != 0; });
    const std::size_t promised = ReadTransaction(env_).run([&](MDB_txn* transaction) {
      MDB_stat statistics{};
      require(mdb_stat(transaction, table_, &statistics), "mdb_stat");
      return statistics.ms_entries;
    });
    if (entries == promised) return {};
    return fmt::format("The table says {} entries, a walk finds {}.", promised, entries);
  }

  void visit(const std::function<bool(std::uint64_t, Value)>& visitor) override {
    ReadTransaction(env_).run([&](MDB_txn* transaction) {
      MDB_cursor* cursor = nullptr;
      require(mdb_cursor_open(transaction, table_, &cursor), "mdb_cursor_open");
      MDB_val k{};
      MDB_val v{};
      while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == MDB_SUCCESS) {
        const auto* const bytes = static_cast<const std::byte*>(v.mv_data);
        if (!visitor(*static_cast<const std::uint64_t*>(k.mv_data), {bytes, v.mv_size})) break;
      }
      mdb_cursor_close(cursor);
      return 0;
    });
  }

  // The write with O_DSYNC.
  [[nodiscard]] std::uint64_t hidden_syncs_per_put() const override { return 1; }

 private:
  void set_up(const StoreOptions& options) {
    constexpr unsigned kReaders = 1100;  // as many clients as a run may have, and a few
    constexpr mdb_mode_t kMode = 0600;
    require(mdb_env_set_mapsize(env_, options.capacity), "mdb_env_set_mapsize");
    require(mdb_env_set_maxreaders(env_, kReaders), "mdb_env_set_maxreaders");
    // NOTLS: a session is made by one thread and used by another.
    const unsigned flags = MDB_NOTLS | (options.synchronous ? 0U : unsigned{MDB_NOSYNC});
    require(mdb_env_open(env_, options.directory.c_str(), flags, kMode), "mdb_env_open");
    WriteTransaction transaction(env_);
    require(mdb_dbi_open(transaction.get(), nullptr, MDB_INTEGERKEY, &table_), "mdb_dbi_open");
    transaction.commit();
  }

  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
};

}  // namespace

std::unique_ptr<Store> open_lmdb(const StoreOptions& options) {
  return std::make_unique<LmdbStore>(options);
}

}  // namespace sp3::workloads::keyvalue

// SQLite: a table with an integer primary key, in WAL mode; a connection for each session.
//
// Synchronous: synchronous=FULL, one fdatasync of the log in each commit. Asynchronous:
// synchronous=NORMAL, which syncs only around its checkpoints, and a sync of the log for a group
// through SQLite's own file handle. Writers take a mutex first: SQLite has one writer at a time,
// and lets the others sleep for milliseconds and try again, which would be measured instead of it.
#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <sqlite3.h>

#include "workloads/systems/keyvalue/store.h"

namespace sp3::workloads::keyvalue {

namespace {

class Connection {
 public:
  explicit Connection(const StoreOptions& options) {
    const std::string path = (options.directory / "data.sqlite").string();
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    // For this process alone, as sp3's pool: no locks by fcntl at each transaction, and the index of
    // the log on the heap.
    const int result = sqlite3_open_v2(path.c_str(), &db_, flags, "unix-excl");
    if (result != SQLITE_OK) {
      const std::string what = fmt::format("sqlite: open {}: {}", path, sqlite3_errmsg(db_));
      sqlite3_close(db_);
      throw std::runtime_error(what);
    }
    sqlite3_busy_timeout(db_, 10'000);
    run("PRAGMA journal_mode=WAL");
    run(options.synchronous ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    run("PRAGMA cache_size=-65536");  // KiB
    run("PRAGMA mmap_size=1073741824");
    run("CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
  }
  ~Connection() { sqlite3_close_v2(db_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run(const char* sql) {
    require(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sql);
  }
  void require(bool done, const char* what) const {
    if (done) return;
    throw std::runtime_error(fmt::format("sqlite: {}: {}", what, sqlite3_errmsg(db_)));
  }
  [[nodiscard]] sqlite3* get() const { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

class Statement {
 public:
  Statement(Connection& connection, const char* sql) : connection_(connection) {
    constexpr int kToTheEnd = -1;
    connection.require(
        sqlite3_prepare_v3(connection.get(), sql, kToTheEnd, SQLITE_PREPARE_PERSISTENT, &statement_,
                           nullptr) == SQLITE_OK,
        sql);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int parameter, std::uint64_t number) {
    sqlite3_bind_int64(statement_, parameter, static_cast<sqlite3_int64>(number));
  }
  // The bytes must stay until reset().
  void bind(int parameter, Value value) {
    sqlite3_bind_blob64(statement_, parameter, value.data(), value.size(), nullptr);
  }
  // Whether there is a row.
  bool step() {
    const int result = sqlite3_step(statement_);
    connection_.require(result == SQLITE_ROW || result == SQLITE_DONE, "step");
    return result == SQLITE_ROW;
  }
  void reset() { sqlite3_reset(statement_); }
  // Of a statement without rows.
  void execute() {
    step();
    reset();
  }
  [[nodiscard]] std::uint64_t number(int column) const {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
  }
  [[nodiscard]] Value blob(int column) const {
    const auto* const data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  [[nodiscard]] std::string text(int column) const {
    return reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  }

 private:
  Connection& connection_;
  sqlite3_stmt* statement_ = nullptr;
};

class SqliteSession final : public Session {
 public:
  SqliteSession(const StoreOptions& options, std::mutex& writer)
      : writer_(writer), connection_(options) {}

  // A statement outside BEGIN is a transaction.
  void put(std::uint64_t key, Value value) override {
    const std::lock_guard lock(writer_);
    put_one(key, value);
  }

  void put_all(std::span<const std::uint64_t> keys,
               const std::function<Value(std::uint64_t)>& value_of) override {
    const std::lock_guard lock(writer_);
    connection_.run("BEGIN IMMEDIATE");
    for (const std::uint64_t key : keys) put_one(key, value_of(key));
    connection_.run("COMMIT");
  }

  bool get(std::uint64_t key, std::span<std::byte> value) override {
    select_.bind(1, key);
    const bool found = select_.step();
    if (found) {
      const Value stored = select_.blob(0);
      std::copy_n(stored.begin(), std::min(value.size(), stored.size()), value.begin());
    }
    select_.reset();
    return found;
  }

  std::uint64_t scan(std::uint64_t from, std::uint64_t count,
                     const std::function<void(Value)>& visitor) override {
    range_.bind(1, from);
    range_.bind(2, count);
    std::uint64_t found = 0;
    for (; range_.step(); ++found) visitor(range_.blob(0));
    range_.reset();
    return found;
  }

  std::uint64_t transact(const TransactionBody& body) override {
    const std::lock_guard lock(writer_);
    return run_between(begin_writing_, body);
  }

  std::uint64_t transact_reading(const TransactionBody& body) override {
    return run_between(begin_, body);
  }

 private:
  // Those of SQLite belong to the connection. There is one writer at a time, and readers have a
  // snapshot: nothing is to be locked.
  class Open final : public Transaction {
   public:
    explicit Open(SqliteSession& session) : session_(session) {}

    bool get(std::uint64_t key, std::span<std::byte> value, Use /*use*/) override {
      return session_.get(key, value);
    }
    void put(std::uint64_t key, Value value) override { session_.put_one(key, value); }
    void erase(std::uint64_t key) override {
      session_.delete_.bind(1, key);
      session_.delete_.execute();
    }

   private:
    SqliteSession& session_;
  };

  std::uint64_t run_between(Statement& begin, const TransactionBody& body) {
    begin.execute();
    try {
      Open open(*this);
      body(open);
      commit_.execute();
    } catch (...) {
      rollback_.execute();
      throw;
    }
    return 0;
  }

  void put_one(std::uint64_t key, Value value) {
    upsert_.bind(1, key);
    upsert_.bind(2, value);
    upsert_.execute();
  }

  std::mutex& writer_;
  Connection connection_;
  Statement upsert_{connection_,
                    "INSERT INTO entries VALUES (?, ?) "
                    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"};
  Statement select_{connection_, "SELECT value FROM entries WHERE key = ?"};
  Statement range_{connection_, "SELECT value FROM entries WHERE key >= ? ORDER BY key LIMIT ?"};
  Statement delete_{connection_, "DELETE FROM entries WHERE key = ?"};
  Statement begin_{connection_, "BEGIN"};
  Statement begin_writing_{connection_, "BEGIN IMMEDIATE"};
  Statement commit_{connection_, "COMMIT"};
  Statement rollback_{connection_, "ROLLBACK"};
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(const StoreOptions& options) : options_(options), connection_(options) {}

  std::unique_ptr<Session> connect() override {
    return std::make_unique<SqliteSession>(options_, writer_);
  }

  void sync() override {
    sqlite3_file* log = nullptr;
    connection_.require(sqlite3_file_control(connection_.get(), "main",
                                             SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK,
                        "SQLITE_FCNTL_JOURNAL_POINTER");
    // Not open as long as nothing was written.
    if (log == nullptr || log->pMethods == nullptr) return;
    connection_.require(log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) == SQLITE_OK, "sync");
  }

  std::string check() override {
    Statement statement(connection_, "PRAGMA integrity_check(1)");
    statement.step();
    const std::string answer = statement.text(0);
    return answer == "ok" ? std::string() : answer;
  }

  void visit(const std::function<bool(std::uint64_t, Value)>& visitor) override {
    Statement statement(connection_, "SELECT key, value FROM entries ORDER BY key");
    while (statement.step() && visitor(statement.number(0), statement.blob(1))) continue;
  }

 private:
  StoreOptions options_;
  std::mutex writer_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<Store> open_sqlite(const StoreOptions& options) {
  return std::make_unique<SqliteStore>(options);
}

}  // namespace sp3::workloads::keyvalue

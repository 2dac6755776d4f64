// What the key-value stores of today have in common for a benchmark: 8-byte keys and values of one
// size with one key a transaction, or values of any size in transactions of several.
//
// Thread safety: a Store by any thread, a Session by one at a time.
// Errors: std::runtime_error that begins with the store's name and says what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace sp3::workloads::keyvalue {

struct StoreOptions {
  std::filesystem::path directory;  // exists; the store's files go there
  std::uint64_t capacity = 0;       // bytes that it may come to take
  std::size_t value_size = 0;
  bool synchronous = true;  // every put is durable on return; else only sync() makes it so
};

using Value = std::span<const std::byte>;

// What is to become of a value until the transaction ends. Stores that lock, lock it so.
enum class Use : std::uint8_t {
  constant,  // no transaction changes it
  read,
  change,
};

// What the body of a transaction of several keys works with.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  // Whether the key is there; its value, as this transaction sees it, is then copied.
  virtual bool get(std::uint64_t key, std::span<std::byte> value, Use use) = 0;
  virtual void put(std::uint64_t key, Value value) = 0;
  virtual void erase(std::uint64_t key) = 0;
};

using TransactionBody = std::function<void(Transaction&)>;

// One thread's way into a store. Ends before the store does.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  // One transaction, which may come between what a transact() of another session reads and writes:
  // no workload has both.
  virtual void put(std::uint64_t key, Value value) = 0;
  // One transaction that durably puts each key, with the value that `value_of` gives for it.
  virtual void put_all(std::span<const std::uint64_t> keys,
                       const std::function<Value(std::uint64_t)>& value_of) = 0;
  // Whether the key is there; its value is then copied.
  virtual bool get(std::uint64_t key, std::span<std::byte> value) = 0;
  // Shows up to `count` entries in the order of their keys, from the least on that is not less than
  // `from`, as one transaction. Returns how many.
  virtual std::uint64_t scan(std::uint64_t from, std::uint64_t count,
                             const std::function<void(Value)>& visitor) = 0;
  // Runs the body as one transaction, isolated as if there were no other at the time, and again
  // after conflicts. Returns how many attempts came to nothing. What the body throws leaves no
  // effect behind, and is thrown on.
  virtual std::uint64_t transact(const TransactionBody& body) = 0;
  // The same with a body that only gets.
  virtual std::uint64_t transact_reading(const TransactionBody& body) = 0;
};

// Opened, or made where there was none, by its constructor; closed by its destructor.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual std::unique_ptr<Session> connect() = 0;
  // All puts that returned before the call are durable when it returns.
  virtual void sync() = 0;
  // By the store's own means: empty, or what is wrong.
  virtual std::string check() = 0;
  // Every key and its value, while no session is in use. A visitor that returns false ends the
  // walk.
  virtual void visit(const std::function<bool(std::uint64_t key, Value value)>& visitor) = 0;
  // Syncs of each synchronous put that emu::sync_calls() does not see.
  [[nodiscard]] virtual std::uint64_t hidden_syncs_per_put() const { return 0; }
};

using OpenStore = std::unique_ptr<Store>(const StoreOptions&);

OpenStore open_lmdb;
OpenStore open_rocksdb;
OpenStore open_sqlite;

}  // namespace sp3::workloads::keyvalue

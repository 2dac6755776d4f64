// A libpmemobj pool and its transactions, as the workloads on it use them.
//
// References are offsets from the start of the pool, added to its address: what pmemobj_direct
// does, without its look-up of the pool. libpmemobj is used without setjmp: a call that fails
// aborts the transaction and reports it, and here becomes an exception.
//
// Thread safety: a Heap may be used by any thread; a Tx belongs to the thread that made it, and
// there is one at a time on a thread (libpmemobj keeps it in thread-local state).
// Durable: a Tx when commit() returns; what the Heap makes itself when the call returns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <type_traits>

#include <libpmemobj/base.h>
#include <libpmemobj/thread.h>

#include "base/align.h"
#include "workloads/place_of_value.h"

struct pmemobjpool;

namespace sp3::workloads::pmdk {

// Where an object is; 0 is nowhere. `T::kType` is its type number in libpmemobj.
template <class T>
struct Ref {
  std::uint64_t offset = 0;
  explicit operator bool() const { return offset != 0; }
  bool operator==(const Ref&) const = default;
};

// Bytes to leave out between the first `head` bytes of an object and its value. An object begins 16
// bytes into a cache line, behind libpmemobj's header.
constexpr std::size_t gap_before_value(std::size_t head, std::size_t value) {
  constexpr std::size_t kHeader = 16;
  return place_of_value(kHeader + head, value, base::kCacheLine) - (kHeader + head);
}

template <std::size_t Bytes>
struct Gap {
  std::array<std::byte, Bytes> bytes{};
};
template <>
struct Gap<0> {};

class Heap {
 public:
  Heap() = default;
  ~Heap() { close(); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // `layout` names what the pool holds; opening a pool of another layout is an error. `emulated`:
  // flushes cache lines although the file is not on persistent memory.
  void create(const std::filesystem::path& path, const std::string& layout, std::uint64_t bytes,
              bool emulated);
  void open(const std::filesystem::path& path, const std::string& layout, bool emulated);
  void close();

  template <class T>
  [[nodiscard]] T& at(Ref<T> ref) const {
    return *reinterpret_cast<T*>(base_ + ref.offset);
  }

  // The pool's root object, zero at first.
  template <class T>
  [[nodiscard]] T& root() const {
    return *static_cast<T*>(find_root(sizeof(T)));
  }

  // An array of zeros that begins at a cache line, and is named by `owner` from then on.
  template <class T>
  void make_array(Ref<T>& owner, std::uint64_t count) const {
    owner.offset = make_zeros(count * sizeof(T));
    persist(&owner, sizeof owner);
  }

  void persist(const void* address, std::size_t bytes) const;
  [[nodiscard]] pmemobjpool* pool() const { return pool_; }

  // Readers need no transaction, only that no writer is inside one.
  void lock_shared(PMEMrwlock& lock) const;
  void unlock_shared(PMEMrwlock& lock) const;

 private:
  [[nodiscard]] void* find_root(std::size_t bytes) const;
  [[nodiscard]] std::uint64_t make_zeros(std::uint64_t bytes) const;

  pmemobjpool* pool_ = nullptr;
  std::byte* base_ = nullptr;
};

class SharedLock {
 public:
  SharedLock(const Heap& heap, PMEMrwlock& lock) : heap_(heap), lock_(lock) {
    heap_.lock_shared(lock_);
  }
  ~SharedLock() { heap_.unlock_shared(lock_); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  const Heap& heap_;
  PMEMrwlock& lock_;
};

// One transaction with an undo log. It is aborted if it is destroyed before it was committed; locks
// are held to the end of either.
class Tx {
 public:
  explicit Tx(const Heap& heap);
  ~Tx();
  Tx(const Tx&) = delete;
  Tx& operator=(const Tx&) = delete;

  void lock(PMEMmutex& lock);
  void lock(PMEMrwlock& lock);  // exclusively

  // The object may be changed from now on: its bytes are in the undo log. One fence, unless the
  // range is there already or was made by this transaction.
  template <class T>
  T& change(T& object) {
    snapshot(&object, sizeof object);
    return object;
  }

  template <class T>
  Ref<T> make(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const Ref<T> ref{allocate(sizeof value, T::kType)};
    std::memcpy(static_cast<void*>(&heap_.at(ref)), &value, sizeof value);
    return ref;
  }
  template <class T>
  void destroy(Ref<T> ref) {
    free(ref.offset);
  }

  // Durable when it returns. The locks are still held.
  void commit();

 private:
  void snapshot(void* address, std::size_t bytes);
  std::uint64_t allocate(std::size_t bytes, std::uint64_t type);
  void free(std::uint64_t offset);

  const Heap& heap_;
};

}  // namespace sp3::workloads::pmdk

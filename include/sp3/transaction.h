// Transaction: what the function given to Session::run works with.
//
// Thread safety: a Transaction belongs to the thread that runs it. A function that gives up its
//   thread on the way (a fiber) is resumed on the same one: on another, what would wait for the
//   function itself does so for ever. What else the thread runs meanwhile counts as inside the
//   function (nested_transaction).
// Lifetime: to the end of the function. Who keeps it gets transaction_over as long as the session
//   is open, or, while that runs its next function, the transaction of that one. References
//   returned by read() and write() stay valid to the end of the attempt, and must not escape the
//   function. Nobody else changes what they show. What read() gave before the transaction wrote the
//   object goes on showing it as it was: read it again. References taken after write() or make()
//   are to the transaction's own copy, and show later writes.
// Invariants:
//   1. Opacity: the function never sees a state that no serial order could produce, even in an
//      attempt that is thrown away later. It may trust its own data structures' invariants.
//   2. Nothing the function does to objects is visible to others, or durable, before it commits.
//   3. The function may run several times: it must have no side effects outside the transaction
//      that it cannot repeat.
// Errors: use of a bad Ptr throws Error; an exception that leaves the function aborts the
//   transaction and leaves run(), after what it had read has been found consistent and durable.
//   pool_full, std::bad_alloc of any member and, once the transaction has changed something,
//   damaged_metadata, io_error, object_too_large and unsupported leave run() even if the function
//   catches them: a container may have done half of its work. So does any error in the midst of a
//   change to a ranged object.
//   Who catches invalid_pointer or wrong_type and goes on has learned something that commit does
//   not validate: that a place holds no such object, which another transaction may change.
// Source: "Improving the Concurrency Performance of Persistent Memory Transactions on Multicores",
//   section III; docs/COMMIT_PROTOCOL.md says where the library goes beyond it.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <sp3/detail/core.h>
#include <sp3/error.h>
#include <sp3/ptr.h>
#include <sp3/type.h>

namespace sp3 {

class RangedObject;

class Transaction {
 public:
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // The object as of this transaction: its private copy after write(), else a committed or
  // speculatively visible version, which a first write() leaves as it is.
  // Errors: invalid_pointer, destroyed_object, wrong_type; where a slab is first looked at,
  // damaged_metadata if it contradicts itself or both copies of its bitmap are damaged, and
  // io_error if a copy of its bitmap that was damaged could not be mended.
  template <Storable T>
  const T& read(Ptr<T> object) {
    return *static_cast<const T*>(detail::tx_read(core_, object.offset(), detail::type_info<T>));
  }

  // A private copy that becomes the object's next version at commit.
  // Errors: as read().
  template <Storable T>
  T& write(Ptr<T> object) {
    return *static_cast<T*>(detail::tx_write(core_, object.offset(), detail::type_info<T>));
  }

  // Makes `value`, which read() or write() may have given, the object's next version. Unlike
  // write(), which copies the object and logs the words that differ, this does not look at what it
  // holds, and logs all of `value`: faster where most of the object changes, more lines where
  // little does. Conflicts as write() does.
  // Errors: as read().
  template <Storable T>
  requires std::is_copy_assignable_v<T>
  void assign(Ptr<T> object, const T& value) {
    void* const copy = detail::tx_assign(core_, object.offset(), detail::type_info<T>);
    constexpr std::size_t kRest = (8 - sizeof(T) % 8) % 8;  // of the last word, which is logged too
    if constexpr (kRest != 0) std::memset(static_cast<std::byte*>(copy) + sizeof(T), 0, kRest);
    *static_cast<T*>(copy) = value;
  }

  // A hint that the object will soon be read or written: several objects named together come from
  // memory at the same time instead of one after the other. Reads nothing, reports nothing.
  template <Storable T>
  void prefetch(Ptr<T> object) noexcept {
    detail::tx_prefetch(core_, object.offset(), sizeof(T), false);
  }
  template <Storable T>
  void prefetch_for_write(Ptr<T> object) noexcept {
    detail::tx_prefetch(core_, object.offset(), sizeof(T), true);
  }

  // A new object over zeroed memory: T() without arguments, a copy of a T, else T{arguments...}, so
  // that none may be narrowed. Free again unless the transaction commits. Padding of a T larger than
  // 64 bytes reaches the file as the constructor leaves it. Where no slab is left, the transaction
  // starts over after a checkpoint that frees empty ones, and again while there is more to come.
  // Errors: pool_full if there are none, object_too_large, damaged_metadata and io_error as read(),
  // unsupported with CommitPolicy::ideal, and what the constructor throws: then there is no object.
  template <Storable T, class... Arguments>
  Ptr<T> make(Arguments&&... arguments) {
    void* storage = nullptr;
    const std::uint64_t offset = detail::tx_make(core_, detail::type_info<T>, &storage);
    constexpr bool is_default = sizeof...(Arguments) == 0 && std::is_default_constructible_v<T>;
    constexpr bool is_copy =
        sizeof...(Arguments) == 1 && (std::is_same_v<std::remove_cvref_t<Arguments>, T> && ...);
    try {
      if constexpr (is_default || is_copy) {
        // T{} may not call explicit constructors of members, and T{value} is a list of one T where a
        // T can be made of a list of them.
        ::new (storage) T(std::forward<Arguments>(arguments)...);
      } else {
        ::new (storage) T{std::forward<Arguments>(arguments)...};
      }
    } catch (...) {
      // The function may catch it and go on, without a Ptr to what would be left.
      detail::tx_destroy(core_, offset, detail::type_info<T>);
      throw;
    }
    return Ptr<T>::from_offset(offset);
  }

  // The object is gone when the transaction commits; its slot may then be reused.
  // Errors: as read(); unsupported with CommitPolicy::ideal.
  template <Storable T>
  void destroy(Ptr<T> object) {
    detail::tx_destroy(core_, object.offset(), detail::type_info<T>);
  }

  // The object that set_root() bound to `name`; null if there is none. Takes time by the number of
  // names, and conflicts with a transaction that binds a new one, or another that was bound after
  // it: meant for a handful, by which a program finds its containers. Errors: wrong_type if the
  // name was bound to another type, invalid_argument if it is too long or empty, or contains NUL;
  // as root_names().
  template <Storable T>
  Ptr<T> root(std::string_view name) {
    return Ptr<T>::from_offset(detail::tx_root(core_, name, detail::type_info<T>));
  }

  // Binds `name` (1 to 47 bytes, no NUL) to the object, as part of the transaction; null unbinds
  // it.
  // Errors: invalid_argument as root(); as read() of the object; as root_names(); for a new name
  // pool_full; for a new name, or to unbind one, unsupported with CommitPolicy::ideal.
  template <Storable T>
  void set_root(std::string_view name, Ptr<T> object) {
    detail::tx_set_root(core_, name, object.offset(), detail::type_info<T>);
  }

  // The names that are bound, in the order of their bytes. Takes time by their number, and conflicts
  // with any transaction that binds or unbinds one. Errors: as read(); damaged_metadata also if the
  // list of them goes round in a circle.
  [[nodiscard]] std::vector<std::string> root_names() { return detail::tx_root_names(core_); }

  // For who follows what objects hold, as the containers do: throws damaged_metadata, with these
  // facts, because what `object` holds cannot be. Objects carry no checksum, and a Ptr may lead to
  // one that was written by mistake.
  template <class T>
  [[noreturn]] void report_damage(Ptr<T> object, const char* message, const std::string& wanted,
                                  const std::string& found) {
    detail::tx_damaged(core_, object.offset(), message, wanted, found);
  }

  // Ends the transaction without effect: run() throws Cancelled, even if the function catches it
  // here. Errors: transaction_over.
  [[noreturn]] void cancel() { detail::tx_cancel(core_); }

 private:
  friend class RangedObject;
  friend class runtime::SessionCore;
  explicit Transaction(runtime::SessionCore& core) noexcept : core_(core) {}
  ~Transaction() = default;

  runtime::SessionCore& core_;
};

}  // namespace sp3

// The errors of sp3: one exception type that carries the facts needed to act on it.
//
// Thread safety: an Error is a value. Programmer errors inside the library assert; everything that
// a user, a file, a disk or a limit can cause arrives here. Bytes read from a pool never assert.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <sp3/detail/export.h>

namespace sp3 {

enum class ErrorCode : std::uint8_t {
  // The environment.
  not_found,          // no file at the path
  already_exists,     // create would overwrite a file
  is_a_directory,     // the path names a directory, or a fifo, socket or device
  permission_denied,  // the operating system refuses
  no_space,           // the disk or the quota is full, or a file may not be so large
  io_error,           // a system call failed; the message names it and its errno
  pool_in_use,        // another process, or another Pool of this process, has the pool open
  unsupported,        // this machine, memory kind or commit policy cannot do it

  // The file.
  not_a_pool,     // the magic number is another's
  wrong_version,  // a format, or an incompatible feature, this library does not know
  wrong_size,     // the file is shorter or longer than its header says
  // both copies fail their checksum, contradict themselves, or name numbers that no pool gets to;
  // or they are of two pools
  damaged_superblock,
  // a slab's description or bitmap fails its checksum; or the objects that a container, a ranged
  // object or the roots consist of contradict themselves
  damaged_metadata,
  damaged_log,  // a record that was durable cannot be read any more
  wrong_uuid,   // the pool is not the one that was asked for

  // Arguments and limits.
  invalid_argument,       // zero or absurd sizes and options
  pool_full,              // no slab is left for the object
  too_many_sessions,      // every session of the pool is taken
  object_too_large,       // larger than a slab of this pool can hold
  transaction_too_large,  // larger than the log could ever hold, what write() opened reckoned whole

  // Use.
  invalid_pointer,     // null, outside any slab, or not at the start of an object
  destroyed_object,    // the object was destroyed, or never made
  wrong_type,          // the object was made as another type, size or version
  transaction_over,    // a Transaction is used after its function has returned
  nested_transaction,  // what would wait for the body it is called in: run() of its session, ...
  session_busy,        // a session is used by two threads at once
  session_closed,      // the session (or what it was moved to) has been closed
  pool_closed,         // the pool has been closed
  sessions_open,       // close() while sessions are open
  ticket_spent,        // a ticket was waited for twice, or holds nothing
  forked,              // the handle was inherited through fork(); it belongs to the parent
  invalid_range,       // a range that is empty or ends before it begins
  range_not_held,      // unlock with a handle that is empty, was used, or belongs to another lock
  range_lock_busy,     // a range lock is closed while ranges are held or waited for
  nested_wait,         // an owner that holds ranges waited for another longer than it may
  beyond_end,          // a range reaches beyond the end of its ranged object
  view_open,           // a ranged object is resized or destroyed under a view of the transaction
  view_expired,        // a view is used after its transaction, or was never one
  outcome_unknown,     // persisting failed after publish: the pool is poisoned, reopen to recover
};

// The name of the code as it is written above, for logs and tests.
SP3_API const char* to_string(ErrorCode code) noexcept;

// What is known about an error. Empty members are not known or do not apply.
struct SP3_API ErrorFacts {
  std::string path{};                     // the file
  std::optional<std::uint64_t> offset{};  // bytes from the start of the file
  std::string wanted{};                   // what the library needed
  std::string found{};                    // what it met instead
};

class SP3_API Error : public std::runtime_error {
 public:
  // what() is one line made of the message and all known facts, control characters escaped.
  Error(ErrorCode code, const std::string& message, ErrorFacts facts = {});

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const ErrorFacts& facts() const noexcept { return facts_; }

 private:
  ErrorCode code_;
  ErrorFacts facts_;
};

// Thrown by Transaction::cancel(): the transaction has had no effect. It leaves run() like any
// exception of the user's own code.
class SP3_API Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("transaction cancelled") {}
};

}  // namespace sp3

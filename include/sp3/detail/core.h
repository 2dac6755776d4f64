// What the inline parts of the public API call. Not part of the API: names here may change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sp3/detail/export.h>
#include <sp3/type.h>

namespace sp3 {

class Transaction;

namespace runtime {
class PoolCore;
class SessionCore;
struct CommitMark;
}  // namespace runtime

namespace detail {

// The untyped transaction. `core` is the session that runs it.
SP3_API const void* tx_read(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type);
// The private copy, whose bytes the caller stores.
SP3_API void* tx_assign(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type);
SP3_API void* tx_write(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type);
SP3_API void tx_prefetch(runtime::SessionCore& core, std::uint64_t offset, std::uint64_t bytes,
                         bool for_write) noexcept;
// Returns the new object's offset; *storage is its zeroed private copy.
SP3_API std::uint64_t tx_make(runtime::SessionCore& core, const TypeInfo& type, void** storage);
SP3_API void tx_destroy(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type);
SP3_API std::uint64_t tx_root(runtime::SessionCore& core, std::string_view name,
                              const TypeInfo& type);
SP3_API std::vector<std::string> tx_root_names(runtime::SessionCore& core);
SP3_API void tx_set_root(runtime::SessionCore& core, std::string_view name, std::uint64_t offset,
                         const TypeInfo& type);
[[noreturn]] SP3_API void tx_damaged(runtime::SessionCore& core, std::uint64_t offset,
                                     const char* message, const std::string& wanted,
                                     const std::string& found);
[[noreturn]] SP3_API void tx_cancel(runtime::SessionCore& core);

// The user's function, with its type erased: call(context, tx).
struct Body {
  void* context;
  void (*call)(void* context, Transaction& tx);
};

// Of a function, or of an object that lives as long as it is called.
template <class F>
Body body_of(F& body) noexcept {
  if constexpr (std::is_function_v<F>) {
    return {reinterpret_cast<void*>(&body),
            [](void* context, Transaction& tx) { reinterpret_cast<F*>(context)(tx); }};
  } else {
    return {const_cast<void*>(static_cast<const void*>(std::addressof(body))),
            [](void* context, Transaction& tx) { std::invoke(*static_cast<F*>(context), tx); }};
  }
}

}  // namespace detail
}  // namespace sp3

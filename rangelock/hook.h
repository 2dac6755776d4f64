// Hooks: the named instants of the locks at which another thread could get in between.
//
// Tests install a function that is called at each and drive two threads into the interleaving they
// want. Where none is installed a hook is one predictable test of a pointer.
#pragma once

#include <atomic>
#include <cstdint>

namespace sp3::rangelock {

enum class Hook : std::uint8_t {
  gap_found,           // a search has arrived, and may have passed nodes that are used again
  not_linked_nearby,   // an attempt from a signpost has failed, and is about to be looked at
  before_refill,       // a pool has no free node, and is about to get some
  before_link,         // the gap is found; the next instruction links the node into it
  before_unlock,       // the next instruction marks the node
  before_unlink,       // a marked node is about to be unlinked
  before_resolve,      // an exclusive range is linked, and shared ranges not yet looked for
  before_sleep,        // queued, and about to sleep
  unlocking_nearby,    // pinned to unlock a node; the signpost before it is not looked for yet
  unlocked_nearby,     // a node is marked, and its unlocker looks whether to unlink it
  signpost_linked,     // a signpost is in the list, and not yet in the table
  signpost_in_way,     // a range is free but for signposts, as far as a search has seen
  before_removal,      // a signpost is about to be removed
  signpost_withdrawn,  // it is no longer in the table, and still in the list
  inside_bucket,       // inside a bucket of the grid, the first time since its bit was cleared
};

using HookFunction = void (*)(Hook at);

namespace detail {
inline std::atomic<HookFunction> hook_function{nullptr};
}

inline void hook(Hook at) {
  // acquire: what the installer prepared for its function is visible to it.
  if (const HookFunction function = detail::hook_function.load(std::memory_order_acquire))
      [[unlikely]] {
    function(at);
  }
}

inline bool is_hooked() noexcept {
  return detail::hook_function.load(std::memory_order_relaxed) != nullptr;
}

inline void install_hook(HookFunction function) noexcept {
  detail::hook_function.store(function, std::memory_order_release);
}

}  // namespace sp3::rangelock

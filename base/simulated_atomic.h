// What base/atomic.h is in simulated builds: plain memory, since there is one OS thread, and a model
// that is asked about each access.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/memory_model.h"

namespace sp3::base {

namespace detail {

template <class T>
std::uint64_t bits_of(const T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T of_bits(std::uint64_t bits) noexcept {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}

// The order of an exchange that fails, if only that of success was given.
constexpr std::memory_order on_failure(std::memory_order success) noexcept {
  switch (success) {
    case std::memory_order_acq_rel:
      return std::memory_order_acquire;
    case std::memory_order_release:
      return std::memory_order_relaxed;
    default:
      return success;
  }
}

// The operations of the standard's atomics on Derived::place(), as far as the library uses them.
template <class Derived, class T>
class AtomicOperations {
 public:
  static constexpr bool is_always_lock_free = sizeof(T) <= sizeof(std::uint64_t);

  [[nodiscard]] T load(std::memory_order order = std::memory_order_seq_cst,
                       Site site = Site::current()) const noexcept {
    if (memory_model == nullptr) return place();
    order = memory_model->before_access(AtomicAccess::load, order, site);
    return of_bits<T>(memory_model->load(&place(), bits_of(place()), order));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst,
             Site site = Site::current()) const noexcept {
    if (memory_model == nullptr) return static_cast<void>(place() = value);
    order = memory_model->before_access(AtomicAccess::store, order, site);
    memory_model->store(&place(), bits_of(place()), bits_of(value), order);
    place() = value;
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst,
             Site site = Site::current()) const noexcept {
    return modify([&](T) { return value; }, order, site);
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order success,
                               std::memory_order failure,
                               Site site = Site::current()) const noexcept {
    if (memory_model != nullptr) {
      const std::memory_order order =
          memory_model->before_access(AtomicAccess::exchange, success, site);
      if (order != success) failure = on_failure(order);
      success = order;
    }
    const T before = place();
    if (bits_of(before) != bits_of(expected)) {
      if (memory_model != nullptr) {
        memory_model->fail_to_exchange(&place(), bits_of(before), failure);
      }
      expected = before;
      return false;
    }
    set(before, value, success);
    return true;
  }
  bool compare_exchange_strong(T& expected, T value,
                               std::memory_order order = std::memory_order_seq_cst,
                               Site site = Site::current()) const noexcept {
    return compare_exchange_strong(expected, value, order, on_failure(order), site);
  }
  // Fails for no reason never: loops around it have to end.
  bool compare_exchange_weak(T& expected, T value, std::memory_order success,
                             std::memory_order failure,
                             Site site = Site::current()) const noexcept {
    return compare_exchange_strong(expected, value, success, failure, site);
  }
  bool compare_exchange_weak(T& expected, T value,
                             std::memory_order order = std::memory_order_seq_cst,
                             Site site = Site::current()) const noexcept {
    return compare_exchange_strong(expected, value, order, site);
  }
  T fetch_add(T more, std::memory_order order = std::memory_order_seq_cst,
              Site site = Site::current()) const noexcept {
    return modify([&](T before) { return static_cast<T>(before + more); }, order, site);
  }
  T fetch_sub(T less, std::memory_order order = std::memory_order_seq_cst,
              Site site = Site::current()) const noexcept {
    return modify([&](T before) { return static_cast<T>(before - less); }, order, site);
  }
  T fetch_or(T bits, std::memory_order order = std::memory_order_seq_cst,
             Site site = Site::current()) const noexcept {
    return modify([&](T before) { return static_cast<T>(before | bits); }, order, site);
  }
  T fetch_and(T bits, std::memory_order order = std::memory_order_seq_cst,
              Site site = Site::current()) const noexcept {
    return modify([&](T before) { return static_cast<T>(before & bits); }, order, site);
  }

 private:
  [[nodiscard]] T& place() const noexcept { return static_cast<const Derived&>(*this).place(); }

  template <class Change>
  T modify(Change change, std::memory_order order, const Site& site) const noexcept {
    if (memory_model != nullptr) {
      order = memory_model->before_access(AtomicAccess::exchange, order, site);
    }
    const T before = place();
    set(before, change(before), order);
    return before;
  }
  void set(T before, T value, std::memory_order order) const noexcept {
    if (memory_model != nullptr) {
      memory_model->exchange(&place(), bits_of(before), bits_of(value), order);
    }
    place() = value;
  }
};

}  // namespace detail

template <class T>
class Atomic : public detail::AtomicOperations<Atomic<T>, T> {
 public:
  constexpr Atomic() noexcept : Atomic(T()) {}
  constexpr Atomic(T value) noexcept : value_(value) {  // NOLINT(google-explicit-constructor)
    if (!std::is_constant_evaluated() && memory_model != nullptr) memory_model->forget(&value_);
  }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

 private:
  friend class detail::AtomicOperations<Atomic<T>, T>;
  [[nodiscard]] T& place() const noexcept { return value_; }

  alignas(sizeof(T)) mutable T value_;
};

template <class T>
class AtomicRef : public detail::AtomicOperations<AtomicRef<T>, T> {
 public:
  static constexpr std::size_t required_alignment = sizeof(T);
  explicit AtomicRef(T& place) noexcept : place_(&place) {}

 private:
  friend class detail::AtomicOperations<AtomicRef<T>, T>;
  [[nodiscard]] T& place() const noexcept { return *place_; }

  T* place_;
};

inline void atomic_fence(std::memory_order order, Site site = Site::current()) noexcept {
  if (memory_model == nullptr) return;
  memory_model->fence(memory_model->before_access(AtomicAccess::fence, order, site));
}

}  // namespace sp3::base

// scaled: limits that a program of a few transactions has to meet on the simulated machine, where
// each of its events is tried with crashes: how much is collected, kept or taken at a time.
// Simulated runs that only measure time are as long as native ones, and have their limits.
//
// Limits with a third value have it in those simulated cases that ask for it (TinyLimits): what
// takes a thousand transactions natively happens every few there.
#pragma once

namespace sp3::base {

#ifdef SP3_SIMULATED

namespace detail {
inline bool scaled_down = true;
inline bool tiny = false;
}  // namespace detail

// While it lives, scaled() gives the one or the other. Thread safety: simulated code has one OS
// thread.
class Scaling {
 public:
  explicit Scaling(bool down) noexcept : before_(detail::scaled_down) {
    detail::scaled_down = down;
  }
  ~Scaling() { detail::scaled_down = before_; }
  Scaling(const Scaling&) = delete;
  Scaling& operator=(const Scaling&) = delete;

 private:
  bool before_;
};

// Tiny while it lives, if `tiny`.
class TinyLimits {
 public:
  explicit TinyLimits(bool tiny) noexcept : before_(detail::tiny) { detail::tiny = tiny; }
  ~TinyLimits() { detail::tiny = before_; }
  TinyLimits(const TinyLimits&) = delete;
  TinyLimits& operator=(const TinyLimits&) = delete;

 private:
  bool before_;
};

template <class T>
T scaled(T native, T simulated) noexcept {
  return detail::scaled_down ? simulated : native;
}

template <class T>
T scaled(T native, T simulated, T tiny) noexcept {
  return detail::scaled_down && detail::tiny ? tiny : scaled(native, simulated);
}

#else

template <class T>
constexpr T scaled(T native, T /*simulated*/) noexcept {
  return native;
}

template <class T>
constexpr T scaled(T native, T /*simulated*/, T /*tiny*/) noexcept {
  return native;
}

#endif

}  // namespace sp3::base

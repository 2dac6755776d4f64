// Body<Tx>: the body of a transaction, as a reference that other threads may run.
//
// Lifetime: that of the callable it refers to; nothing is copied or allocated.
#pragma once

namespace sp3::workloads::word_tm {

template <class Tx>
class Body {
 public:
  template <class F>
  explicit Body(F& callable) noexcept
      : callable_(const_cast<void*>(static_cast<const void*>(&callable))),
        call_([](void* body, Tx& tx) -> bool { return (*static_cast<F*>(body))(tx); }) {}

  bool operator()(Tx& tx) const { return call_(callable_, tx); }

 private:
  void* callable_;
  bool (*call_)(void*, Tx&);
};

}  // namespace sp3::workloads::word_tm

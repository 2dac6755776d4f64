// Fibers: one stack per virtual core, switched by hand.
//
// Exceptions: the C++ runtime keeps what is being handled in thread-local storage, and a core may be
// switched out inside a handler. So each fiber has a copy of that storage, exchanged at a switch.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <boost/context/fiber.hpp>

namespace sp3::emu::sim {

class Fibers {
 public:
  Fibers() = default;
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // A new fiber that will run `body`; numbered from 0. `body` must not throw.
  void add(std::function<void()> body);
  // From outside: runs fiber `next` until leave() or its end.
  void enter(std::size_t next);
  // From a fiber: back to whoever called enter().
  void leave();
  // Whether the fiber's body has returned.
  [[nodiscard]] bool ended(std::size_t fiber) const { return fibers_[fiber].ended; }

 private:
  // What __cxa_get_globals() points to (Itanium C++ ABI).
  struct ExceptionState {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  struct Fiber {
    boost::context::fiber context;
    ExceptionState exceptions;
    const void* stack = nullptr;  // its lowest byte
    std::size_t stack_bytes = 0;
    void* thread_sanitizer = nullptr;  // what ThreadSanitizer knows it by
    bool ended = false;
  };

  static ExceptionState exchange_exceptions(const ExceptionState& with) noexcept;

  std::vector<Fiber> fibers_;
  std::size_t running_ = 0;
  boost::context::fiber outside_;
  ExceptionState outside_exceptions_;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

}  // namespace sp3::emu::sim

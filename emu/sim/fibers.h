// Fibers: one stack per virtual core, switched by hand.
//
// Exceptions: the C++ runtime keeps what is being handled in thread-local storage, and a core may
// be switched out inside a handler. So each fiber has a copy of that storage, exchanged at a
// switch.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include <boost/context/fiber.hpp>

namespace sp3::emu::sim {

class Fibers {
 public:
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // A new fiber that will run `body`; numbered from 0. `body` must not throw.
  void add(std::function<void()> body);
  // From outside: runs fiber `next`, and those that it changes to, until leave() or an end.
  void enter(std::size_t next);
  // From a fiber: runs another; returns when somebody changes back.
  void change_to(std::size_t next) { go(next); }
  // From a fiber: back to whoever called enter().
  void leave() { go(kOutside); }
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

  static constexpr std::size_t kOutside = ~std::size_t{0};

  [[nodiscard]] Fiber& at(std::size_t number) {
    return number == kOutside ? outside_ : fibers_[number];
  }
  void go(std::size_t next);
  boost::context::fiber start_switch(std::size_t next, void** fake);
  void finish_switch(boost::context::fiber&& from, void* fake);

  ExceptionState& current_exceptions_;
  std::deque<Fiber> fibers_;  // they stay where they are when more are added
  Fiber outside_;
  std::size_t running_ = kOutside;
  std::size_t came_from_ = kOutside;
};

}  // namespace sp3::emu::sim

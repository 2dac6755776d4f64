// Stacks are mapped with a guard page and used again: mapping one costs more than a whole small
// run.
#include "emu/sim/fibers.h"

#include <memory>
#include <utility>
#include <vector>

#include <cxxabi.h>

#include <boost/context/protected_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
// ThreadSanitizer keeps a call stack of each fiber, by what functions tell it when they begin and
// end.
// One that tells it to change fibers must not be among them: it would begin on one stack and end on
// another.
#define SP3_CHANGES_FIBERS [[gnu::no_sanitize("thread")]]
extern "C" void __tsan_func_exit();  // what a function tells it when it ends
#else
#define SP3_CHANGES_FIBERS
#endif

namespace sp3::emu::sim {
namespace {

namespace context = boost::context;

// Whoever watches a core runs recoveries on its stack.
constexpr std::size_t kStackBytes = std::size_t{512} << 10;

class StackPool {
 public:
  ~StackPool() {
    for (context::stack_context& stack : free_) allocator_.deallocate(stack);
  }
  context::stack_context take() {
    if (free_.empty()) return allocator_.allocate();
    context::stack_context stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give(const context::stack_context& stack) { free_.push_back(stack); }

 private:
  context::protected_fixedsize_stack allocator_{kStackBytes};
  std::vector<context::stack_context> free_;
};

StackPool& stacks() {
  static StackPool pool;
  return pool;
}

#if defined(__SANITIZE_THREAD__)
// What ThreadSanitizer knows fibers by. They are used again: with every number that it has ever
// given, the clock of each atomic variable grows, and one is as good for it as another, since a
// switch orders what is before it and after it.
class ThreadSanitizerFibers {
 public:
  void* take() {
    if (free_.empty()) return __tsan_create_fiber(0);
    void* const fiber = free_.back();
    free_.pop_back();
    return fiber;
  }
  void give(void* fiber) { free_.push_back(fiber); }

 private:
  std::vector<void*> free_;
};

ThreadSanitizerFibers& thread_sanitizer_fibers() {
  static ThreadSanitizerFibers pool;
  return pool;
}
#endif

// What Boost.Context wants of a stack allocator.
struct PooledStack {
  context::stack_context allocate() { return stacks().take(); }
  void deallocate(context::stack_context& stack) { stacks().give(stack); }
};

}  // namespace

Fibers::~Fibers() {
  for (Fiber& fiber : fibers_) {
#if defined(__SANITIZE_THREAD__)
    if (fiber.ended) thread_sanitizer_fibers().give(fiber.thread_sanitizer);
#endif
    // Destroying an unfinished one would unwind it, through code that believes in a live machine.
    // No memory for one of them ends the program, which is meant.
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new)
    if (!fiber.ended) (void)new context::fiber(std::move(fiber.context));
  }
}

// One thread runs all fibers, so its storage is asked for once.
Fibers::Fibers()
    : current_exceptions_(*reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals())) {}

void Fibers::add(std::function<void()> body) {
  PooledStack allocator;
  const context::stack_context stack = allocator.allocate();
  Fiber& fiber = fibers_.emplace_back();
  fiber.stack_bytes = stack.size;
  fiber.stack = static_cast<const char*>(stack.sp) - stack.size;
#if defined(__SANITIZE_THREAD__)
  fiber.thread_sanitizer = thread_sanitizer_fibers().take();
#endif
  fiber.context = context::fiber(
      std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), allocator,
      [this, &fiber, body = std::move(body)](context::fiber&& from) mutable {
        finish_switch(std::move(from), nullptr);
        body();
        body = nullptr;  // what it owns goes while its fiber still lives
        fiber.ended = true;
        return start_switch(kOutside, nullptr);
      });
#if defined(__SANITIZE_THREAD__)
  // For the function of Boost's that has begun, and will go on, on the other stack and not return.
  __tsan_func_exit();
#endif
}

// What is kept of the running fiber, and told to the sanitizers, when `next` takes over. `fake`
// null: the running one ends; ThreadSanitizer hears of that later, since the functions that end
// with it are still on its stack.
SP3_CHANGES_FIBERS context::fiber Fibers::start_switch(std::size_t next,
                                                       [[maybe_unused]] void** fake) {
  Fiber& to = at(next);
  at(running_).exceptions = std::exchange(current_exceptions_, to.exceptions);
  came_from_ = std::exchange(running_, next);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake, to.stack, to.stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  if (came_from_ == kOutside) outside_.thread_sanitizer = __tsan_get_current_fiber();
  if (fake != nullptr) __tsan_switch_to_fiber(to.thread_sanitizer, 0);
#endif
  return std::move(to.context);
}

// `from`: whoever was left for this one, so that it can be gone back to.
SP3_CHANGES_FIBERS void Fibers::finish_switch(context::fiber&& from, [[maybe_unused]] void* fake) {
  Fiber& left = at(came_from_);
  left.context = std::move(from);
#if defined(__SANITIZE_THREAD__)
  if (left.ended) __tsan_switch_to_fiber(at(running_).thread_sanitizer, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake, &stack, &bytes);
  if (came_from_ == kOutside) {
    left.stack = stack;
    left.stack_bytes = bytes;
  }
#endif
}

void Fibers::go(std::size_t next) {
  void* fake = nullptr;
  context::fiber to = start_switch(next, &fake);
  finish_switch(std::move(to).resume(), fake);
}

void Fibers::enter(std::size_t next) { go(next); }

}  // namespace sp3::emu::sim

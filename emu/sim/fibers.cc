// Stacks are mapped with a guard page and used again: mapping one costs more than a whole small run.
#include "emu/sim/fibers.h"

#include <memory>
#include <utility>

#include <cxxabi.h>

#include <boost/context/protected_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
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

// What Boost.Context wants of a stack allocator.
struct PooledStack {
  context::stack_context allocate() { return stacks().take(); }
  void deallocate(context::stack_context& stack) { stacks().give(stack); }
};

}  // namespace

Fibers::~Fibers() {
  for (Fiber& fiber : fibers_) {
#if defined(__SANITIZE_THREAD__)
    if (fiber.ended) __tsan_destroy_fiber(fiber.thread_sanitizer);
#endif
    // Destroying an unfinished one would unwind it, through code that believes in a live machine.
    if (!fiber.ended) (void)new context::fiber(std::move(fiber.context));
  }
}

Fibers::ExceptionState Fibers::exchange_exceptions(const ExceptionState& with) noexcept {
  auto* state = reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
  return std::exchange(*state, with);
}

void Fibers::add(std::function<void()> body) {
  PooledStack allocator;
  const context::stack_context stack = allocator.allocate();
  Fiber fiber;
  fiber.stack_bytes = stack.size;
  fiber.stack = static_cast<const char*>(stack.sp) - stack.size;
#if defined(__SANITIZE_THREAD__)
  fiber.thread_sanitizer = __tsan_create_fiber(0);
#endif
  const std::size_t number = fibers_.size();
  fiber.context = context::fiber(
      std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), allocator,
      [this, number, body = std::move(body)](context::fiber&& outside) mutable {
        outside_ = std::move(outside);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(nullptr, &outside_stack_, &outside_bytes_);
#endif
        body();
        body = nullptr;  // what it owns goes while its fiber still lives
        fibers_[number].ended = true;
        exchange_exceptions(outside_exceptions_);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(nullptr, outside_stack_, outside_bytes_);
#endif
        return std::move(outside_);
      });
  fibers_.push_back(std::move(fiber));
}

void Fibers::enter(std::size_t next) {
  running_ = next;
  outside_exceptions_ = exchange_exceptions(fibers_[next].exceptions);
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, fibers_[next].stack, fibers_[next].stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  void* const self = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fibers_[next].thread_sanitizer, 0);
#endif
  context::fiber back = std::move(fibers_[next].context).resume();
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(self, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  fibers_[next].context = std::move(back);
}

void Fibers::leave() {
  const std::size_t self = running_;
  fibers_[self].exceptions = exchange_exceptions(outside_exceptions_);
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, outside_stack_, outside_bytes_);
#endif
  outside_ = std::move(outside_).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, &outside_stack_, &outside_bytes_);
#endif
}

}  // namespace sp3::emu::sim

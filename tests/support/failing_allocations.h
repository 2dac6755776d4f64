// Replaces the allocation functions of the whole program by ones that may be refused: for programs
// that run out of memory. To be included by one source of a program, which says what is refused.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace sp3::test {

// Of this source: whether operator new, and whether aligned_alloc, has no memory for so much.
bool is_refused(std::size_t bytes);
bool is_refused_aligned(std::size_t bytes);

inline constexpr long kPlenty = -1;
inline thread_local long allocations_left = kPlenty;  // then one fails

inline bool has_run_out() {
  if (allocations_left == kPlenty) return false;
  return allocations_left-- == 0;
}

}  // namespace sp3::test

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const block = sp3::test::is_refused(bytes) ? nullptr : std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  void* block = nullptr;
  if (sp3::test::is_refused_aligned(bytes)) return nullptr;
  return ::posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

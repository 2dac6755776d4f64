// Accesses to memory that is not atomic and that cores share, told to whoever looks for races.
//
// Two accesses of different cores, one of them a write, have to be ordered by what synchronises the
// two. In simulated builds a machine with weak memory checks that (emu/sim/plain_memory.h); natively
// telling is nothing at all.
#pragma once

#include <cstddef>

#ifdef SP3_SIMULATED
#include "base/memory_model.h"
#endif

namespace sp3::base {

#ifdef SP3_SIMULATED

inline void plain_read(const void* at, std::size_t bytes, Site site = Site::current()) noexcept {
  if (memory_model != nullptr) memory_model->read_plainly(at, bytes, site);
}
// The core may read there until it says that long reads end.
inline void long_read(const void* at, std::size_t bytes, Site site = Site::current()) noexcept {
  if (memory_model != nullptr) memory_model->read_for_long(at, bytes, site);
}
inline void end_long_reads() noexcept {
  if (memory_model != nullptr) memory_model->end_long_reads();
}
inline void plain_write(const void* at, std::size_t bytes, Site site = Site::current()) noexcept {
  if (memory_model != nullptr) memory_model->write_plainly(at, bytes, site);
}
// The memory comes from an allocator, which has ordered what was done there before.
inline void fresh_memory(const void* at, std::size_t bytes) noexcept {
  if (memory_model != nullptr) memory_model->forget_plainly(at, bytes);
}

#else

inline void plain_read(const void* /*at*/, std::size_t /*bytes*/) noexcept {}
inline void long_read(const void* /*at*/, std::size_t /*bytes*/) noexcept {}
inline void end_long_reads() noexcept {}
inline void plain_write(const void* /*at*/, std::size_t /*bytes*/) noexcept {}
inline void fresh_memory(const void* /*at*/, std::size_t /*bytes*/) noexcept {}

#endif

}  // namespace sp3::base

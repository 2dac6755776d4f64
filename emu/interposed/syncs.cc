#include "emu/interposed/syncs.h"

#include <sys/mman.h>
#include <unistd.h>

#include "emu/interposed/next_symbol.h"

namespace sp3::emu {

namespace {
constinit thread_local std::uint64_t calls = 0;
}

std::uint64_t sync_calls() noexcept { return calls; }

}  // namespace sp3::emu

extern "C" {

int fdatasync(int fd) {
  static const auto real = sp3::emu::next_symbol<int(int)>("fdatasync");
  ++sp3::emu::calls;
  return real(fd);
}

int fsync(int fd) {
  static const auto real = sp3::emu::next_symbol<int(int)>("fsync");
  ++sp3::emu::calls;
  return real(fd);
}

int msync(void* addr, size_t len, int flags) {
  static const auto real = sp3::emu::next_symbol<int(void*, size_t, int)>("msync");
  if ((flags & MS_SYNC) != 0) ++sp3::emu::calls;
  return real(addr, len, flags);
}

}  // extern "C"

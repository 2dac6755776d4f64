// Between the C library and everything that syncs files: counts the calls, so that what a database
// does to make a transaction durable is known without asking it.
//
// A program that links sp3_interposed_syncs defines fdatasync, fsync and msync itself; every
// library's calls come by there and go on to the C library's. Not counted: writes to a descriptor
// that was opened with O_DSYNC or O_SYNC, which sync by themselves, and sync_file_range, which
// makes nothing durable.
//
// Thread safety: counts are per thread.
#pragma once

#include <cstdint>

namespace sp3::emu {

// Calls of fdatasync, fsync and msync(MS_SYNC) by this thread since it started.
std::uint64_t sync_calls() noexcept;

}  // namespace sp3::emu

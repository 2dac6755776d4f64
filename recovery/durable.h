// Fences of recovery: in parallel, and what follows when one fails.
#pragma once

#include <cstddef>
#include <functional>

#include "emu/executor.h"
#include "pool/pool_file.h"

namespace sp3::recovery {

// Calls body(i) for every i in [0, count) as Executor::parallel_for does. Each flushes and fences
// for itself, since a fence orders the flushes of its own thread only. Returns one of the errors if
// any body met one.
emu::IoStatus parallel_status(emu::Executor& executor, std::size_t count,
                              const std::function<emu::IoStatus(std::size_t)>& body);

// Errors: io_error, saying `what`, if `status` is not ok.
void require_durable(const pool::PoolFile& file, emu::IoStatus status, const char* what);

}  // namespace sp3::recovery

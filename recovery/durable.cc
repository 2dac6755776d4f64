#include "recovery/durable.h"

#include <mutex>

#include "base/mutant.h"
#include "emu/threads.h"
#include "pool/file_system.h"

namespace sp3::recovery {

emu::IoStatus parallel_status(emu::Executor& executor, std::size_t count,
                              const std::function<emu::IoStatus(std::size_t)>& body) {
  emu::Mutex mutex;
  emu::IoStatus status;
  executor.parallel_for(count, [&](std::size_t i) {
    const emu::IoStatus fenced = body(i);
    const std::lock_guard lock(mutex);
    if (!fenced.ok()) status = fenced;
  });
  return status;
}

void require_durable(const pool::PoolFile& file, emu::IoStatus status, const char* what) {
  if (status.ok() || base::mutant(base::Mutant::failed_recovery_fence_is_forgotten)) return;
  pool::throw_system_error(status.error, what, file.path());
}

}  // namespace sp3::recovery

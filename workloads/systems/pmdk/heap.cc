#include "workloads/systems/pmdk/heap.h"

#include <cerrno>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <libpmemobj.h>

#include "base/align.h"
#include "emu/interposed/libpmem.h"

namespace sp3::workloads::pmdk {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("libpmemobj: {}: {}", what, pmemobj_errormsg()));
}

void require(bool done, const char* what) {
  if (!done) fail(what);
}

constexpr mode_t kMode = 0600;
constexpr std::uint64_t kArrayType = 0;

}  // namespace

void Heap::create(const std::filesystem::path& path, const std::string& layout, std::uint64_t bytes,
                  bool emulated) {
  std::optional<emu::AssumePersistent> assume;
  if (emulated) assume.emplace();
  int prefault = emulated ? 1 : 0;  // as the other systems' pages are (Options::prefault_ms)
  require(pmemobj_ctl_set(nullptr, "prefault.at_create", &prefault) == 0, "prefault.at_create");
  pool_ = pmemobj_create(path.c_str(), layout.c_str(), bytes, kMode);
  if (pool_ == nullptr) fail("pmemobj_create");
  base_ = reinterpret_cast<std::byte*>(pool_);
}

void Heap::open(const std::filesystem::path& path, const std::string& layout, bool emulated) {
  std::optional<emu::AssumePersistent> assume;
  if (emulated) assume.emplace();
  pool_ = pmemobj_open(path.c_str(), layout.c_str());
  if (pool_ == nullptr) fail("pmemobj_open");
  base_ = reinterpret_cast<std::byte*>(pool_);
}

void Heap::close() {
  if (pool_ != nullptr) pmemobj_close(pool_);
  pool_ = nullptr;
}

void Heap::persist(const void* address, std::size_t bytes) const {
  pmemobj_persist(pool_, address, bytes);
}

void* Heap::find_root(std::size_t bytes) const {
  const PMEMoid root = pmemobj_root(pool_, bytes);
  require(!OID_IS_NULL(root), "pmemobj_root");
  return base_ + root.off;
}

// An allocation starts 16 bytes into a cache line; a line more leaves room to align it.
std::uint64_t Heap::make_zeros(std::uint64_t bytes) const {
  PMEMoid array = OID_NULL;
  const std::uint64_t line = base::kCacheLine;
  require(pmemobj_zalloc(pool_, &array, bytes + line, kArrayType) == 0, "pmemobj_zalloc");
  return base::round_up(array.off, line);
}

void Heap::lock_shared(PMEMrwlock& lock) const {
  require(pmemobj_rwlock_rdlock(pool_, &lock) == 0, "pmemobj_rwlock_rdlock");
}
void Heap::unlock_shared(PMEMrwlock& lock) const { pmemobj_rwlock_unlock(pool_, &lock); }

Tx::Tx(const Heap& heap) : heap_(heap) {
  if (pmemobj_tx_begin(heap.pool(), nullptr, TX_PARAM_NONE) == 0) return;
  static_cast<void>(pmemobj_tx_end());
  fail("pmemobj_tx_begin");
}

Tx::~Tx() {
  if (pmemobj_tx_stage() == TX_STAGE_WORK) pmemobj_tx_abort(ECANCELED);
  static_cast<void>(pmemobj_tx_end());
}

void Tx::lock(PMEMmutex& lock) {
  require(pmemobj_tx_lock(TX_PARAM_MUTEX, &lock) == 0, "pmemobj_tx_lock");
}
void Tx::lock(PMEMrwlock& lock) {
  require(pmemobj_tx_lock(TX_PARAM_RWLOCK, &lock) == 0, "pmemobj_tx_lock");
}

void Tx::snapshot(void* address, std::size_t bytes) {
  require(pmemobj_tx_add_range_direct(address, bytes) == 0, "pmemobj_tx_add_range_direct");
}

std::uint64_t Tx::allocate(std::size_t bytes, std::uint64_t type) {
  const PMEMoid made = pmemobj_tx_alloc(bytes, type);
  require(!OID_IS_NULL(made), "pmemobj_tx_alloc");
  return made.off;
}

void Tx::free(std::uint64_t offset) {
  const PMEMoid oid = pmemobj_oid(reinterpret_cast<const std::byte*>(heap_.pool()) + offset);
  require(pmemobj_tx_free(oid) == 0, "pmemobj_tx_free");
}

void Tx::commit() {
  pmemobj_tx_commit();
  require(pmemobj_tx_stage() == TX_STAGE_ONCOMMIT, "pmemobj_tx_commit");
}

}  // namespace sp3::workloads::pmdk

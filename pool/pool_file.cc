// Opening a pool file: each step trusts only what the steps before it have established.
//
//   regular file -> locked -> size -> superblocks -> features -> UUID -> no holes -> mapped
#include "pool/pool_file.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <sp3/error.h>

#include "emu/step.h"
#include "pool/blocks.h"
#include "pool/file_system.h"

namespace sp3::pool {
namespace {

// The superblocks are read, not mapped, so that an unreadable sector is an error and not a signal.
SuperblockChoice read_from(int fd, std::uint64_t size, const std::string& path) {
  std::vector<std::byte> prefix(std::min(size, kSuperblocksEnd));
  read_prefix(fd, prefix.data(), prefix.size(), path);
  return read_superblocks(prefix.data(), prefix.size(), size, path);
}

void require_writable(const Superblock& superblock, int copy, const std::string& path) {
  const std::uint32_t unknown = superblock.ro_compat & ~kKnownRoCompat;
  if (unknown == 0) return;
  ErrorFacts facts;
  facts.path = path;
  facts.offset =
      static_cast<std::uint64_t>(copy) * superblock.copy_bytes + offsetof(Superblock, ro_compat);
  facts.wanted = fmt::format("read-only compatible features within {:#x}", kKnownRoCompat);
  facts.found = fmt::format("{:#x}", superblock.ro_compat);
  throw Error(ErrorCode::wrong_version,
              fmt::format("this library may only read the pool: features unknown to it, bits {:#x}",
                          unknown),
              std::move(facts));
}

void require_uuid(const Superblock& superblock, const Options& options, const std::string& path) {
  if (!options.expect_uuid || *options.expect_uuid == superblock.uuid) return;
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = format_uuid(*options.expect_uuid);
  facts.found = format_uuid(superblock.uuid);
  throw Error(ErrorCode::wrong_uuid, "this is another pool", std::move(facts));
}

}  // namespace

PoolFile::PoolFile() : owner_(base::Process::current()) {}

PoolFile::~PoolFile() {
  const bool inherited = !owner_.is_this();
  if (inherited) {
    // A child made by fork() has no mappings of ours (MADV_DONTFORK); others may be in their place
    // now.
    (void)memory_.release();
  }
  if (fd_ < 0) return;
  memory_.reset();
  // Children share the open file and with it the lock. Unlocking, not only closing, frees the
  // pool even while a child lives; and only the parent may, for the lock is its.
  if (!inherited) unlock_file(fd_);
  const Descriptor closing(fd_);
}

emu::MemoryOptions PoolFile::memory_options(const Layout& layout, const Options& options) {
  emu::MemoryOptions memory;
  memory.kind = options.memory;
  memory.flush = options.flush;
  memory.latency = options.latency;
  memory.log_offset = layout.log_offset;
  memory.log_length = layout.log_bytes;
  memory.prefault_ms = options.prefault_ms;
  return memory;
}

std::unique_ptr<PoolFile> PoolFile::open(const std::filesystem::path& path, const Options& options,
                                         Access access) {
  const bool writable = access == Access::read_write;
  std::unique_ptr<PoolFile> pool(new PoolFile());
  pool->path_ = path.string();
  pool->fd_ = open_locked(path, writable).release();

  const std::uint64_t size = file_size(pool->fd_, pool->path_);
  pool->choice_ = read_from(pool->fd_, size, pool->path_);
  const Superblock& superblock = pool->choice_.image.fixed;
  pool->layout_ = layout_of(superblock, pool->path_);
  if (writable) require_writable(superblock, pool->choice_.copy, pool->path_);
  require_uuid(superblock, options, pool->path_);
  if (writable) {
    own_blocks(pool->fd_, size, pool->path_);
  } else {
    require_readable_holes(pool->fd_, size, pool->path_);
  }

  emu::step(emu::Step::pool_open);
  pool->memory_ =
      emu::Memory::map(pool->fd_, pool->path_, size, memory_options(pool->layout_, options));
  // What is stored through a mapping knows no limit.
  if (writable && pool->memory_->writes_blocks()) require_size_allowed(size, pool->path_);
  return pool;
}

PoolInfo PoolFile::description() const {
  const Superblock& superblock = choice_.image.fixed;
  PoolInfo info;
  info.path = path_;
  info.uuid = superblock.uuid;
  info.format_version = superblock.version;
  info.compat_features = superblock.compat;
  info.ro_compat_features = superblock.ro_compat;
  info.incompat_features = superblock.incompat;
  info.size = layout_.size;
  info.geometry = {layout_.log_bytes, layout_.segment_size, layout_.slab_size,
                   layout_.max_sessions - kOwnSessions};
  info.generation = superblock.generation;
  info.checkpoint_number = superblock.checkpoint_number;
  info.checkpoint_floor = superblock.floor;
  info.clean = is_clean();
  info.slabs_total = layout_.slabs;
  return info;
}

SlabDirectory PoolFile::directory() const {
  return both_vouch() ? SlabDirectory::load_either(*memory_, layout_, identity(), choice_.copy)
                      : SlabDirectory::load(*memory_, layout_, identity(), choice_.copy);
}

Bitmap PoolFile::bitmap(const SlabDirectory& directory, std::uint32_t slab) const {
  return shares_bitmaps() ? directory.load_either_bitmap(*memory_, slab, choice_.copy)
                          : directory.load_bitmap(*memory_, slab, choice_.copy);
}

PoolInfo PoolFile::info() const {
  PoolInfo info = description();
  const SlabDirectory directory = this->directory();
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    const SlabRecord& record = directory.record(slab);
    if (record.type == 0) continue;
    ++info.slabs_carved;
    info.objects += record.live;
  }
  return info;
}

}  // namespace sp3::pool

// Creating a pool: everything is written and durable before the file has a name.
#include <sp3/error.h>

#include "pool/file_system.h"
#include "pool/pool_file.h"

namespace sp3::pool {
namespace {

// A random UUID, version 4.
std::array<std::uint8_t, 16> make_uuid(const std::string& path) {
  std::array<std::uint8_t, 16> uuid{};
  random_bytes(uuid.data(), uuid.size(), path);
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0F) | 0x40);
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3F) | 0x80);
  return uuid;
}

SuperblockImage first_image(const Layout& layout, const std::string& path) {
  SuperblockImage image;
  image.fixed.uuid = make_uuid(path);
  image.fixed.number = 1;
  image.fixed.generation = 1;
  image.fixed.state = static_cast<std::uint32_t>(State::clean);
  image.heads.assign(layout.max_sessions, 1);
  describe(layout, image.fixed);
  return image;
}

void require_ok(emu::IoStatus status, const std::string& path) {
  if (!status.ok()) throw_system_error(status.error, "fdatasync", path);
}

// No order between the parts is needed, because nobody can see the file yet.
void format(emu::Memory& memory, const Layout& layout, const SuperblockImage& image,
            const std::string& path) {
  emu::FlushCounts counts;
  for (const int copy : {0, 1}) {
    SlabDirectory::format(memory, layout, {image.fixed.uuid, path}, copy, counts);
    write_superblock(memory, layout, copy, image, counts);
  }
  require_ok(memory.fence(counts), path);
}

}  // namespace

std::unique_ptr<PoolFile> PoolFile::create(const std::filesystem::path& path, std::uint64_t size,
                                           const Options& options) {
  const Layout layout = plan_layout(size, options.geometry, path.string());
  NewFile file(path);
  if (options.expect_uuid) {
    throw Error(ErrorCode::invalid_argument, "expect_uuid is for a pool that there is",
                {.path = file.path(), .wanted = "none for a new one", .found = "one"});
  }
  file.reserve(size);

  std::unique_ptr<PoolFile> pool(new PoolFile());
  pool->path_ = file.path();
  pool->layout_ = layout;
  pool->memory_ =
      emu::Memory::map(file.descriptor(), file.path(), size, memory_options(layout, options));
  if (pool->memory_->kind() == MemoryKind::file) {
    // Reserved blocks are unwritten extents: the first write to each makes the file system log a
    // change of metadata, and the fdatasync of a commit waits for that. Written once here, they are
    // plain data.
    write_zeros(file.descriptor(), layout.log_offset, layout.log_bytes, file.path());
  }
  pool->choice_.image = first_image(layout, file.path());
  pool->choice_.copy = 1;  // as read_superblocks chooses between equal copies
  pool->choice_.both_equal = true;
  pool->choice_.other = SuperblockChoice::Other::vouches;
  format(*pool->memory_, layout, pool->choice_.image, file.path());

  file.publish();
  pool->fd_ = file.release().release();
  return pool;
}

}  // namespace sp3::pool

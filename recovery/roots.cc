#include "recovery/roots.h"

#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>

namespace sp3::recovery {
namespace {

bool is_any_in_use(const pool::SlabDirectory& directory) {
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    if (directory.record(slab).live != 0) return true;
  }
  return false;
}

}  // namespace

std::uint64_t offset_of_first_root(const pool::Layout& layout, const pool::ObjectClass& roots) {
  return layout.slab_offset(0) + pool::slab_shape(layout.slab_size, roots.slot_size).data;
}

std::optional<Damage> find_damaged_roots(const pool::PoolFile& file,
                                         const pool::SlabDirectory& directory) {
  const pool::ObjectClass& roots = file.roots();
  const pool::SlabRecord& record = directory.record(0);
  if (roots.type != 0 && record.type != 0 && pool::class_of(record) != roots) {
    return Damage{file.layout().directory_offset[file.current_copy()],
                  fmt::format("slab 0 is not the root directory's: wanted type {:#x} ({} bytes), "
                              "found {:#x} ({} bytes)",
                              roots.type, roots.type_size, record.type, record.type_size)};
  }
  if (!file.is_clean()) return std::nullopt;
  const bool is_missing =
      record.type == 0 ? is_any_in_use(directory) : (file.bitmap(directory, 0).front() & 1) == 0;
  if (roots.type == 0 || !is_missing) return std::nullopt;
  return Damage{offset_of_first_root(file.layout(), roots), kMissingRoots};
}

void require_roots(const pool::PoolFile& file, const pool::SlabDirectory& directory) {
  auto damage = find_damaged_roots(file, directory);
  if (!damage) return;
  throw Error(ErrorCode::damaged_metadata, damage->what,
              {.path = file.path(), .offset = damage->offset});
}

}  // namespace sp3::recovery

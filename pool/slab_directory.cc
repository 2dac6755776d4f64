// The slab directory and the bitmaps, as checkpoints left them.
//
// Nothing here decides which copy to use; that is the superblock's part. What is read is verified
// in two steps: the checksum tells that the bytes are those that were written, for this slab of
// this pool; then the numbers are tested against the slab's size, because the code that uses them
// divides by slot_size and indexes by live, and a checksum is no proof of sense.
//
// The record of an empty slab speaks for its bitmap, whose bytes are neither written nor read. They
// are nobody's: once a slab is sealed as empty it may be carved with another slot size, and the
// objects of the new shape lie where the bitmaps of the old one were. A crash before the new record
// is sealed finds the old record above the new bytes.
#include "pool/slab_directory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mutant.h"

namespace sp3::pool {
namespace {

std::uint32_t checksum(SlabRecord record, std::uint32_t seed) {
  record.crc = 0;
  return base::crc32c(seed, &record, sizeof record);
}

// The record of a free slab; only its checksum depends on where it is.
SlabRecord free_record(std::uint32_t seed) {
  SlabRecord record;
  record.crc = checksum(record, seed);
  return record;
}

std::uint32_t seed_of(std::uint32_t pool_seed, std::uint32_t slab) {
  return base::crc32c(pool_seed, &slab, sizeof slab);
}

std::uint32_t pool_seed_of(const SlabDirectory::Identity& identity) {
  return base::crc32c(0, identity.uuid.data(), identity.uuid.size());
}

std::uint64_t count_bits(std::span<const std::uint64_t> bitmap) {
  std::uint64_t bits = 0;
  for (const std::uint64_t word : bitmap) bits += static_cast<std::uint64_t>(std::popcount(word));
  return bits;
}

// Whether every bit from `slots` on is zero.
bool is_zero_beyond(std::span<const std::uint64_t> bitmap, std::uint32_t slots) {
  const std::size_t first = slots / 64;
  if (first < bitmap.size() && bitmap[first] >> (slots % 64) != 0) return false;
  return std::all_of(
      bitmap.begin() + static_cast<std::ptrdiff_t>(std::min(first + 1, bitmap.size())),
      bitmap.end(), [](std::uint64_t word) { return word == 0; });
}

// What no writer of format 1 says about a slab, or "".
std::string find_contradiction(const SlabRecord& record, std::uint32_t slab_size) {
  if (record.features != 0 || record.reserved != 0) return "reserved fields are not zero";
  if (record.type == 0) {
    const bool zero = record.type_size == 0 && record.slot_size == 0 && record.live == 0 &&
                      record.bitmap_crc == 0;
    return zero ? "" : "a free slab has contents";
  }
  if (record.live == 0 && record.bitmap_crc != 0) return "an empty slab has a bitmap";
  if (!has_possible_slots(class_of(record))) {
    return fmt::format("slots of {} bytes for objects of {}", record.slot_size, record.type_size);
  }
  const SlabShape shape = slab_shape(slab_size, record.slot_size);
  if (shape.slots == 0) return fmt::format("slots of {} bytes do not fit", record.slot_size);
  if (record.live > shape.slots) {
    return fmt::format("{} objects in {} slots", record.live, shape.slots);
  }
  return "";
}

// Makes the bytes at `at` those that they should be, and flushes them in any case.
void mend(emu::Memory& memory, std::uint64_t at, const void* wanted, std::size_t bytes,
          emu::FlushCounts& counts) {
  if (std::memcmp(memory.view() + at, wanted, bytes) != 0) memory.store(at, wanted, bytes);
  if (!base::mutant(base::Mutant::no_flush_mended_metadata)) memory.flush_found(at, bytes, counts);
}

[[noreturn]] void throw_damage(const Damage& damage, const std::string& path) {
  ErrorFacts facts;
  facts.path = path;
  facts.offset = damage.offset;
  throw Error(ErrorCode::damaged_metadata, damage.what, std::move(facts));
}

}  // namespace

SlabDirectory::SlabDirectory(const Layout& layout, Identity identity)
    : layout_(layout), identity_(std::move(identity)), pool_seed_(pool_seed_of(identity_)) {}

std::uint32_t SlabDirectory::seed(std::uint32_t slab) const { return seed_of(pool_seed_, slab); }

std::optional<Damage> SlabDirectory::find_damage(std::uint32_t slab, int copy) const {
  const SlabRecord& record = records_[slab];
  const std::uint64_t offset = record_offset(slab, copy);
  const std::uint32_t wanted = checksum(record, seed(slab));
  if (record.crc != wanted) {
    return Damage{offset,
                  fmt::format("the record of slab {} fails its checksum, wanted {:#x}, found {:#x}",
                              slab, wanted, record.crc)};
  }
  const std::string contradiction = find_contradiction(record, layout_.slab_size);
  if (contradiction.empty()) return std::nullopt;
  return Damage{offset,
                fmt::format("the record of slab {} cannot be true: {}", slab, contradiction)};
}

SlabDirectory SlabDirectory::read(const emu::Memory& memory, const Layout& layout,
                                  Identity identity, int copy) {
  SlabDirectory directory(layout, std::move(identity));
  directory.records_.resize(layout.slabs);
  std::memcpy(directory.records_.data(), memory.view() + layout.directory_offset[copy],
              directory.records_.size() * sizeof(SlabRecord));
  return directory;
}

SlabDirectory SlabDirectory::load(const emu::Memory& memory, const Layout& layout,
                                  Identity identity, int copy) {
  SlabDirectory directory = read(memory, layout, std::move(identity), copy);
  for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
    if (const auto damage = directory.find_damage(slab, copy)) {
      throw_damage(*damage, directory.identity_.path);
    }
  }
  return directory;
}

SlabDirectory SlabDirectory::load_either(const emu::Memory& memory, const Layout& layout,
                                         Identity identity, int copy) {
  SlabDirectory directory = read(memory, layout, std::move(identity), copy);
  for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
    const auto damage = directory.find_damage(slab, copy);
    if (!damage) continue;
    std::memcpy(&directory.records_[slab], memory.view() + directory.record_offset(slab, 1 - copy),
                sizeof(SlabRecord));
    if (directory.find_damage(slab, 1 - copy)) throw_damage(*damage, directory.identity_.path);
  }
  return directory;
}

SlabDirectory SlabDirectory::load_sound(const emu::Memory& memory, const Layout& layout,
                                        Identity identity, int copy, const TellDamage& tell) {
  SlabDirectory directory = read(memory, layout, std::move(identity), copy);
  for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
    auto found = directory.find_damage(slab, copy);
    if (!found) continue;
    tell(slab, std::move(*found));
    directory.records_[slab] = free_record(directory.seed(slab));
  }
  return directory;
}

void SlabDirectory::find_differences(const SlabDirectory& other, int copy,
                                     const TellDamage& tell) const {
  for (std::uint32_t slab = 0; slab < size(); ++slab) {
    if (std::memcmp(&record(slab), &other.record(slab), sizeof(SlabRecord)) == 0) continue;
    tell(slab, {record_offset(slab, copy),
                fmt::format("the copies of the record of slab {} differ in a clean pool", slab)});
  }
}

Bitmap SlabDirectory::read_bitmap(const emu::Memory& memory, std::uint32_t slab, int copy) const {
  const SlabShape shape = slab_shape(layout_.slab_size, records_[slab].slot_size);
  Bitmap bitmap(shape.bitmap_bytes / sizeof(std::uint64_t));
  if (records_[slab].live == 0) return bitmap;
  std::memcpy(bitmap.data(), memory.view() + layout_.slab_offset(slab) + shape.bitmap(copy),
              shape.bitmap_bytes);
  return bitmap;
}

std::optional<Damage> SlabDirectory::find_bitmap_damage(std::uint32_t slab, int copy,
                                                        const Bitmap& bitmap) const {
  const SlabRecord& record = records_[slab];
  if (record.live == 0) return std::nullopt;
  const SlabShape shape = slab_shape(layout_.slab_size, record.slot_size);
  const std::uint64_t offset = layout_.slab_offset(slab) + shape.bitmap(copy);
  const std::uint32_t crc = base::crc32c(seed(slab), bitmap.data(), shape.bitmap_bytes);
  if (crc != record.bitmap_crc) {
    return Damage{offset,
                  fmt::format("the bitmap of slab {} fails its checksum, wanted {:#x}, found {:#x}",
                              slab, record.bitmap_crc, crc)};
  }
  if (!is_zero_beyond(bitmap, shape.slots)) {
    return Damage{offset, fmt::format("the bitmap of slab {} has bits beyond its {} slots", slab,
                                      shape.slots)};
  }
  const std::uint64_t bits = count_bits(bitmap);
  if (bits != record.live) {
    return Damage{offset, fmt::format("the bitmap of slab {} has {} objects, its record {}", slab,
                                      bits, record.live)};
  }
  return std::nullopt;
}

Bitmap SlabDirectory::load_bitmap(const emu::Memory& memory, std::uint32_t slab, int copy) const {
  SP3_ASSERT(record(slab).type != 0);
  Bitmap bitmap = read_bitmap(memory, slab, copy);
  if (const auto damage = find_bitmap_damage(slab, copy, bitmap)) {
    throw_damage(*damage, identity_.path);
  }
  return bitmap;
}

Bitmap SlabDirectory::load_either_bitmap(const emu::Memory& memory, std::uint32_t slab,
                                         int copy) const {
  SP3_ASSERT(record(slab).type != 0);
  Bitmap bitmap = read_bitmap(memory, slab, copy);
  const auto damage = find_bitmap_damage(slab, copy, bitmap);
  if (!damage) return bitmap;
  bitmap = read_bitmap(memory, slab, 1 - copy);
  if (find_bitmap_damage(slab, 1 - copy, bitmap)) throw_damage(*damage, identity_.path);
  return bitmap;
}

std::optional<Bitmap> SlabDirectory::load_sound_bitmap(const emu::Memory& memory,
                                                       std::uint32_t slab, int copy,
                                                       std::vector<Damage>& damage) const {
  SP3_ASSERT(record(slab).type != 0);
  Bitmap bitmap = read_bitmap(memory, slab, copy);
  auto found = find_bitmap_damage(slab, copy, bitmap);
  if (!found) return bitmap;
  damage.push_back(std::move(*found));
  return std::nullopt;
}

void SlabDirectory::store(emu::Memory& memory, int copy, std::uint32_t slab, SlabRecord record,
                          std::span<const std::uint64_t> bitmap, emu::FlushCounts& counts) {
  SP3_CHECK(slab < records_.size());
  SP3_ASSERT(record.type == 0 || records_[slab].live == 0 ||
             record.slot_size == records_[slab].slot_size);
  if (record.type == 0) {
    record = free_record(seed(slab));
  } else {
    const SlabShape shape = slab_shape(layout_.slab_size, record.slot_size);
    SP3_CHECK(bitmap.size_bytes() == shape.bitmap_bytes);
    SP3_ASSERT(is_zero_beyond(bitmap, shape.slots));
    record.live = static_cast<std::uint32_t>(count_bits(bitmap));
    record.bitmap_crc = 0;
    if (record.live != 0) {
      record.bitmap_crc = base::crc32c(seed(slab), bitmap.data(), bitmap.size_bytes());
      const std::uint64_t at = layout_.slab_offset(slab) + shape.bitmap(copy);
      memory.store(at, bitmap.data(), bitmap.size_bytes());
      if (!base::mutant(base::Mutant::no_flush_slab_bitmap)) {
        memory.flush(at, bitmap.size_bytes(), counts);
      }
    }
    record.crc = checksum(record, seed(slab));
  }
  SP3_ASSERT(find_contradiction(record, layout_.slab_size).empty());
  memory.store(record_offset(slab, copy), &record, sizeof record);
  if (!base::mutant(base::Mutant::no_flush_slab_record)) {
    memory.flush(record_offset(slab, copy), sizeof record, counts);
  }
  records_[slab] = record;
}

bool SlabDirectory::is_damaged(const emu::Memory& memory, int copy, std::uint32_t slab) const {
  const SlabRecord& record = records_[slab];
  const std::byte* const found = memory.view() + record_offset(slab, copy);
  if (std::memcmp(found, &record, sizeof record) != 0) return true;
  return record.type != 0 && find_bitmap_damage(slab, copy, read_bitmap(memory, slab, copy));
}

void SlabDirectory::mend_bitmap(emu::Memory& memory, int copy, std::uint32_t slab,
                                emu::FlushCounts& counts) const {
  const SlabRecord& record = records_[slab];
  if (record.live == 0) return;
  const Bitmap bitmap = load_either_bitmap(memory, slab, copy);
  const SlabShape shape = slab_shape(layout_.slab_size, record.slot_size);
  const std::uint64_t at = layout_.slab_offset(slab) + shape.bitmap(copy);
  mend(memory, at, bitmap.data(), shape.bitmap_bytes, counts);
}

void SlabDirectory::mend_record(emu::Memory& memory, int copy, std::uint32_t slab,
                                emu::FlushCounts& counts) const {
  mend(memory, record_offset(slab, copy), &records_[slab], sizeof(SlabRecord), counts);
}

void SlabDirectory::carry(emu::Memory& memory, int copy, std::uint32_t slab,
                          emu::FlushCounts& counts) const {
  const SlabShape shape = slab_shape(layout_.slab_size, records_[slab].slot_size);
  const std::uint64_t at = layout_.slab_offset(slab) + shape.bitmap(copy);
  if (find_bitmap_damage(slab, copy, read_bitmap(memory, slab, copy))) {
    const Bitmap bitmap = read_bitmap(memory, slab, 1 - copy);
    memory.store(at, bitmap.data(), shape.bitmap_bytes);
  }
  memory.flush_found(at, shape.bitmap_bytes, counts);
  mend_record(memory, copy, slab, counts);
}

void SlabDirectory::format(emu::Memory& memory, const Layout& layout, const Identity& identity,
                           int copy, emu::FlushCounts& counts) {
  std::vector<SlabRecord> records(layout.slabs);
  const std::uint32_t pool_seed = pool_seed_of(identity);
  for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
    records[slab] = free_record(seed_of(pool_seed, slab));
  }
  memory.store(layout.directory_offset[copy], records.data(), records.size() * sizeof(SlabRecord));
  memory.flush(layout.directory_offset[copy], layout.directory_bytes, counts);
}

}  // namespace sp3::pool

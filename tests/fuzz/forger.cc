#include "tests/fuzz/forger.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/crc32c.h"
#include "log/format.h"
#include "log/record_reader.h"
#include "pool/format.h"
#include "tests/support/seals.h"

namespace sp3::test {
namespace {

using Uuid = std::array<std::uint8_t, 16>;

// What of a word of a container's may name an object: cells and slots of a hash table say
// more in the others.
constexpr std::uint64_t kOffsetBits = (std::uint64_t{1} << 48) - 8;

template <class T>
T read(const std::vector<char>& bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void write(std::vector<char>& bytes, std::uint64_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

const std::byte* at(const std::vector<char>& bytes, std::uint64_t offset) {
  return reinterpret_cast<const std::byte*>(bytes.data()) + offset;
}

// What forged superblocks say; where they differ, the first.
Uuid uuid_of(const std::vector<char>& bytes) { return read<pool::Superblock>(bytes, 0).uuid; }

std::uint32_t log_seed(const std::vector<char>& bytes, std::uint64_t run) {
  const auto header = read<log::SegmentHeader>(bytes, run);
  return log::seed(uuid_of(bytes), header.session, header.generation);
}

}  // namespace

std::uint64_t Choices::take(unsigned bytes) {
  std::uint64_t value = 0;
  const std::size_t there = std::min<std::size_t>(bytes, bytes_.size());
  std::memcpy(&value, bytes_.data(), there);
  bytes_ = bytes_.subspan(there);
  return value;
}

Forger::Forger(std::vector<char> image)
    : image_(std::move(image)), layout_(pool::layout_of(read<pool::Superblock>(image_, 0), {})) {
  for (const int copy : {0, 1}) {
    parts(Kind::superblock)
        .push_back({Kind::superblock, layout_.superblock_offset(copy),
                    sizeof(pool::Superblock) + 8 * std::uint64_t{layout_.max_sessions}, 0});
    find_slabs(copy);
  }
  find_records();
  find_objects();
}

void Forger::find_slabs(int copy) {
  for (std::uint32_t slab = 0; slab < layout_.slabs; ++slab) {
    const std::uint64_t offset = layout_.directory_offset[copy] + slab * sizeof(pool::SlabRecord);
    parts(Kind::slab_record).push_back({Kind::slab_record, offset, sizeof(pool::SlabRecord), slab});
    const auto record = read<pool::SlabRecord>(image_, offset);
    if (record.type == 0) continue;
    const auto shape = pool::slab_shape(layout_.slab_size, record.slot_size);
    const std::uint64_t begin = layout_.slab_offset(slab);
    parts(Kind::bitmap)
        .push_back({Kind::bitmap, begin + shape.bitmap(copy), shape.bitmap_bytes, slab});
    for (std::uint32_t slot = 0; copy == 0 && slot < shape.slots; ++slot) {
      parts(Kind::slot)
          .push_back(
              {Kind::slot, begin + shape.data + slot * record.slot_size, record.slot_size, slab});
    }
  }
}

void Forger::find_records() {
  for (std::uint32_t segment = 0; segment < layout_.segments; ++segment) {
    const std::uint64_t run = layout_.segment_offset(segment);
    const auto header = read<log::SegmentHeader>(image_, run);
    parts(Kind::segment).push_back({Kind::segment, run, sizeof header, segment});
    if (header.magic != log::kSegmentMagic) continue;
    const std::uint64_t end = run + std::uint64_t{header.segments} * layout_.segment_size;
    std::uint64_t record = run + sizeof header;
    while (const auto found =
               log::read_record(at(image_, record), end - record, log_seed(image_, run))) {
      parts(Kind::record).push_back({Kind::record, record, found->length(), run});
      record += found->padded_length();
      if (record >= end) break;
    }
  }
}

// By either directory: the older one of a pool that was not closed lacks what came last. The first
// slab has the roots, by which a container is found.
void Forger::find_objects() {
  for (std::uint32_t slab = 1; slab < layout_.slabs; ++slab) {
    const std::uint64_t begin = layout_.slab_offset(slab);
    std::vector<Part> objects;
    for (const int copy : {0, 1}) {
      const auto record = read<pool::SlabRecord>(
          image_, layout_.directory_offset[copy] + slab * sizeof(pool::SlabRecord));
      if (record.type == 0 || record.live == 0) continue;
      const auto shape = pool::slab_shape(layout_.slab_size, record.slot_size);
      for (std::uint32_t slot = 0; slot < shape.slots; ++slot) {
        const Part object{Kind::slot, begin + shape.data + slot * record.slot_size,
                          record.slot_size, slab};
        const auto bits = read<std::uint8_t>(image_, begin + shape.bitmap(copy) + slot / 8);
        const auto is_same = [&](const Part& other) { return other.offset == object.offset; };
        if ((bits >> slot % 8 & 1) != 0 && std::ranges::none_of(objects, is_same)) {
          objects.push_back(object);
        }
      }
    }
    if (!objects.empty()) objects_.push_back(std::move(objects));
  }
}

std::vector<char> Forger::forge(Choices& choices) const {
  std::vector<char> bytes = image_;
  Parts parts = parts_;
  constexpr int kMostChanges = 24;
  for (int i = 0; i < kMostChanges && !choices.is_empty(); ++i) {
    switch (choices.below(8)) {
      case 0:
        copy_part(bytes, parts, choices);
        break;
      case 1:
        append_record(bytes, parts, choices);
        break;
      default:
        change_word(bytes, parts, choices);
        break;
    }
  }
  for (const auto& of_kind : parts) {
    for (const Part& part : of_kind) seal(bytes, part);
  }
  return bytes;
}

void Forger::change_word(std::vector<char>& bytes, const Parts& parts, Choices& choices) const {
  const auto& of_kind = parts[choices.below(kKinds)];
  if (of_kind.empty()) return;
  const Part& part = of_kind[choices.below(of_kind.size())];
  const std::uint64_t width = std::uint64_t{2} << choices.below(3);
  // Half of what is changed of a record is its header.
  const std::uint64_t within =
      part.kind == Kind::record && choices.below(2) == 0 ? sizeof(log::RecordHeader) : part.bytes;
  if (within < width) return;
  const std::uint64_t offset = part.offset + choices.below(within / width) * width;
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, width);
  const std::array<std::uint64_t, 16> telling = {0,
                                                 1,
                                                 2,
                                                 3,
                                                 8,
                                                 0xFFFF,
                                                 0x8000'0000,
                                                 0xFFFF'FFFF,
                                                 (1ULL << 62) - 1,
                                                 1ULL << 62,
                                                 ~0ULL,
                                                 layout_.size,
                                                 layout_.slabs_offset,
                                                 layout_.slab_offset(1),
                                                 layout_.segment_size,
                                                 layout_.log_offset};
  switch (choices.below(5)) {
    case 0:
      value = telling[choices.below(telling.size())];
      break;
    case 1:  // a little more or less
      value += choices.take(1) - 128;
      break;
    case 2:
      value ^= 1ULL << choices.below(64);
      break;
    case 3:
      value = choices.take(static_cast<unsigned>(width));
      break;
    case 4: {  // what stands elsewhere
      const auto& others = parts[choices.below(kKinds)];
      if (others.empty()) return;
      const Part& other = others[choices.below(others.size())];
      value = read<std::uint64_t>(bytes, other.offset + choices.below(other.bytes / 8) * 8);
      break;
    }
  }
  std::memcpy(bytes.data() + offset, &value, width);
}

void Forger::copy_part(std::vector<char>& bytes, const Parts& parts, Choices& choices) {
  const auto& of_kind = parts[choices.below(kKinds)];
  if (of_kind.empty()) return;
  const Part& from = of_kind[choices.below(of_kind.size())];
  const Part& to = of_kind[choices.below(of_kind.size())];
  std::memmove(bytes.data() + to.offset, bytes.data() + from.offset,
               std::min(from.bytes, to.bytes));
}

// A log goes on with a record that stands elsewhere.
void Forger::append_record(std::vector<char>& bytes, Parts& parts, Choices& choices) const {
  auto& records = parts[static_cast<std::size_t>(Kind::record)];
  if (records.empty()) return;
  const Part from = records[choices.below(records.size())];
  const Part of_run = records[choices.below(records.size())];
  const auto last = std::ranges::max(
      records, {}, [&](const Part& part) { return part.owner == of_run.owner ? part.offset : 0; });
  const std::uint64_t offset = last.offset + base::round_up(last.bytes, log::kRecordAlignment);
  const auto run = read<log::SegmentHeader>(image_, last.owner);
  if (offset + from.bytes > last.owner + std::uint64_t{run.segments} * layout_.segment_size) return;
  std::memmove(bytes.data() + offset, bytes.data() + from.offset, from.bytes);
  auto header = read<log::RecordHeader>(bytes, offset);
  const auto before = read<log::RecordHeader>(bytes, last.offset);
  header.lsn = before.lsn + 1;
  header.stamp = before.stamp + 1 + choices.below(16);
  write(bytes, offset, header);
  records.push_back({Kind::record, offset, from.bytes, last.owner});
}

std::vector<char> Forger::forge_objects(Choices& choices) const {
  std::vector<char> bytes = image_;
  // After few a container's own check may find nothing.
  constexpr std::array<unsigned, 8> kChanges = {0, 1, 1, 1, 1, 2, 3, 6};
  for (unsigned left = kChanges[choices.below(kChanges.size())]; left > 0; --left) {
    change_object(bytes, choices);
  }
  return bytes;
}

// Of a slab first: there is one header, and many nodes.
const Forger::Part& Forger::any_object(Choices& choices) const {
  const auto& of_slab = objects_[choices.below(objects_.size())];
  return of_slab[choices.below(of_slab.size())];
}

// Of the slab of the one that `word` names, if it names one.
const Forger::Part& Forger::object_like(std::uint64_t word, Choices& choices) const {
  for (const auto& of_slab : objects_) {
    const std::uint64_t begin =
        layout_.slab_offset(static_cast<std::uint32_t>(of_slab.front().owner));
    const std::uint64_t offset = word & kOffsetBits;
    if (offset >= begin && offset - begin < layout_.slab_size) {
      return of_slab[choices.below(of_slab.size())];
    }
  }
  return any_object(choices);
}

void Forger::change_object(std::vector<char>& bytes, Choices& choices) const {
  constexpr std::uint64_t kFirstWords = 2;
  const Part& object = any_object(choices);
  const std::uint64_t how = choices.below(16);
  if (how == 0) return remove_object(bytes, object);
  if (how == 1) {  // one object takes the place of another
    const Part& from = any_object(choices);
    std::memmove(bytes.data() + object.offset, bytes.data() + from.offset,
                 std::min(from.bytes, object.bytes));
    return;
  }
  // The first words say what the others mean.
  const std::uint64_t words = object.bytes / 8;
  const std::uint64_t within = choices.below(how < 6 ? std::min(words, kFirstWords) : words) * 8;
  const auto word = read<std::uint64_t>(bytes, object.offset + within);
  const std::uint64_t other = other_word(bytes, word, within, choices);
  // Cells in a row often hold the same.
  const std::uint64_t repeats = choices.below(8) == 0 ? choices.take(1) : 1;
  for (std::uint64_t i = 0; i < std::min(repeats, words - within / 8); ++i) {
    write(bytes, object.offset + within + i * 8, other);
  }
}

// In place of `word`, which is `within` bytes inside of its object.
std::uint64_t Forger::other_word(const std::vector<char>& bytes, std::uint64_t word,
                                 std::uint64_t within, Choices& choices) const {
  const std::array<std::uint64_t, 8> telling = {
      0, 1, 64, 65, std::uint64_t{1} << 50, (1ULL << 62) - 1, 1ULL << 63, ~0ULL};
  switch (choices.below(16)) {
    case 0:
      return telling[choices.below(telling.size())];
    case 1:  // a count, a depth, a colour
      return choices.take(1);
    case 2:  // a little more or less
      return word + choices.take(1) - 128;
    case 3:
      return word ^ 1ULL << choices.below(64);
    case 4:
      return choices.take(8);
    case 5: {  // what stands elsewhere
      const Part& other = any_object(choices);
      return read<std::uint64_t>(bytes, other.offset + choices.below(other.bytes / 8) * 8);
    }
    case 6: {  // what stands there in another
      const Part& other = any_object(choices);
      return within < other.bytes ? read<std::uint64_t>(bytes, other.offset + within) : 0;
    }
    case 7:
    case 8:
      return any_object(choices).offset | choices.below(4);
    case 9:
    case 10:
      return any_object(choices).offset | (word & ~kOffsetBits);
    default:  // what leads to an object leads to another of its type
      return object_like(word, choices).offset | (word & ~kOffsetBits);
  }
}

void Forger::remove_object(std::vector<char>& bytes, const Part& object) const {
  for (const int copy : {0, 1}) {
    const Part part{Kind::slab_record,
                    layout_.directory_offset[copy] + object.owner * sizeof(pool::SlabRecord),
                    sizeof(pool::SlabRecord), object.owner};
    auto record = read<pool::SlabRecord>(bytes, part.offset);
    if (record.type == 0 || record.live == 0) continue;
    const auto shape = pool::slab_shape(layout_.slab_size, record.slot_size);
    const std::uint64_t begin = layout_.slab_offset(static_cast<std::uint32_t>(object.owner));
    const std::uint64_t slot = (object.offset - begin - shape.data) / record.slot_size;
    const std::uint64_t at = begin + shape.bitmap(copy) + slot / 8;
    auto bits = read<std::uint8_t>(bytes, at);
    const auto bit = static_cast<std::uint8_t>(1U << slot % 8);
    if ((bits & bit) == 0) continue;
    bits = static_cast<std::uint8_t>(bits & ~bit);
    write(bytes, at, bits);
    --record.live;
    if (record.live == 0) record.bitmap_crc = 0;
    write(bytes, part.offset, record);
    seal_slab(bytes, part);
  }
}

void Forger::seal(std::vector<char>& bytes, const Part& part) const {
  switch (part.kind) {
    case Kind::superblock:
      // One of more bytes than there are is refused for that.
      if (read<pool::Superblock>(bytes, part.offset).copy_bytes <= bytes.size() - part.offset) {
        seal_superblock(reinterpret_cast<std::byte*>(bytes.data()) + part.offset);
      }
      return;
    case Kind::slab_record:
      return seal_slab(bytes, part);
    case Kind::segment: {
      auto header = read<log::SegmentHeader>(bytes, part.offset);
      if (header.magic != log::kSegmentMagic) return;
      header.crc = log::checksum(header, log_seed(bytes, part.offset),
                                 static_cast<std::uint32_t>(part.owner));
      write(bytes, part.offset, header);
      return;
    }
    case Kind::record: {
      auto header = read<log::RecordHeader>(bytes, part.offset);
      if (header.length < sizeof header || header.length > bytes.size() - part.offset) return;
      header.crc =
          log::checksum_record(at(bytes, part.offset), header.length, log_seed(bytes, part.owner));
      write(bytes, part.offset, header);
      return;
    }
    case Kind::bitmap:  // with its slab's record
    case Kind::slot:
      return;
  }
}

void Forger::seal_slab(std::vector<char>& bytes, const Part& part) const {
  auto record = read<pool::SlabRecord>(bytes, part.offset);
  const std::uint32_t seed = slab_seed(uuid_of(bytes), static_cast<std::uint32_t>(part.owner));
  if (record.live != 0 && record.slot_size != 0 && record.slot_size <= layout_.slab_size) {
    const int copy = part.offset >= layout_.directory_offset[1] ? 1 : 0;
    const auto shape = pool::slab_shape(layout_.slab_size, record.slot_size);
    const std::uint64_t slab = layout_.slab_offset(static_cast<std::uint32_t>(part.owner));
    record.bitmap_crc =
        base::crc32c(seed, at(bytes, slab + shape.bitmap(copy)), shape.bitmap_bytes);
  }
  record.crc = 0;
  record.crc = base::crc32c(seed, &record, sizeof record);
  write(bytes, part.offset, record);
}

}  // namespace sp3::test

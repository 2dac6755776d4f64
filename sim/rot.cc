#include "sim/rot.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/align.h"
#include "emu/executor.h"
#include "log/log_scanner.h"
#include "pool/superblock.h"

namespace sp3::sim {
namespace {

using emu::sim::Random;

// The length is that of a bit, a word, a line, or all; `most` bytes at most.
Rot lose(const std::byte* image, std::uint64_t offset, std::uint64_t most, Random& choose) {
  constexpr std::uint64_t kLengths[] = {1, 8, 64, ~std::uint64_t{0}};
  const std::uint64_t length = std::min(kLengths[choose.below(4)], most);
  Rot rot;
  rot.offset = offset;
  rot.bytes.assign(image + offset, image + offset + length);
  if (length == 1) {
    rot.bytes[0] ^= std::byte{1} << choose.below(8);
  } else {
    for (std::byte& byte : rot.bytes) byte ^= static_cast<std::byte>(1 + choose.below(255));
  }
  return rot;
}

// A piece of metadata that there is twice.
struct Twin {
  enum class Kind { superblock, directory, bitmap };
  Kind kind;
  std::string name;
  std::uint64_t offset[2] = {0, 0};  // of copy A and copy B
  std::uint64_t bytes = 0;
};

class Metadata {
 public:
  Metadata(const pool::Layout& layout, const std::byte* image)
      : layout_(layout),
        image_(image),
        end_(std::min(layout.size, pool::kSuperblocksEnd)),
        current_(pool::read_superblocks(image, end_, layout.size, "image").copy),
        directory_{Twin::Kind::directory,
                   "directory",
                   {layout.directory_offset[0], layout.directory_offset[1]},
                   layout.slabs * sizeof(pool::SlabRecord)} {
    for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
      pool::SlabRecord record;
      std::memcpy(&record, image + directory_.offset[current_] + slab * sizeof record,
                  sizeof record);
      if (record.type == 0 || record.live == 0) continue;
      const pool::SlabShape shape = pool::slab_shape(layout.slab_size, record.slot_size);
      const std::uint64_t at = layout.slab_offset(slab);
      bitmaps_.push_back({Twin::Kind::bitmap,
                          fmt::format("bitmap of slab {}", slab),
                          {at + shape.bitmap(0), at + shape.bitmap(1)},
                          shape.bitmap_bytes});
    }
  }

  Rot choose(Random& choose) const {
    Twin twin{Twin::Kind::superblock,
              "superblock",
              {0, layout_.superblock_bytes},
              layout_.superblock_bytes};
    const std::uint64_t kind = choose.below(4);
    if (kind == 1) twin = directory_;
    if (kind >= 2 && !bitmaps_.empty()) twin = bitmaps_[choose.below(bitmaps_.size())];
    return damage(twin, static_cast<int>(choose.below(2)), choose);
  }

 private:
  Rot damage(const Twin& twin, int copy, Random& choose) const {
    // Most of a copy may be empty; its beginning never is.
    const std::uint64_t begin = choose.below(choose.one_in(2) ? twin.bytes : 64);
    Rot rot = lose(image_, twin.offset[copy] + begin, twin.bytes - begin, choose);
    const std::uint64_t length = rot.bytes.size();
    rot.what = fmt::format("{} bytes of {} {} from {:#x} on", length, twin.name,
                           copy == 0 ? 'A' : 'B', begin);
    rot.curable = copy != current_ || (are_of_one_state() && is_spared(twin, begin, length));
    return rot;
  }

  // Whether both superblocks seal the same metadata: each change of it has a checkpoint's number.
  [[nodiscard]] bool are_of_one_state() const {
    const auto a = pool::examine_superblock(image_, end_, 0);
    const auto b = pool::examine_superblock(image_, end_, layout_.superblock_bytes);
    using Verdict = pool::SuperblockCopy::Verdict;
    return a.verdict == Verdict::intact && b.verdict == Verdict::intact &&
           a.image.fixed.checkpoint_number == b.image.fixed.checkpoint_number;
  }

  // Whether the other copy has what was lost. That of a superblock takes the whole metadata with
  // it.
  [[nodiscard]] bool is_spared(const Twin& twin, std::uint64_t begin, std::uint64_t length) const {
    const auto is_equal = [&](const Twin& whole) { return are_equal(whole, 0, whole.bytes); };
    if (twin.kind == Twin::Kind::bitmap) return is_equal(twin);
    if (twin.kind == Twin::Kind::superblock) {
      return is_equal(directory_) && std::all_of(bitmaps_.begin(), bitmaps_.end(), is_equal);
    }
    const std::uint64_t first = base::round_down(begin, sizeof(pool::SlabRecord));
    const std::uint64_t end = base::round_up(begin + length, sizeof(pool::SlabRecord));
    return are_equal(twin, first, end - first);
  }
  [[nodiscard]] bool are_equal(const Twin& twin, std::uint64_t begin, std::uint64_t length) const {
    return std::memcmp(image_ + twin.offset[0] + begin, image_ + twin.offset[1] + begin, length) ==
           0;
  }

  const pool::Layout& layout_;
  const std::byte* const image_;
  const std::uint64_t end_;
  const int current_;
  const Twin directory_;
  std::vector<Twin> bitmaps_;  // those that mean something
};

}  // namespace

Rot choose_rot(const pool::Layout& layout, const std::byte* image, Random& choose) {
  return Metadata(layout, image).choose(choose);
}

Rot choose_log_rot(const pool::Layout& layout, const std::byte* image, Random& choose) {
  const pool::SuperblockImage superblock =
      pool::read_superblocks(image, std::min(layout.size, pool::kSuperblocksEnd), layout.size,
                             "image")
          .image;
  log::LogSource source;
  source.file = image;
  source.layout = layout;
  source.uuid = superblock.fixed.uuid;
  source.generation = superblock.fixed.generation;
  source.checkpoint_number = superblock.fixed.checkpoint_number;
  emu::Executor executor(1);
  const log::ScanResult found =
      log::scan_logs(source, superblock.fixed.floor, superblock.heads, executor);
  std::vector<log::FileRange> read;
  for (const log::LogPrefix& prefix : found.sessions) {
    read.insert(read.end(), prefix.ranges.begin(), prefix.ranges.end());
  }
  log::FileRange hit{layout.log_offset, layout.log_bytes};
  if (!read.empty() && !choose.one_in(4)) hit = read[choose.below(read.size())];
  const std::uint64_t begin = choose.below(hit.length);
  Rot rot = lose(image, hit.offset + begin, hit.length - begin, choose);
  rot.what = fmt::format("{} bytes of the log from {:#x} on", rot.bytes.size(),
                         rot.offset - layout.log_offset);
  rot.curable = std::none_of(read.begin(), read.end(), [&](const log::FileRange& range) {
    return rot.offset < range.offset + range.length && range.offset < rot.offset + rot.bytes.size();
  });
  return rot;
}

}  // namespace sp3::sim

// Forger: changes to a pool file whose checksums are made right again, so that what refuses them is
// what looks at meanings. A flipped byte hardly ever gets that far.
//
// Thread safety: forge() by any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pool/layout.h"

namespace sp3::test {

// Decisions, read off bytes that a random generator or a fuzzer made. Once they are used up every
// one is 0.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }
  // One that takes `bytes` of them, at most 8.
  std::uint64_t take(unsigned bytes);
  // REQUIRES: 0 < limit <= 65536.
  std::uint64_t below(std::uint64_t limit) { return take(limit <= 256 ? 1 : 2) % limit; }

 private:
  std::span<const std::uint8_t> bytes_;
};

class Forger {
 public:
  // REQUIRES: a pool file that opens.
  explicit Forger(std::vector<char> image);

  // The pool with the changes that `choices` stands for.
  [[nodiscard]] std::vector<char> forge(Choices& choices) const;

 private:
  // What has a checksum, or is one of the homes, which have none.
  enum class Kind : std::uint8_t { superblock, slab_record, bitmap, segment, record, slot };
  static constexpr std::size_t kKinds = 6;

  struct Part {
    Kind kind = Kind::slot;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    // Of a segment its number, of a record where its run's header is, of a slab's record the slab.
    std::uint64_t owner = 0;
  };
  using Parts = std::array<std::vector<Part>, kKinds>;

  void find_slabs(int copy);
  void find_records();
  [[nodiscard]] std::vector<Part>& parts(Kind kind) {
    return parts_[static_cast<std::size_t>(kind)];
  }

  void change_word(std::vector<char>& bytes, const Parts& parts, Choices& choices) const;
  static void copy_part(std::vector<char>& bytes, const Parts& parts, Choices& choices);
  void append_record(std::vector<char>& bytes, Parts& parts, Choices& choices) const;
  void seal(std::vector<char>& bytes, const Part& part) const;
  void seal_slab(std::vector<char>& bytes, const Part& part) const;

  std::vector<char> image_;
  pool::Layout layout_;
  Parts parts_;
};

}  // namespace sp3::test

// Forger: changes to a pool file whose checksums are made right again, so that what refuses them is
// what looks at meanings. A flipped byte hardly ever gets that far.
//
// Thread safety: forge() by any thread.
#pragma once

#include <algorithm>
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
  // The same, of a few words of the objects at home, which lead to each other: of what a slab holds
  // and of where it lies nothing changes, but that now and then an object is gone.
  // REQUIRES: there are objects at home, besides the roots.
  [[nodiscard]] std::vector<char> forge_objects(Choices& choices) const;
  // Calls write(offset, bytes) for each object that is another in `to` than in `from`, which are
  // this pool's files.
  template <class F>
  void for_each_changed(const std::vector<char>& from, const std::vector<char>& to,
                        F&& write) const {
    for (const auto& of_slab : objects_) {
      for (const Part& object : of_slab) {
        const auto bytes = std::span(to).subspan(object.offset, object.bytes);
        if (!std::ranges::equal(bytes, std::span(from).subspan(object.offset, object.bytes))) {
          write(object.offset, bytes);
        }
      }
    }
  }
  [[nodiscard]] const std::vector<char>& image() const { return image_; }

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
  void find_objects();
  [[nodiscard]] std::vector<Part>& parts(Kind kind) {
    return parts_[static_cast<std::size_t>(kind)];
  }

  void change_word(std::vector<char>& bytes, const Parts& parts, Choices& choices) const;
  static void copy_part(std::vector<char>& bytes, const Parts& parts, Choices& choices);
  void append_record(std::vector<char>& bytes, Parts& parts, Choices& choices) const;
  [[nodiscard]] const Part& any_object(Choices& choices) const;
  [[nodiscard]] const Part& object_like(std::uint64_t word, Choices& choices) const;
  void change_object(std::vector<char>& bytes, Choices& choices) const;
  [[nodiscard]] std::uint64_t other_word(const std::vector<char>& bytes, std::uint64_t word,
                                         std::uint64_t within, Choices& choices) const;
  void remove_object(std::vector<char>& bytes, const Part& object) const;
  void seal(std::vector<char>& bytes, const Part& part) const;
  void seal_slab(std::vector<char>& bytes, const Part& part) const;

  std::vector<char> image_;
  pool::Layout layout_;
  Parts parts_;
  std::vector<std::vector<Part>> objects_;  // the slots in use of each slab that has such
};

}  // namespace sp3::test

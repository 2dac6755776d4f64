// FuzzedPool: a small pool whose every value is known, to be damaged, opened and read.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/pools.h"

namespace sp3::test {

// A link of a list; `check` follows from the rest, so that a changed home is recognised.
struct FuzzNode {
  std::uint64_t number = 0;
  Ptr<FuzzNode> next;
  std::uint64_t check = 0;
};
struct FuzzList {
  std::uint64_t length = 0;
  Ptr<FuzzNode> first;
};

class FuzzedPool {
 public:
  enum class State : std::uint8_t {
    clean,    // closed
    crashed,  // never checkpointed: everything is in the log
    mixed,    // checkpointed, then changed, then killed
  };

  explicit FuzzedPool(State state, std::uint64_t seed);

  [[nodiscard]] const std::vector<char>& image() const { return image_; }
  [[nodiscard]] std::uint64_t size() const { return image_.size(); }
  // Where examine() puts what it opens.
  [[nodiscard]] std::filesystem::path path() const { return path_.path(); }
  // Where homes begin: behind superblocks, directory and log.
  [[nodiscard]] std::uint64_t slabs_offset() const { return slabs_offset_; }
  // Whether a flip at `offset` can change what an object reads: inside the slots of a slab.
  [[nodiscard]] bool is_home_byte(std::uint64_t offset) const;
  // The bytes of a ranged object's header and chunk table at home.
  [[nodiscard]] const std::vector<std::uint64_t>& table_bytes() const { return table_bytes_; }
  // What a word of them may hold, besides sizes: the offset of every object that is at home.
  [[nodiscard]] const std::vector<std::uint64_t>& objects() const { return objects_; }

  // What the damaged bytes turn out to be.
  enum class Verdict : std::uint8_t {
    intact,   // everything reads as it was
    refused,  // a typed error, at opening or at reading
    older,    // opened without its last transactions, whole as of an earlier one
    wrong,    // data that never was
  };
  // Opens `bytes` as a pool, reads everything, changes everything, and closes it. `why` explains.
  // Nothing is read beforehand if another change than the first comes first; then what is not
  // refused counts as intact.
  Verdict examine(const std::vector<char>& bytes, const Options& options, std::string* why,
                  std::size_t first_change = 0) const;

  static Options options(RecoveryStrategy strategy = RecoveryStrategy::stamp,
                         bool accept_loss = false);

 private:
  TempPath path_;
  std::vector<char> image_;
  std::uint64_t slabs_offset_ = 0;
  std::uint64_t length_ = 0;      // of the list at the end
  std::vector<bool> home_bytes_;  // of the region behind slabs_offset_
  std::vector<std::uint64_t> table_bytes_;
  std::vector<std::uint64_t> objects_;
};

}  // namespace sp3::test

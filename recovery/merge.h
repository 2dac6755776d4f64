// Merge: the writes of one shard from the last to the first, out of lists that are sorted already.
//
// Each session's writes lie in stamp order, so a tournament of the sessions gives the whole shard's
// order without sorting and without a copy. Who wins cannot be foretold, so matches are played
// without jumps: a jump foretold wrongly costs as much as several matches.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutant.h"
#include "base/prefetch.h"
#include "recovery/preparation.h"

namespace sp3::recovery {

class Merge {
 public:
  // Of shard `shard` of all stretches. REQUIRES: `preparation` outlives this.
  Merge(const Preparation& preparation, std::uint32_t shard);

  [[nodiscard]] bool empty() const { return winner().key == kNone; }
  // The last write of those that are left, and the prefix it is from. REQUIRES: !empty().
  [[nodiscard]] const WriteRef& last() const { return *streams_[winner().stream].at; }
  [[nodiscard]] std::size_t prefix() const { return streams_[winner().stream].prefix; }
  // REQUIRES: !empty().
  void pop();

 private:
  // The rest of one prefix's writes.
  struct Stream {
    std::size_t prefix = 0;
    const WriteRef* at = nullptr;     // the last one
    const WriteRef* begin = nullptr;  // of the stretch
    std::size_t stretch = 0;          // the one `at` is in
  };
  struct Contender {
    std::uint64_t key = kNone;  // of the stream's last write
    std::size_t stream = 0;
  };
  static constexpr std::uint64_t kNone = 0;         // below all others
  static constexpr std::ptrdiff_t kAskAhead = 512;  // bytes

  [[nodiscard]] const Contender& winner() const { return tree_[1]; }
  [[nodiscard]] std::uint64_t key(const Stream& stream) const {
    return 1 + (base::mutant(base::Mutant::recovery_replays_unordered) ? stream.prefix
                                                                       : stream.at->stamp);
  }
  bool open_stretch(Stream& stream, std::size_t behind) const;
  void play(std::size_t match);

  const Preparation& preparation_;
  const std::uint32_t shard_;
  std::vector<Stream> streams_;  // in the order of their prefixes
  // The winner of match i, between the winners 2i and 2i+1; the last half are the streams.
  std::vector<Contender> tree_;
};

inline Merge::Merge(const Preparation& preparation, std::uint32_t shard)
    : preparation_(preparation), shard_(shard) {
  const auto& stretches = preparation_.stretches;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const std::size_t behind = i + 1;
    if (behind != stretches.size() && stretches[behind].prefix == stretches[i].prefix) continue;
    Stream stream;
    stream.prefix = stretches[i].prefix;
    if (open_stretch(stream, behind)) streams_.push_back(stream);
  }
  const std::size_t leaves = std::bit_ceil(streams_.size());
  tree_.resize(2 * leaves);
  for (std::size_t i = 0; i < streams_.size(); ++i) tree_[leaves + i] = {key(streams_[i]), i};
  for (std::size_t match = leaves; match-- > 1;) play(match);
}

// Equal stamps never meet on one object; the larger prefix wins, which makes the order definite all
// the same.
inline void Merge::play(std::size_t match) {
  const Contender& left = tree_[2 * match];
  const Contender& right = tree_[2 * match + 1];
  const bool right_wins = right.key >= left.key;
  tree_[match] = {right_wins ? right.key : left.key, right_wins ? right.stream : left.stream};
}

// Goes to the last write in the stretches of the prefix before `behind`; false if there is none.
inline bool Merge::open_stretch(Stream& stream, std::size_t behind) const {
  const auto& stretches = preparation_.stretches;
  for (; behind != 0 && stretches[behind - 1].prefix == stream.prefix; --behind) {
    const std::vector<WriteRef>& writes = stretches[behind - 1].shards[shard_];
    if (writes.empty()) continue;
    stream.begin = writes.data();
    stream.at = writes.data() + writes.size() - 1;
    stream.stretch = behind - 1;
    return true;
  }
  return false;
}

inline void Merge::pop() {
  const std::size_t which = winner().stream;
  Stream& stream = streams_[which];
  bool more = stream.at != stream.begin;
  if (more) {
    --stream.at;
    // Of several streams that run backwards the hardware does not ask ahead by itself.
    base::prefetch_beside(stream.at, -kAskAhead);
  } else {
    more = open_stretch(stream, stream.stretch);
  }
  std::size_t at = tree_.size() / 2 + which;
  tree_[at].key = more ? key(stream) : kNone;
  while ((at /= 2) != 0) play(at);
}

}  // namespace sp3::recovery

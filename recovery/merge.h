// Merge: the writes of one shard in the order of their stamps, out of lists that are sorted
// already.
//
// Each session's writes come in stamp order, so a heap of sessions gives the whole shard's order:
// O(log sessions) per write, nothing for a single session, no sorting and no copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mutant.h"
#include "recovery/preparation.h"

namespace sp3::recovery {

class Merge {
 public:
  // Of shard `shard` of all stretches. REQUIRES: `preparation` outlives this.
  Merge(const Preparation& preparation, std::uint32_t shard);

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // The next write and the prefix it is from. REQUIRES: !empty().
  [[nodiscard]] const WriteRef& front() const { return *heap_.front().at; }
  [[nodiscard]] std::size_t prefix() const { return heap_.front().prefix; }
  void pop();

 private:
  // The rest of one prefix's writes.
  struct Stream {
    base::Stamp stamp = 0;  // of *at
    std::size_t prefix = 0;
    const WriteRef* at = nullptr;
    const WriteRef* end = nullptr;  // of the stretch
    std::size_t stretch = 0;        // the one `at` is in
    // Equal stamps never meet on one object; the prefix makes the order definite all the same.
    friend bool operator<(const Stream& a, const Stream& b) {
      if (base::mutant(base::Mutant::recovery_replays_unordered)) return a.prefix < b.prefix;
      return a.stamp != b.stamp ? a.stamp < b.stamp : a.prefix < b.prefix;
    }
  };

  bool open_stretch(Stream& stream, std::size_t stretch) const;
  void sift_down(std::size_t at);

  const Preparation& preparation_;
  const std::uint32_t shard_;
  std::vector<Stream> heap_;  // the smallest in front
};

inline Merge::Merge(const Preparation& preparation, std::uint32_t shard)
    : preparation_(preparation), shard_(shard) {
  const auto& stretches = preparation_.stretches;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    if (i != 0 && stretches[i].prefix == stretches[i - 1].prefix) continue;
    Stream stream;
    stream.prefix = stretches[i].prefix;
    if (open_stretch(stream, i)) heap_.push_back(stream);
  }
  for (std::size_t i = heap_.size(); i-- > 0;) sift_down(i);
}

// Goes to the first write at or behind the start of `stretch`; false if the prefix has none.
inline bool Merge::open_stretch(Stream& stream, std::size_t stretch) const {
  const auto& stretches = preparation_.stretches;
  for (; stretch < stretches.size() && stretches[stretch].prefix == stream.prefix; ++stretch) {
    const std::vector<WriteRef>& writes = stretches[stretch].shards[shard_];
    if (writes.empty()) continue;
    stream.at = writes.data();
    stream.end = writes.data() + writes.size();
    stream.stamp = stream.at->stamp;
    stream.stretch = stretch;
    return true;
  }
  return false;
}

inline void Merge::pop() {
  Stream& top = heap_.front();
  if (++top.at != top.end) {
    top.stamp = top.at->stamp;
  } else if (!open_stretch(top, top.stretch + 1)) {
    heap_.front() = heap_.back();
    heap_.pop_back();
  }
  sift_down(0);
}

inline void Merge::sift_down(std::size_t at) {
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) return;
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < heap_[at])) return;
    std::swap(heap_[at], heap_[child]);
    at = child;
  }
}

}  // namespace sp3::recovery

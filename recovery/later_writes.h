// LaterWrites: what a log's writes leave to do of those before them.
//
// A home is what its last whole value and the changes behind that make of it, and a slot is
// allocated if its last make or destroy says so. So whoever goes through the writes from the last
// to the first knows of each, when he meets it, whether it shows in the end: bytes that a later
// write replaces as a whole do not, however many there are.
//
// A byte for each number of an object (written_objects.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mutant.h"
#include "base/prefetch.h"
#include "base/zeroed_array.h"
#include "log/record_reader.h"
#include "recovery/apply.h"

namespace sp3::recovery {

// Thread safety: members by any thread; add() for one object must be ordered by the caller.
class LaterWrites {
 public:
  using Object = std::size_t;  // its number, below the size

  // What of a write shows in the end.
  struct Shows {
    bool bytes = false;
    bool allocation = false;
    bool is_changed = false;  // its bytes show, but for what later writes change of them
  };

  // Of nothing yet. Errors: std::bad_alloc.
  explicit LaterWrites(std::size_t size) : seen_(size) {}

  // Asks for the memory that add() will want.
  void ask_for(Object object) const { base::prefetch_for_write(&seen_[object]); }

  // The write to `object` that comes before all that were added.
  Shows add(Object object, const log::WriteView& write) {
    using base::Mutant;
    using base::mutant;
    std::uint8_t& seen = seen_[object];
    Shows shows;
    if (allocates(write)) {
      shows.allocation = (seen & kAllocation) == 0 || mutant(Mutant::recovery_allocates_as_first);
      seen |= kAllocation;
    }
    if (write.kind == log::WriteKind::destroy) return shows;
    shows.bytes = (seen & kValue) == 0;
    shows.is_changed = shows.bytes && (seen & kChange) != 0;
    const bool whole = replaces_home(write) || mutant(Mutant::recovery_takes_changes_for_values);
    seen |= whole ? kValue : kChange;
    return shows;
  }

 private:
  static constexpr std::uint8_t kValue = 1;       // a whole one
  static constexpr std::uint8_t kChange = 2;      // of some words
  static constexpr std::uint8_t kAllocation = 4;  // or the end of it

  base::ZeroedArray<std::uint8_t> seen_;
};

}  // namespace sp3::recovery

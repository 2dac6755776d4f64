// ValueBlock: whole values on their way to their homes, stored a block at a time.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <cstddef>

#include "emu/memory.h"
#include "recovery/ahead.h"
#include "recovery/apply.h"

namespace sp3::recovery {

class ValueBlock {
 public:
  // REQUIRES: both outlive this.
  ValueBlock(emu::Memory& memory, emu::FlushCounts& counts) : memory_(memory), counts_(counts) {}

  // The bytes of `write` may be stored at any time from now to the next store(). REQUIRES:
  // replaces_home(write); its bytes stay where they are until then.
  void add(const log::WriteView& write) {
    values_[size_++] = {write.slot, write.object()};
    if (size_ == most_) store();
  }
  // What was added is stored, and durable at the next fence with the counts.
  void store();

 private:
  emu::Memory& memory_;
  emu::FlushCounts& counts_;
  const std::size_t most_ = block_size();
  std::size_t size_ = 0;
  std::array<emu::HomeValue, kBlock> values_;
};

}  // namespace sp3::recovery

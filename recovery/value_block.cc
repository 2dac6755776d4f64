#include "recovery/value_block.h"

#include <span>

#include "base/mutant.h"
#include "emu/step.h"

namespace sp3::recovery {

void ValueBlock::store() {
  constexpr emu::Step kStep = emu::Step::recovery_replay;
  const std::span<const emu::HomeValue> values(values_.data(), size_);
  size_ = 0;
  if (base::mutant(base::Mutant::no_flush_replayed_object)) {
    for (const auto& [offset, bytes] : values) memory_.store(offset, bytes.data(), bytes.size());
  } else if (!emu::try_step(kStep)) {
    // A process that is to die here may do so between any two.
    for (const emu::HomeValue& value : values) {
      emu::step(kStep);
      memory_.store_through({&value, 1}, counts_);
    }
  } else {
    memory_.store_through(values, counts_);
  }
}

}  // namespace sp3::recovery

// for_each_image: the crash images of one instant: all of them if they are few, else the extremes
// and a sample.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "emu/sim/media.h"
#include "emu/sim/random.h"

namespace sp3::sim {

using ImageVisitor =
    std::function<void(const std::vector<emu::sim::Media::Choice>&, const emu::sim::Hash128&)>;

// Calls visit(choices, hash) for images of what a power loss could leave of `media` now. All, if
// there are at most `most`; else "nothing more", "everything", each unit alone and each unit alone
// missing, and random ones, `samples` in all (the extremes may be more than that). May repeat
// itself.
void for_each_image(emu::sim::Media& media, std::uint64_t most, std::uint64_t samples,
                    emu::sim::Random& choose, const ImageVisitor& visit);

}  // namespace sp3::sim

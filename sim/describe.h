// Words for what a violation and a trace would otherwise give as numbers: events, and places in a
// pool file; and for what a campaign has covered.
#pragma once

#include <cstdint>
#include <string>

#include "emu/sim/machine.h"
#include "emu/sim/media.h"
#include "pool/layout.h"
#include "sim/crasher.h"

namespace sp3::sim {

// "1200 distinct images, 1300 recoveries (...), 7 programs (...)".
std::string describe(const CrashCounts& counts);

// "superblock B + 0x40", "log segment 3 + 0x200", "slab 0 + 0x80" and so on.
std::string describe_place(const pool::Layout& layout, std::uint64_t offset);

// What a core is about to do: "step log_fence", "store to slab 0 + 0x80", "fence".
std::string describe_event(const pool::Layout& layout, emu::sim::Event event, std::uint64_t what);

// What of a unit reached the media: "content 2 of the line at slab 0 + 0x80" (emu/sim/media.h says
// what the number means).
std::string describe_choice(const pool::Layout& layout, std::uint32_t unit_bytes,
                            const emu::sim::Media::Choice& choice);

}  // namespace sp3::sim

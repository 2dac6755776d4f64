// The memory orders that the library's source states: which are met by a campaign, and one of them
// weakened, to see whether it is needed.
#pragma once

#include <string>

namespace sp3::tools {

// Weakens the memory order of accesses at a place of the source (emu/sim/weak_memory.h), written as
// FILE:LINE=ORDER or FILE=ORDER; none if `place` is empty. Throws UsageError.
void weaken_order(const std::string& place);
// Whether `place` was given, and none of its accesses was met: then nothing is known about it.
bool missed_weakened_order(const std::string& place);

// From now on campaigns remember the accesses whose order can be weakened.
void remember_orders();
// Those remembered, a line each: FILE:LINE, the order, what it is, how often it was met.
std::string list_orders();

}  // namespace sp3::tools

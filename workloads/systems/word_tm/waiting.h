// How those wait who wait for another thread of a re-implemented system.
#pragma once

#include <cstdint>

namespace sp3::workloads::word_tm {

// Looks before a waiter offers its core, for emu::Spin::pause_or_offer: as many as who waits for a
// predecessor takes under our runtime (runtime/persister.cc). Where waits are yielded, whoever is
// waited for has given its core away, and the fair comparison is that all give it back as soon.
inline constexpr std::uint32_t kWaitingRounds = 32;

}  // namespace sp3::workloads::word_tm

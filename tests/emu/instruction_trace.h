// Which instructions a piece of code executes to make its stores durable.
//
// What a flush or a fence leaves out shows only when power fails, so it is looked for where it can
// be seen: the processor stops after each instruction (the trap flag), and a signal handler reads
// the next one and the address it names.
//
// Thread safety: one trace at a time, of the thread that calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <vector>

namespace sp3::test {

enum class Persisting : std::uint8_t { clflush, clflushopt, clwb, stream, sfence };

struct Executed {
  Persisting what;
  const std::byte* at;  // the address it names; null: sfence

  friend bool operator==(const Executed&, const Executed&) = default;
};

inline std::ostream& operator<<(std::ostream& to, const Executed& one) {
  constexpr const char* kNames[] = {"clflush", "clflushopt", "clwb", "stream", "sfence"};
  return to << kNames[static_cast<std::size_t>(one.what)] << ' ' << one.at;
}

// Runs `body` and returns its instructions of these kinds, in order.
std::vector<Executed> trace(const std::function<void()>& body);

}  // namespace sp3::test

#include "emu/sim/plain_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "emu/sim/machine.h"

namespace sp3::emu::sim {
namespace {
constexpr std::uintptr_t kWord = 8;
}

void PlainMemory::join(Clock& clock, const Clock& more) {
  if (clock.size() < more.size()) clock.resize(more.size());
  for (std::size_t core = 0; core < more.size(); ++core) {
    clock[core] = std::max(clock[core], more[core]);
  }
}

template <class Action>
void PlainMemory::for_each_word(const void* at, std::size_t bytes, Action action) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (std::uintptr_t word = begin / kWord; word * kWord < begin + bytes; ++word) action(word);
}

PlainMemory::Access PlainMemory::next_access(std::uint32_t core, Clock& clock,
                                             const base::Site& site) const {
  if (clock.size() <= core) clock.resize(core + 1);
  return {++clock[core], core, site, machine_.events()};
}

void PlainMemory::check(const Clock& clock, const Access& earlier, const char* earlier_did,
                        const Access& now, const char* does) {
  const bool is_known = earlier.core < clock.size() && earlier.number <= clock[earlier.core];
  if (is_known || !race_.empty()) return;
  const auto place_of = [](const Access& access) {
    return fmt::format("at {}:{} (event {})", access.site.short_file(), access.site.line,
                       access.event);
  };
  race_ = fmt::format("core {} {} {} what core {} {} {}, and nothing orders the two", now.core,
                      does, place_of(now), earlier.core, earlier_did, place_of(earlier));
}

void PlainMemory::read(std::uint32_t core, Clock& clock, const void* at, std::size_t bytes,
                       const base::Site& site) {
  const Access now = next_access(core, clock, site);
  for_each_word(at, bytes, [&](std::uintptr_t number) {
    Word& word = words_[number];
    if (word.write) check(clock, *word.write, "has written", now, "reads");
    std::erase_if(word.reads, [&](const Access& read) { return read.core == core; });
    word.reads.push_back(now);
  });
}

void PlainMemory::write(std::uint32_t core, Clock& clock, const void* at, std::size_t bytes,
                        const base::Site& site) {
  const Access now = next_access(core, clock, site);
  for_each_word(at, bytes, [&](std::uintptr_t number) {
    Word& word = words_[number];
    if (word.write) check(clock, *word.write, "has written", now, "writes");
    for (const Access& read : word.reads) check(clock, read, "has read", now, "writes");
    word.reads.clear();
    word.write = now;
  });
}

void PlainMemory::read_for_long(std::uint32_t core, Clock& clock, const void* at, std::size_t bytes,
                                const base::Site& site) {
  read(core, clock, at, bytes, site);
  if (long_reads_.size() <= core) long_reads_.resize(core + 1);
  long_reads_[core].push_back({at, bytes, site});
}

void PlainMemory::end_long_reads(std::uint32_t core, Clock& clock) {
  if (long_reads_.size() <= core) return;
  for (const LongRead& one : long_reads_[core]) read(core, clock, one.at, one.bytes, one.site);
  long_reads_[core].clear();
}

void PlainMemory::forget(const void* at, std::size_t bytes) noexcept {
  for_each_word(at, bytes, [&](std::uintptr_t number) { words_.erase(number); });
}

}  // namespace sp3::emu::sim

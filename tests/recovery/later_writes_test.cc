#include "recovery/later_writes.h"

#include <array>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace sp3;
using namespace sp3::recovery;

namespace {

log::WriteView write_of(log::WriteKind kind) {
  log::WriteView write;
  write.kind = kind;
  return write;
}

}  // namespace

TEST_CASE("Of a history, the writes that show make what all of them make in their order") {
  constexpr std::array kKinds{log::WriteKind::image, log::WriteKind::delta, log::WriteKind::make,
                              log::WriteKind::destroy};
  constexpr std::uint32_t kObjects = 40;
  struct Write {
    std::uint32_t object;
    log::WriteKind kind;
  };
  // An object is the list of what was written to it since it was replaced.
  struct State {
    std::vector<std::size_t> bytes;
    bool allocated = false;
    bool operator==(const State&) const = default;
  };
  const auto store = [](State& state, const Write& write, std::size_t number) {
    if (write.kind == log::WriteKind::destroy) return;
    if (write.kind != log::WriteKind::delta) state.bytes.clear();
    state.bytes.push_back(number);
  };
  const auto allocate = [](State& state, const Write& write) {
    if (write.kind == log::WriteKind::make) state.allocated = true;
    if (write.kind == log::WriteKind::destroy) state.allocated = false;
  };
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Write> history(random() % 400);
    for (Write& write : history) {
      write = {static_cast<std::uint32_t>(random() % kObjects), kKinds[random() % kKinds.size()]};
    }
    std::vector<State> wanted(kObjects);
    for (std::size_t i = 0; i < history.size(); ++i) {
      store(wanted[history[i].object], history[i], i);
      allocate(wanted[history[i].object], history[i]);
    }
    LaterWrites later(kObjects);
    std::vector<State> found(kObjects);
    std::vector<bool> shows(history.size());
    std::vector<bool> is_changed(history.size());
    for (std::size_t i = history.size(); i-- > 0;) {
      const LaterWrites::Shows seen = later.add(history[i].object, write_of(history[i].kind));
      shows[i] = seen.bytes;
      is_changed[i] = seen.is_changed;
      if (seen.allocation) allocate(found[history[i].object], history[i]);
      CHECK((seen.bytes || !seen.is_changed));
    }
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (!shows[i]) continue;
      State& state = found[history[i].object];
      store(state, history[i], i);
      const bool is_last = state.bytes.size() == wanted[history[i].object].bytes.size();
      CHECK(is_changed[i] != is_last);
    }
    CHECK(found == wanted);
  }
}

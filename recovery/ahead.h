// run_ahead: a loop over cold memory that asks for what it needs before it needs it.
//
// Each item goes through three steps: `next` brings it and may ask for memory that says what it
// needs, `ask` reads that and asks for the rest, `act` does the work. Between the steps lie
// kAskAfter other items, time enough for memory to come.
#pragma once

#include <array>
#include <cstdint>

namespace sp3::recovery {

// next(Item&) returns false when no item is left; ask(Item&) may note in the item what it found.
// Items are acted on in the order in which they came.
template <class Item, class Next, class Ask, class Act>
void run_ahead(Next&& next, Ask&& ask, Act&& act) {
  constexpr std::uint64_t kAskAfter = 16;
  constexpr std::uint64_t kRing = 4 * kAskAfter;  // a power of two that holds all between
  std::array<Item, kRing> ring;
  std::uint64_t taken = 0;
  std::uint64_t asked = 0;
  std::uint64_t acted = 0;
  bool more = true;
  while (more || acted < taken) {
    if (more) {
      more = next(ring[taken % kRing]);
      if (more) ++taken;
    }
    if (asked < taken && (!more || taken - asked > kAskAfter)) ask(ring[asked++ % kRing]);
    if (acted < asked && (!more || taken - acted > 2 * kAskAfter)) act(ring[acted++ % kRing]);
  }
}

}  // namespace sp3::recovery

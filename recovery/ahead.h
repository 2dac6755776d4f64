// run_ahead: a loop over cold memory that asks for what it needs before it needs it.
//
// Items are taken a block at a time, and each step is done to all items of the block before the
// next: `next` brings them and may ask for memory that says what they need, `ask` reads that and
// asks for the rest, `act` does the work. So memory has the time of a block to come; and each step
// is a short loop, of which a core has many rounds under way, so that it waits for the memory of
// many items at once.
#pragma once

#include <array>
#include <cstddef>

#include "base/scaled.h"

namespace sp3::recovery {

// What they ask for fits in a cache of the second level; few of them, and each block waits for the
// first that it asked for.
inline constexpr std::size_t kBlock = 256;
inline std::size_t block_size() { return base::scaled<std::size_t>(kBlock, 32, 4); }

// next(Item&) returns false when no item is left; ask(Item&) may note in the item what it found.
// Items are acted on in the order in which they came.
template <class Item, class Next, class Ask, class Act>
void run_ahead(Next&& next, Ask&& ask, Act&& act) {
  const std::size_t most = block_size();
  std::array<Item, kBlock> block;
  std::size_t items = 0;
  do {
    for (items = 0; items < most && next(block[items]);) ++items;
    for (std::size_t i = 0; i < items; ++i) ask(block[i]);
    for (std::size_t i = 0; i < items; ++i) act(block[i]);
  } while (items == most);
}

}  // namespace sp3::recovery

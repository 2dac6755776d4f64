// Recovering a pool in a test and looking at what came out.
#pragma once

#include "emu/step.h"
#include "recovery/recover.h"
#include "tests/recovery/history.h"

namespace sp3::test {

inline RecoveryOptions recovery_options(RecoveryStrategy strategy, std::uint32_t threads) {
  RecoveryOptions options;
  options.strategy = strategy;
  options.threads = threads;
  return options;
}

// A small history and the pool that a crash leaves.
struct Crashed {
  explicit Crashed(std::uint64_t seed, std::size_t transactions = 60, std::uint32_t sessions = 4,
                   std::uint32_t slab_size = 4096)
      : pool(216 * 1024 + std::uint64_t{10} * slab_size, 64 * 1024, slab_size),
        history(seed, sessions) {
    history.set_layout(pool.layout);
    history.run(transactions);
    history.crash(pool);
    pool.save();
  }
  SyntheticPool pool;
  History history;
};

// The directory says that the slab is of a class that histories do not have, with these of its
// first 64 slots in use.
inline void describe_slab(SyntheticPool& pool, std::uint32_t slab, std::uint64_t in_use,
                          std::uint32_t size = 8) {
  auto file = pool.open();
  auto directory = pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), 0);
  emu::FlushCounts counts;
  for (const int copy : {0, 1}) {
    pool::SlabRecord record;
    record.type = 99;
    record.type_size = size;
    record.slot_size = size;
    const auto shape = pool::slab_shape(pool.layout.slab_size, size);
    pool::Bitmap bitmap(shape.bitmap_bytes / 8);
    bitmap[0] = in_use;
    directory.store(file->memory(), copy, slab, record, bitmap, counts);
  }
  file.reset();
  pool.bytes = read_file(pool.path().path());
}

// What is alive in the slots of `of`, read through directory copy `copy`.
inline History::State read_state(pool::PoolFile& file, const History& history,
                                 const History::State& of, int copy) {
  const pool::Layout& layout = file.layout();
  const auto directory = pool::SlabDirectory::load(file.memory(), layout, file.identity(), copy);
  std::uint64_t alive = 0;
  History::State state;
  for (const auto& [slot, unused] : of) {
    const std::uint32_t slab = layout.slab_of(slot);
    const pool::SlabRecord& record = directory.record(slab);
    History::Object& object = state[slot];
    if (record.type == 0) continue;
    REQUIRE(record.type == history.class_of(slot).type);
    const pool::SlabShape shape = pool::slab_shape(layout.slab_size, record.slot_size);
    const auto bitmap = directory.load_bitmap(file.memory(), slab, copy);
    const std::uint64_t index = (slot - layout.slab_offset(slab) - shape.data) / record.slot_size;
    object.alive = (bitmap[index / 64] >> (index % 64) & 1) != 0;
    if (!object.alive) continue;
    ++alive;
    const std::byte* home = file.memory().view() + slot;
    object.bytes.assign(home, home + base::round_up(record.type_size, 8));
  }
  std::uint64_t live = 0;
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) live += directory.record(slab).live;
  CHECK(live == alive);  // nothing leaked
  return state;
}

// The bytes of objects that are not alive do not matter.
inline History::State alive_only(History::State state) {
  for (auto& [slot, object] : state) {
    if (!object.alive) object.bytes.clear();
  }
  return state;
}

// Opens the recovered pool again and compares both copies with what must be.
inline void check_recovered(const SyntheticPool& pool, const History& history,
                            const History::State& expected) {
  auto file = pool.reopen();
  CHECK(file->copies_equal());
  const History::State wanted = alive_only(expected);
  for (const int copy : {0, 1}) {
    const History::State found = read_state(*file, history, expected, copy);
    for (const auto& [slot, object] : wanted) {
      INFO("copy " << copy << ", slot " << slot << " of slab " << file->layout().slab_of(slot));
      CHECK(found.at(slot).alive == object.alive);
      CHECK((found.at(slot).bytes == object.bytes));
    }
  }
}

}  // namespace sp3::test

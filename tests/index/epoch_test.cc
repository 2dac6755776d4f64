// Reclamation: nothing is freed while somebody who was pinned may still hold it.
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "base/epoch.h"
#include "runtime/version_pool.h"
#include "tests/support/pools.h"

namespace sp3::test {
namespace {

using base::EpochDomain;

constexpr std::uint64_t kAlive = 0xA11FEA11FEA11FE0ULL;
constexpr std::uint64_t kPoison = 0xDEADDEADDEADDEADULL;

// Freed blocks are poisoned and used again, never returned: a late reader meets the poison, not a
// fault.
struct Block {
  std::array<std::atomic<std::uint64_t>, 4> words{};
};

struct Retired {
  Block* block;
  EpochDomain::Epoch epoch;
};

// One thread that replaces the shared blocks and looks at them, pinned.
class Participant {
 public:
  Participant(EpochDomain& epochs, std::vector<std::atomic<Block*>>& shared, std::size_t number)
      : epochs_(epochs), shared_(shared), number_(number), random_(number + 77) {
    for (int i = 0; i < 64; ++i) spare_.push_back(&storage_[static_cast<std::size_t>(i)]);
  }

  // Blocks seen poisoned while pinned.
  int run(int rounds) {
    int seen_poison = 0;
    for (int i = 0; i < rounds; ++i) {
      if (random_.below(3) == 0) replace();
      epochs_.pin(number_);
      const Block* block = shared_[random_.below(shared_.size())].load(std::memory_order_acquire);
      for (std::uint64_t look = random_.below(20); look > 0 && block != nullptr; --look) {
        for (const auto& word : block->words) {
          if (word.load(std::memory_order_relaxed) == kPoison) ++seen_poison;
        }
      }
      if (random_.below(8) == 0) {
        epochs_.unpin(number_);
      } else {
        epochs_.rest(number_);
      }
    }
    return seen_poison;
  }

 private:
  void replace() {
    reclaim();
    if (spare_.empty()) return;
    Block* fresh = spare_.back();
    spare_.pop_back();
    for (auto& word : fresh->words) word.store(kAlive, std::memory_order_relaxed);
    Block* old = shared_[random_.below(shared_.size())].exchange(fresh, std::memory_order_seq_cst);
    if (old != nullptr) retired_.push_back({old, epochs_.retirement_epoch()});
  }

  void reclaim() {
    epochs_.try_advance();
    while (!retired_.empty() && epochs_.may_free(retired_.front().epoch, epochs_.current())) {
      Block* block = retired_.front().block;
      for (auto& word : block->words) word.store(kPoison, std::memory_order_relaxed);
      spare_.push_back(block);
      retired_.pop_front();
    }
  }

  EpochDomain& epochs_;
  std::vector<std::atomic<Block*>>& shared_;
  const std::size_t number_;
  Random random_;
  std::array<Block, 64> storage_;
  std::vector<Block*> spare_;
  std::deque<Retired> retired_;
};

}  // namespace

TEST_CASE("the epoch advances past everyone but those pinned at an older one") {
  EpochDomain epochs(3);
  for (std::size_t i = 0; i < 3; ++i) epochs.admit(i);
  const auto start = epochs.current();
  REQUIRE(epochs.try_advance());
  epochs.pin(1);
  CHECK(epochs.is_pinned(1));
  CHECK_FALSE(epochs.is_pinned(0));
  REQUIRE(epochs.try_advance());  // participant 1 has seen the current one
  CHECK_FALSE(epochs.try_advance());
  epochs.pin(2);
  CHECK_FALSE(epochs.try_advance());
  epochs.unpin(1);
  CHECK(epochs.try_advance());
  CHECK_FALSE(epochs.try_advance());
  epochs.unpin(2);
  CHECK(epochs.try_advance());
  CHECK(epochs.current() == start + 4);
}

TEST_CASE("who loses its core between reading the epoch and pinning retires late enough") {
  EpochDomain epochs(2);
  epochs.admit(0);
  epochs.admit(1);
  const EpochDomain::Epoch early = epochs.current();
  for (int i = 0; i < 5; ++i) REQUIRE(epochs.try_advance());
  epochs.pin(1);  // a reader of what 0 will retire
  epochs.pin_at(0, early);
  const EpochDomain::Epoch retired = epochs.retirement_epoch_of(0);
  epochs.unpin(0);
  CHECK(retired > epochs.current());
  while (epochs.try_advance()) {
  }
  CHECK_FALSE(EpochDomain::may_free(retired, epochs.current()));
  epochs.unpin(1);
  while (!EpochDomain::may_free(retired, epochs.current())) REQUIRE(epochs.try_advance());
}

TEST_CASE("who rests holds back nothing for long, and is pinned again by pinning") {
  EpochDomain epochs(2);
  epochs.admit(0);
  epochs.admit(1);
  const auto advance = [&](int attempts) {
    while (attempts-- > 0) {
      if (epochs.try_advance()) return true;
    }
    return false;
  };
  constexpr int kPatient = 40;

  epochs.pin(0);
  const EpochDomain::Epoch first = epochs.current();
  epochs.rest(0);
  CHECK_FALSE(epochs.is_pinned(0));
  CHECK(epochs.rests_at(0, first));

  // At the same epoch it is pinned like any other: one advance, and no more.
  epochs.pin(0);
  CHECK(epochs.is_pinned(0));
  CHECK(epochs.retirement_epoch_of(0) == first + 1);
  CHECK(advance(1));
  CHECK_FALSE(advance(kPatient));

  // Resting at an older epoch, it does not pin at that.
  epochs.rest(0);
  epochs.pin(0);
  CHECK(epochs.retirement_epoch_of(0) == first + 2);
  CHECK(advance(1));
  CHECK_FALSE(advance(kPatient));

  // Resting for long, it is passed; that it has been unpinned meanwhile makes no difference to it.
  epochs.rest(0);
  for (int i = 0; i < 3; ++i) CHECK(advance(kPatient));
  CHECK_FALSE(epochs.rests_at(0, first + 2));
  epochs.pin(0);
  CHECK(epochs.is_pinned(0));
  CHECK(epochs.retirement_epoch_of(0) == epochs.current() + 1);
  CHECK(advance(1));
  CHECK_FALSE(advance(kPatient));

  // Then it does without resting for a while, and nobody is hindered.
  epochs.rest(0);
  CHECK(advance(1));
  CHECK(advance(1));
  epochs.pin(0);
  epochs.unpin(0);
  CHECK(advance(1));
  CHECK(advance(1));
}

TEST_CASE("what was pinned before is never freed under its reader") {
  constexpr std::size_t kThreads = 4;
  EpochDomain epochs(kThreads);
  std::vector<std::atomic<Block*>> shared(8);
  std::vector<std::unique_ptr<Participant>> participants;
  for (std::size_t i = 0; i < kThreads; ++i) {
    epochs.admit(i);
    participants.push_back(std::make_unique<Participant>(epochs, shared, i));
  }
  std::atomic<int> poisoned{0};
  on_threads(kThreads,
             [&](int i) { poisoned += participants[static_cast<std::size_t>(i)]->run(40'000); });
  CHECK(poisoned == 0);
  CHECK(epochs.current() > 100);
}

TEST_CASE("a version pool hands out distinct aligned blocks and takes them back") {
  EpochDomain epochs(1);
  epochs.admit(0);
  runtime::VersionDepot depot;
  {
    runtime::VersionPool pool(depot, epochs);
    for (const std::size_t bytes : {1U, 8U, 64U, 65U, 1000U, 4096U, 4097U, 1U << 20}) {
      std::vector<std::byte*> blocks;
      for (int i = 0; i < 200; ++i) {
        blocks.push_back(pool.allocate(bytes));
        REQUIRE(reinterpret_cast<std::uintptr_t>(blocks.back()) % 64 == 0);
        std::memset(blocks.back(), i, bytes);
      }
      for (int i = 0; i < 200; ++i) {
        const std::byte* block = blocks[static_cast<std::size_t>(i)];
        REQUIRE(block[0] == static_cast<std::byte>(i));
        REQUIRE(block[bytes - 1] == static_cast<std::byte>(i));
      }
      for (std::byte* block : blocks) pool.free(block, bytes);
    }
    // What was freed is used again: no growth.
    const auto before = depot.bytes();
    for (int round = 0; round < 10; ++round) {
      std::vector<std::byte*> blocks;
      for (int i = 0; i < 200; ++i) blocks.push_back(pool.allocate(1000));
      for (std::byte* block : blocks) pool.free(block, 1000);
    }
    CHECK(depot.bytes() == before);
  }
}

TEST_CASE("a retired version is not handed out while somebody is pinned, and is afterwards") {
  constexpr int kMany = 500;
  EpochDomain epochs(2);
  epochs.admit(0);
  epochs.admit(1);
  runtime::VersionDepot depot;
  runtime::VersionPool pool(depot, epochs);
  std::set<std::byte*> retired;
  for (int i = 0; i < kMany; ++i) retired.insert(pool.allocate(64));
  epochs.pin(1);
  pool.prepare_to_retire(retired.size());
  for (std::byte* block : retired) pool.retire(block, 64, epochs.retirement_epoch());
  CHECK(pool.has_retired());
  std::vector<std::byte*> fresh;
  for (int i = 0; i < 2 * kMany; ++i) {
    pool.collect();
    fresh.push_back(pool.allocate(64));
    REQUIRE_FALSE(retired.contains(fresh.back()));
  }
  epochs.unpin(1);
  pool.prepare_to_retire(fresh.size());
  for (std::byte* block : fresh) pool.retire(block, 64, epochs.retirement_epoch());
  const auto turn_over = [&] {
    for (int i = 0; i < 20 * kMany; ++i) {
      pool.collect();
      pool.prepare_to_retire(1);
      pool.retire(pool.allocate(64), 64, epochs.retirement_epoch());
    }
  };
  turn_over();
  const auto bytes = depot.bytes();
  turn_over();
  CHECK(depot.bytes() == bytes);
  pool.free_all();
  CHECK_FALSE(pool.has_retired());
}

TEST_CASE("a version pool leaves what it retired to its heir") {
  EpochDomain epochs(1);
  epochs.admit(0);
  runtime::VersionDepot depot;
  runtime::VersionPool heir(depot, epochs);
  {
    runtime::VersionPool pool(depot, epochs);
    std::vector<std::byte*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(pool.allocate(100));
    pool.prepare_to_retire(blocks.size());
    for (std::byte* block : blocks) pool.retire(block, 100, epochs.retirement_epoch());
    pool.bequeath(heir);
    CHECK_FALSE(pool.has_retired());
  }
  CHECK(heir.has_retired());
  const auto bytes = depot.bytes();
  for (int i = 0; i < 5; ++i) {
    epochs.try_advance();
    heir.collect();
  }
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 900; ++i) blocks.push_back(heir.allocate(100));
  CHECK(depot.bytes() == bytes);  // from what was inherited
  for (std::byte* block : blocks) heir.free(block, 100);
  heir.free_all();
}

}  // namespace sp3::test

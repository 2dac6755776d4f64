// Damaged containers: a small structure, random words written into the objects that it consists of,
// then any of its operations. Each must return, or throw sp3::Error; whatever else happens, happens
// to a child process.
//
// A Target tells how:
//   Target::build(tx)              makes the container and binds it to the root "target"
//   Target::pieces(tx)             its objects, values aside
//   Target::operate(tx, random)    opens it and does something at random, that may be a change
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tests/containers/model.h"
#include "tests/support/errors.h"

namespace sp3::test {

// An object of a container, whatever its type.
struct Piece {
  std::uint64_t offset;
  std::function<std::span<std::byte>(Transaction&)> bytes;
};
template <Storable T>
Piece piece(Ptr<T> name) {
  return {name.offset(), [name](Transaction& tx) {
            return std::as_writable_bytes(std::span(&tx.write(name), 1));
          }};
}

class Vandal {
 public:
  Vandal(Random& random, const std::vector<Piece>& pieces) : random_(random), pieces_(pieces) {}

  // One to three faults.
  void damage(Transaction& tx) {
    for (std::uint64_t n = 1 + random_.below(3); n > 0; --n) {
      const std::span<std::byte> bytes = any().bytes(tx);
      // The first words say what the others mean.
      const std::uint64_t words = random_.chance(40) ? 2 : bytes.size() / 8;
      const std::uint64_t at = random_.below(std::min(words, bytes.size() / 8)) * 8;
      std::uint64_t word = word_at(bytes, at);
      word = random_.chance(25) ? word ^ std::uint64_t{1} << random_.below(64) : made_up(tx, word);
      std::memcpy(bytes.data() + at, &word, sizeof word);
    }
  }

 private:
  const Piece& any() { return pieces_[random_.below(pieces_.size())]; }
  static std::uint64_t word_at(std::span<const std::byte> bytes, std::uint64_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
  }
  std::uint64_t made_up(Transaction& tx, std::uint64_t word) {
    switch (random_.below(7)) {
      case 0:
        return random_();
      case 1:
        return random_() >> random_.below(64);
      case 2:
        return random_.below(140);
      case 3:
        return word + random_.below(9) - 4;
      case 4: {  // what stands elsewhere
        const std::span<const std::byte> bytes = any().bytes(tx);
        return word_at(bytes, random_.below(bytes.size() / 8) * 8);
      }
      case 5:  // a cell of a hash table with the flags that it has
        return any().offset | (word & 3);
      default:
        return any().offset | (random_.chance(30) ? random_.below(4) : 0);
    }
  }

  Random& random_;
  const std::vector<Piece>& pieces_;
};

// What a child did until it ended.
struct DamageTally {
  std::uint64_t mutation = 0;  // the one that it is at
  std::uint64_t returned = 0;
  std::uint64_t refused = 0;
};

// One container, damaged and operated on. All is undone or committed: then the world is void.
template <class Target>
class Victim {
 public:
  Victim() : world_(tiny_shape()) {
    world_.run([](Transaction& tx) { Target::build(tx); });
    world_.run([&](Transaction& tx) { pieces_ = Target::pieces(tx); });
    world_.run([&](Transaction& tx) {
      sound_.clear();
      for (const Piece& piece : pieces_) {
        const auto bytes = piece.bytes(tx);
        sound_.emplace_back(bytes.begin(), bytes.end());
      }
    });
  }

  void suffer(Random& random, bool commits, DamageTally& tally) {
    // The damage is in what the transaction itself has written, or in what it finds.
    const bool in_one = random.chance(25);
    if (!in_one) damage(random);
    for (std::uint64_t n = 0; n < 5; ++n) {
      const std::uint64_t seed = random();
      try {
        world_.run([&](Transaction& tx) {
          Random own(seed);
          if (in_one) Vandal(own, pieces_).damage(tx);
          for (std::uint64_t i = 1 + own.below(3); i > 0; --i) Target::operate(tx, own);
          if (!commits) throw Abort();
        });
        ++tally.returned;
      } catch (const Abort&) {
        ++tally.returned;
      } catch (const Error&) {
        ++tally.refused;
      } catch (const std::exception& other) {  // ends the child
        std::fprintf(stderr, "mutation %lu: %s\n", static_cast<unsigned long>(tally.mutation),
                     other.what());
        throw;
      }
    }
    if (!in_one && !commits) heal();
  }

 private:
  void damage(Random& random) {
    const std::uint64_t seed = random();
    world_.run([&](Transaction& tx) {
      Random own(seed);
      Vandal(own, pieces_).damage(tx);
    });
    if (random.chance(20)) world_.checkpoint();
  }
  void heal() {
    world_.run([&](Transaction& tx) {
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        const std::span<std::byte> bytes = pieces_[i].bytes(tx);
        std::memcpy(bytes.data(), sound_[i].data(), bytes.size());
      }
    });
  }

  World world_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<std::byte>> sound_;
};

// Runs mutations `first` and following. Each follows from the seed and its own number.
template <class Target>
void survive_damage(std::uint64_t mutations, std::uint64_t first = 0) {
  const std::uint64_t used_seed = seed();
  void* const shared = ::mmap(nullptr, sizeof(DamageTally), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto& tally = *new (shared) DamageTally;
  constexpr std::uint64_t kOneIn = 8;  // commits what it does
  const int code = in_child([&] {
    for (std::uint64_t i = first; i < first + mutations;) {
      Victim<Target> victim;
      for (bool is_void = false; !is_void && i < first + mutations; ++i) {
        tally.mutation = i;
        Random random(used_seed + i * 0x2545f4914f6cdd1dULL);
        is_void = i % kOneIn == kOneIn - 1;
        victim.suffer(random, is_void, tally);
      }
    }
    return 0;
  });
  INFO("SP3_TEST_SEED=" << used_seed << ", mutation " << tally.mutation << ", " << tally.returned
                        << " returned, " << tally.refused << " refused");
  CHECK(code == 0);
  CHECK(tally.returned > 0);
  CHECK(tally.refused > 0);
  ::munmap(shared, sizeof(DamageTally));
}

}  // namespace sp3::test

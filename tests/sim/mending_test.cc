// What an opening mends is whole on media before the pool counts as mended: also where the opening
// is killed and another one, to which the caches show everything whole, goes on.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sp3/sp3.h>
#include <catch2/catch.hpp>

#include "emu/sim/file.h"
#include "emu/sim/machine.h"
#include "emu/sim/media.h"
#include "pool/format.h"
#include "pool/pool_file.h"
#include "pool/slab_directory.h"
#include "recovery/finish.h"

namespace sp3::test {
namespace {

using emu::sim::Config;
using emu::sim::Event;
using emu::sim::Machine;
using emu::sim::Media;

const std::string kName = "pool";
constexpr std::uint64_t kObjects = 8;

Options small_pool() {
  Options options;
  options.memory = MemoryKind::emulated;
  options.flush = FlushInstruction::clwb;
  options.geometry = {.log_size = 16 * 1024, .segment_size = 4096, .slab_size = 4096};
  options.checkpoint.background = false;
  options.checkpoint.threads = 1;
  options.watermark_ms = 0;
  options.recovery.threads = 1;
  return options;
}

std::unique_ptr<pool::PoolFile> open_file() {
  return pool::PoolFile::open(kName, small_pool(), pool::PoolFile::Access::read_write);
}

void make_closed_pool(Machine& machine) {
  const Machine::Use use(machine);
  machine.run([] {
    Pool pool = Pool::create(kName, 96 * 1024, small_pool());
    Session session = pool.session();
    session.run([](Transaction& tx) {
      for (std::uint64_t i = 0; i < kObjects; ++i) tx.make<std::uint64_t>(i);
    });
    session.close();
    pool.close();
  });
}

// Kills the process at each event that finds the media changed: what is left then.
class Killer : public emu::sim::Watcher {
 public:
  std::vector<std::unique_ptr<Media>> left;

  void before(Machine& machine, Event /*event*/, std::uint64_t /*what*/) override {
    Media& media = machine.files().find(kName)->media;
    if (media.version() == version_) return;
    version_ = media.version();
    left.push_back(std::make_unique<Media>());
    left.back()->copy_killed(media);
  }

 private:
  std::uint64_t version_ = 0;
};

// For each slab and copy, whether its record or bitmap there is damaged.
std::vector<bool> find_damage(Machine& machine) {
  const Machine::Use use(machine);
  const auto file = open_file();
  const pool::SlabDirectory directory = pool::SlabDirectory::load_either(
      file->memory(), file->layout(), file->identity(), file->current_copy());
  std::vector<bool> damage;
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    for (const int copy : {0, 1})
      damage.push_back(directory.is_damaged(file->memory(), copy, slab));
  }
  return damage;
}

void flip(Media& media, std::uint64_t offset) {
  const std::byte flipped = media.now()[offset] ^ std::byte{0x5a};
  media.rot(offset, &flipped, 1);
}

}  // namespace

TEST_CASE("mending: a killed opening leaves nothing that only seems whole") {
  Machine closed{Config{}};
  make_closed_pool(closed);
  Machine first{Config{}};
  Media& media = first.files().put(kName).media;
  media.copy(closed.files().find(kName)->media, {});
  Killer killer;
  {
    const Machine::Use use(first);
    std::uint64_t bitmap = 0;
    {
      const auto file = open_file();
      const pool::SlabDirectory directory = file->directory();
      for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
        if (directory.record(slab).live != kObjects) continue;
        const pool::SlabShape shape =
            pool::slab_shape(file->layout().slab_size, directory.record(slab).slot_size);
        bitmap = file->layout().slab_offset(slab) + shape.bitmap(1);
      }
      REQUIRE(bitmap != 0);
      // Something of either copy is lost, and the other has it.
      flip(media, file->layout().directory_offset[0]);
      flip(media, bitmap);
    }
    first.watch(&killer);
    recovery::start_generation(*open_file());
    first.event(Event::end);
    first.watch(nullptr);
  }
  REQUIRE(killer.left.size() > 5);

  std::uint64_t went_on = 0;
  for (const std::unique_ptr<Media>& left : killer.left) {
    Machine second{Config{}};
    Media& found = second.files().put(kName).media;
    found.copy_killed(*left);
    {
      const Machine::Use use(second);
      const auto file = open_file();
      if (!file->is_clean()) continue;  // a recovery writes all of it anew
      recovery::start_generation(*file);
    }
    ++went_on;
    Machine after{Config{}};
    after.files().put(kName).media.copy(found, {});
    const std::vector<bool> shown = find_damage(second);
    const std::vector<bool> certain = find_damage(after);
    for (std::size_t i = 0; i < shown.size(); ++i) CHECK((shown[i] || !certain[i]));
  }
  CHECK(went_on > 3);
}

}  // namespace sp3::test

// What both ways to replay have to do alike, on logs made for it.
#include <array>
#include <cstring>
#include <string_view>

#include <catch2/catch.hpp>

#include "tests/recovery/support.h"

namespace sp3::test {
namespace {

// Objects of one slab.
struct Objects {
  explicit Objects(SyntheticPool& pool, std::uint32_t size) : pool_(pool), size_(size) {
    describe_slab(pool, kSlab, kInUse, size);
  }
  [[nodiscard]] std::uint64_t slot(std::uint64_t i) const {
    const pool::SlabShape shape = pool::slab_shape(pool_.layout.slab_size, size_);
    return pool_.layout.slab_offset(kSlab) + shape.data + i * size_;
  }
  [[nodiscard]] std::uint64_t first_word(const pool::PoolFile& file, std::uint64_t i) const {
    std::uint64_t word = 0;
    std::memcpy(&word, file.memory().view() + slot(i), sizeof word);
    return word;
  }
  static constexpr std::uint32_t kSlab = 1;
  static constexpr std::uint64_t kInUse = (std::uint64_t{1} << 50) - 1;

 private:
  const SyntheticPool& pool_;
  const std::uint32_t size_;
};

using Words = std::array<std::uint64_t, 8>;

constexpr auto kStrategies = {RecoveryStrategy::stamp, RecoveryStrategy::dag};

}  // namespace

// Changes too, which both strategies meet twice, and what is not stored at all.
TEST_CASE("progress of replay is told on the way and reaches its total, by both strategies") {
  const bool changes = GENERATE(false, true);
  const RecoveryStrategy strategy = GENERATE(RecoveryStrategy::stamp, RecoveryStrategy::dag);
  const std::uint32_t threads = GENERATE(1U, 3U);
  INFO((changes ? "changes " : "images ") << threads << (strategy == RecoveryStrategy::dag));
  constexpr std::uint64_t kObjects = 50;
  constexpr std::uint64_t kRecords = 4000;
  SyntheticPool pool(std::uint64_t{40} << 20, std::uint64_t{32} << 20);
  const Objects objects(pool, sizeof(Words));
  RecordBuilder builder;
  for (std::uint64_t i = 1; i <= kRecords; ++i) {
    const Words before{};
    const Words after{i};
    builder.reset();
    for (std::uint64_t object = 0; object < kObjects; ++object) {
      if (changes) {
        builder.add_update(objects.slot(object), &before, &after, sizeof after);
      } else {
        builder.add_image(objects.slot(object), &after, sizeof after);
      }
    }
    pool.append(static_cast<SessionId>(i % 3), builder, 1000 + i);
  }
  RecoveryOptions options = recovery_options(strategy, threads);
  std::uint64_t told = 0;
  Progress last;
  options.progress = [&](const Progress& progress) {
    if (std::string_view(progress.phase) != "replay") return;
    ++told;
    CHECK(progress.done >= last.done);
    last = progress;
  };
  auto file = pool.open();
  (void)recovery::recover(*file, options);
  CHECK(last.total == kObjects * kRecords);
  CHECK(last.done == last.total);
  CHECK(told > 2);
  for (std::uint64_t i = 0; i < kObjects; ++i) CHECK(objects.first_word(*file, i) == kRecords);
}

TEST_CASE("of several writes of one object in one record the last one shows") {
  for (const RecoveryStrategy strategy : kStrategies) {
    for (const std::uint32_t threads : {1U, 2U}) {
      SyntheticPool pool;
      const Objects objects(pool, sizeof(Words));
      const Words zeros{};
      const auto change = [&](RecordBuilder& builder, std::uint64_t object, std::uint64_t word,
                              std::uint64_t to) {
        Words after{};
        after[word] = to;
        builder.add_update(objects.slot(object), &zeros, &after, sizeof after);
      };
      const Words image{1, 2, 3};
      RecordBuilder builder;
      change(builder, 0, 0, 77);  // hidden by the image
      builder.add_image(objects.slot(0), &image, sizeof image);
      change(builder, 0, 0, 10);
      change(builder, 1, 0, 20);
      change(builder, 1, 0, 21);
      pool.append(0, builder, 1000);
      // Another session's record of the same stamp has to do with other objects only.
      builder.reset();
      change(builder, 2, 0, 30);
      pool.append(1, builder, 1000);
      builder.reset();
      change(builder, 0, 1, 11);
      change(builder, 1, 0, 22);
      change(builder, 1, 0, 23);
      builder.add_dependency(0, 1000);
      pool.append(1, builder, 1001);
      auto file = pool.open();
      const auto result = recovery::recover(*file, recovery_options(strategy, threads));
      CHECK(result.report.damage.empty());
      CHECK(result.report.replayed == 3);
      CHECK(objects.first_word(*file, 0) == 10);
      CHECK(objects.first_word(*file, 1) == 23);
      CHECK(objects.first_word(*file, 2) == 30);
      Words found{};
      std::memcpy(&found, file->memory().view() + objects.slot(0), sizeof found);
      CHECK((found == Words{10, 11, 3}));
    }
  }
}

}  // namespace sp3::test

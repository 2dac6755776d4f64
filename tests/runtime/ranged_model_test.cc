// Random operations on ranged objects, compared with std::vector after each transaction, through
// checkpoints, reopenings and cancelled transactions.
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kLongest = 20'000;

class Model {
 public:
  Model(const Options& options, std::uint64_t seed, std::uint32_t chunk_bytes)
      : one_(options, 4 * kTinyPool), options_(options), random_(seed) {
    one_.session.run([&](Transaction& tx) {
      object_ = RangedObject::create(tx, 0, chunk_bytes);
      tx.set_root("object", object_.header());
    });
  }

  void run(int transactions) {
    for (int i = 0; i < transactions; ++i) {
      one();
      if (random_.below(10) == 0) one_.pool.checkpoint();
      if (random_.below(30) == 0) reopen();
    }
    reopen();
    CHECK(found() == expected_);
  }

 private:
  Bytes found() {
    return one_.session.run([&](Transaction& tx) {
      Bytes bytes(object_.size(tx));
      if (!bytes.empty()) object_.read(tx, 0, bytes);
      CHECK(object_.check_invariants(tx) == "");
      return bytes;
    });
  }

  void reopen() {
    options_.recovery.strategy =
        random_.below(2) == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag;
    one_.reopen(options_);
    one_.session.run([&](Transaction& tx) {
      object_ = RangedObject::open(tx, tx.root<RangedObject::Header>("object"));
    });
  }

  void one() {
    Bytes model;
    const bool cancel = random_.below(8) == 0;
    const std::uint64_t operations = 1 + random_.below(6);
    try {
      one_.session.run([&](Transaction& tx) {
        model = expected_;
        for (std::uint64_t i = 0; i < operations; ++i) step(tx, model);
        if (cancel) tx.cancel();
      });
      expected_ = std::move(model);
    } catch (const Cancelled&) {
      if (random_.below(4) == 0) CHECK(found() == expected_);
    }
  }

  void step(Transaction& tx, Bytes& model) {
    if (model.empty() || random_.below(8) == 0) {
      const std::uint64_t length = random_.below(4) == 0 ? 0 : random_.below(kLongest);
      object_.resize(tx, length);
      model.resize(length);
      CHECK(object_.size(tx) == length);
      return;
    }
    const std::uint64_t begin = random_.below(model.size());
    const std::uint64_t most = random_.below(3) == 0 ? 3000 : 40;
    const std::uint64_t end = std::min(model.size(), begin + 1 + random_.below(most));
    Bytes bytes(end - begin);
    const auto from = model.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = model.begin() + static_cast<std::ptrdiff_t>(end);
    switch (random_.below(5)) {
      case 0: {
        const RangedView view = object_.view(tx, begin, end);
        view.copy(0, bytes);
        CHECK(std::equal(from, to, bytes.begin()));
        break;
      }
      case 1:
        object_.lock(tx, begin, end);
        [[fallthrough]];
      case 2:
        object_.read(tx, begin, bytes);
        CHECK(std::equal(from, to, bytes.begin()));
        break;
      default:
        for (std::byte& byte : bytes) byte = std::byte(static_cast<unsigned char>(random_()));
        object_.write(tx, begin, bytes);
        std::copy(bytes.begin(), bytes.end(), from);
    }
  }

  OnePool one_;
  Options options_;
  Random random_;
  RangedObject object_;
  Bytes expected_;
};

void compare(int transactions, std::uint64_t seed) {
  for (const Mode& mode : all_modes()) {
    if (mode.async) continue;  // the session is alone: nothing would be different
    for (const std::uint32_t chunk_bytes : {256U, 1024U}) {
      INFO(mode.name() << ", chunks of " << chunk_bytes << ", seed " << seed);
      Options options = quiet_options();
      mode.apply(options);
      options.geometry.log_size = 256 * 1024;  // a transaction may rewrite the whole object
      Model(options, seed++, chunk_bytes).run(transactions);
    }
  }
}

}  // namespace

TEST_CASE("a ranged object holds what a vector holds after the same random transactions") {
  compare(60, 1);
}
TEST_CASE("a ranged object holds what a vector holds, at length", "[.full]") { compare(2000, 100); }

}  // namespace sp3::test

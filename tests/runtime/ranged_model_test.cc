// Random operations on ranged objects, compared with a model after each transaction, through
// checkpoints, reopenings and cancelled transactions.
//
// Short objects are compared as a whole. Sparse ones are up to 2^44 - 1 bytes long, so that their
// chunk tables have up to six levels; of these the model keeps the pages that were written.
#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kShort = 20'000;
constexpr std::uint64_t kLongest = (std::uint64_t{1} << 44) - 1;

// What an object should hold: what was written, and zeros.
class Expected {
 public:
  [[nodiscard]] std::uint64_t length() const { return length_; }

  void resize(std::uint64_t length) {
    length_ = length;
    pages_.erase(pages_.lower_bound((length + kPage - 1) / kPage), pages_.end());
    if (const auto page = pages_.find(length / kPage); page != pages_.end()) {
      std::fill(page->second.begin() + static_cast<std::ptrdiff_t>(length % kPage),
                page->second.end(), std::byte{0});
    }
  }
  void write(std::uint64_t at, std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      pages_[at / kPage][at % kPage] = byte;
      ++at;
    }
  }
  [[nodiscard]] Bytes read(std::uint64_t begin, std::uint64_t end) const {
    Bytes bytes(end - begin);
    for (auto page = pages_.lower_bound(begin / kPage); page != pages_.end(); ++page) {
      const std::uint64_t first = page->first * kPage;
      if (first >= end) break;
      for (std::uint64_t at = std::max(begin, first); at < std::min(end, first + kPage); ++at) {
        bytes[at - begin] = page->second[at - first];
      }
    }
    return bytes;
  }
  template <class Visit>
  void for_each_page(Visit&& visit) const {
    for (const auto& [number, bytes] : pages_) {
      visit(number * kPage, std::min(length_, (number + 1) * kPage));
    }
  }

 private:
  static constexpr std::uint64_t kPage = 256;
  std::uint64_t length_ = 0;
  std::map<std::uint64_t, std::array<std::byte, kPage>> pages_;
};

class Model {
 public:
  // The object gets at most `longest` bytes.
  Model(const Options& options, std::uint64_t seed, std::uint32_t chunk_bytes,
        std::uint64_t longest)
      : one_(options, 16 * kTinyPool), options_(options), random_(seed), longest_(longest) {
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
    compare_all();
  }

 private:
  void compare_all() {
    one_.session.run([&](Transaction& tx) {
      CHECK(object_.check_invariants(tx) == "");
      REQUIRE(object_.size(tx) == expected_.length());
      if (is_sparse()) {
        expected_.for_each_page(
            [&](std::uint64_t begin, std::uint64_t end) { compare(tx, expected_, begin, end); });
      } else if (expected_.length() > 0) {
        compare(tx, expected_, 0, expected_.length());
      }
    });
  }
  void compare(Transaction& tx, const Expected& model, std::uint64_t begin, std::uint64_t end) {
    Bytes bytes(end - begin);
    object_.read(tx, begin, bytes);
    INFO("[" << begin << ", " << end << ") of " << model.length());
    CHECK(bytes == model.read(begin, end));
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
    Expected model;
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
      if (random_.below(4) == 0) compare_all();
    }
  }

  void step(Transaction& tx, Expected& model) {
    if (model.length() == 0 || random_.below(8) == 0) {
      const std::uint64_t length = random_length();
      object_.resize(tx, length);
      model.resize(length);
      CHECK(object_.size(tx) == length);
      return;
    }
    const std::uint64_t begin = random_begin(model.length());
    const std::uint64_t most = random_.below(3) == 0 ? 3000 : 40;
    const std::uint64_t end = std::min(model.length(), begin + 1 + random_.below(most));
    switch (random_.below(is_sparse() ? 6 : 5)) {
      case 0: {
        Bytes bytes(end - begin);
        const RangedView view = object_.view(tx, begin, end);
        view.copy(0, bytes);
        CHECK(bytes == model.read(begin, end));
        break;
      }
      case 1:
        object_.lock(tx, begin, end);
        [[fallthrough]];
      case 2:
        compare(tx, model, begin, end);
        break;
      case 5:
        object_.fill(tx, begin, end);
        break;
      default: {
        Bytes bytes(end - begin);
        for (std::byte& byte : bytes) byte = std::byte(static_cast<unsigned char>(random_()));
        object_.write(tx, begin, bytes);
        model.write(begin, bytes);
        places_[random_.below(places_.size())] = begin;
      }
    }
  }

  [[nodiscard]] bool is_sparse() const { return longest_ > kShort; }

  // Of all magnitudes if sparse: the chunk table gains and loses levels.
  std::uint64_t random_length() {
    if (random_.below(4) == 0) return 0;
    if (!is_sparse()) return random_.below(longest_);
    const std::uint64_t power = std::uint64_t{1} << random_.below(45);
    const std::uint64_t length =
        random_.below(4) == 0 ? power - random_.below(2) : random_.below(power);
    return std::min(length, longest_);
  }
  // If sparse, often near the end, among the first chunks, or near a place that was written (it may
  // have been cut off), or one whose address differs in one bit.
  std::uint64_t random_begin(std::uint64_t length) {
    const std::uint64_t any = random_.below(length);
    if (!is_sparse()) return any;
    switch (random_.below(6)) {
      case 0:
        return length - 1 - std::min(length - 1, random_.below(600));
      case 1:
        return any % 100'000;
      case 2:
      case 3: {
        std::uint64_t near = places_[random_.below(places_.size())];
        if (random_.below(2) == 0) near ^= std::uint64_t{1} << random_.below(44);
        near -= std::min(near, random_.below(600));
        return near < length ? near : any;
      }
      default:
        return any;
    }
  }

  OnePool one_;
  Options options_;
  Random random_;
  const std::uint64_t longest_;
  RangedObject object_;
  Expected expected_;
  std::array<std::uint64_t, 8> places_{};
};

void compare(int transactions, std::uint64_t seed, std::uint64_t longest) {
  for (const Mode& mode : all_modes()) {
    if (mode.async) continue;  // the session is alone: nothing would be different
    for (const std::uint32_t chunk_bytes : {256U, 1024U}) {
      INFO(mode.name() << ", chunks of " << chunk_bytes << ", seed " << seed);
      Options options = quiet_options();
      mode.apply(options);
      if (seed / 2 % 2 == 0) options.range_lock = RangeLockKind::grid;
      options.geometry.log_size = 256 * 1024;  // a transaction may rewrite a short object
      Model(options, seed++, chunk_bytes, longest).run(transactions);
    }
  }
}

}  // namespace

TEST_CASE("a ranged object holds what a vector holds after the same random transactions") {
  compare(60, 1, kShort);
}
TEST_CASE("a ranged object holds what a vector holds, at length", "[.full]") {
  compare(2000, 100, kShort);
}
TEST_CASE("a sparse ranged object of any length holds what was written to it, and zeros") {
  compare(200, 1, kLongest);
}
TEST_CASE("a sparse ranged object holds what was written to it, at length", "[.full]") {
  compare(2000, 100, kLongest);
}

}  // namespace sp3::test

// Runs at a distance between cores: what is waited for, what is done again, and what is told.
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

#include "tools/core_distance.h"

namespace sp3::tools {
namespace {

struct Result {
  int number = 0;
  double line_transfer_ns = 0;
};

// Distances as they are measured one after the other; the last one stays.
class Distances {
 public:
  explicit Distances(std::vector<std::optional<double>> all) : all_(std::move(all)) {}
  std::optional<double> operator()() {
    const std::size_t n = looks < all_.size() ? looks : all_.size() - 1;
    ++looks;
    return all_[n];
  }
  std::size_t looks = 0;

 private:
  std::vector<std::optional<double>> all_;
};

// What comes of a run among these distances, of how many.
Result run_among(Distances& distances, const DistanceLimits& limits, unsigned threads = 2) {
  int runs = 0;
  return run_at_distance(
      limits, threads,
      [&runs] {
        return Result{++runs, 0};
      },
      [&] { return distances(); });
}

TEST_CASE("A run of several threads tells the greater of the distances before and after it") {
  Distances growing({25, 200});
  CHECK(run_among(growing, {}).line_transfer_ns == 200);
  Distances shrinking({200, 25});
  const Result result = run_among(shrinking, {});
  CHECK(result.line_transfer_ns == 200);
  CHECK(result.number == 1);
  CHECK(shrinking.looks == 2);
}

TEST_CASE("A run of one thread has no distance, and waits for none") {
  Distances far({200});
  const Result result = run_among(far, {.least = 0, .most = 100}, 1);
  CHECK(result.line_transfer_ns == 0);
  CHECK(far.looks == 0);
}

TEST_CASE("A run waits for its distance, and is done again if that was another afterwards") {
  // far, near | it moved | near | still near
  Distances distances({200, 25, 190, 30, 35});
  const Result result = run_among(distances, {.least = 0, .most = 100});
  CHECK(result.number == 2);
  CHECK(result.line_transfer_ns == 35);
  CHECK(distances.looks == 5);

  Distances too_near({25, 200, 190});
  CHECK(run_among(too_near, {.least = 100}).line_transfer_ns == 200);
}

TEST_CASE("Cores that move in each of many runs are an error, as is a distance that never comes") {
  std::size_t looks = 0;
  const auto to_and_fro = [&looks]() -> std::optional<double> {
    return looks++ % 2 == 0 ? 25 : 200;
  };
  const DistanceLimits near{.least = 0, .most = 100};
  CHECK_THROWS_WITH(run_at_distance(
                        near, 2, [] { return Result{}; }, to_and_fro),
                    Catch::Contains("0 to 100 ns") && Catch::Contains("20 runs"));

  const auto far = []() -> std::optional<double> { return 200; };
  CHECK_THROWS_WITH(wait_for_distance(near, far, std::chrono::milliseconds(1)),
                    Catch::Contains("wanted 0 to 100 ns, found 200 ns"));
  CHECK_THROWS_WITH(wait_for_distance({.least = 300}, far, std::chrono::milliseconds(1)),
                    Catch::Contains("wanted 300 ns or more, found 200 ns"));
}

TEST_CASE("Where a distance cannot be measured, only who wants a certain one is told") {
  Distances unknown({std::nullopt});
  const Result result = run_among(unknown, {});
  CHECK(result.number == 1);
  CHECK(result.line_transfer_ns == 0);
  CHECK_THROWS_AS(run_among(unknown, {.least = 0, .most = 100}), std::runtime_error);
}

TEST_CASE("What two threads took that had not a core each is no distance") {
  constexpr double kBusy = 1'235'208;  // ns, the fastest burst beside three other programs
  Distances busy({kBusy});
  CHECK(run_among(busy, {}).line_transfer_ns == 0);
  CHECK(busy.looks == 2);
  Distances then_not({kBusy, 25});
  CHECK(run_among(then_not, {}).line_transfer_ns == 25);
  Distances now_and_then({25, kBusy});
  CHECK(run_among(now_and_then, {}).line_transfer_ns == 25);

  // Who wants a certain distance waits for one, also who wants a great one.
  Distances far({kBusy, 200, kBusy, 200, 210});
  const Result result = run_among(far, {.least = 100});
  CHECK(result.number == 2);
  CHECK(result.line_transfer_ns == 210);
}

TEST_CASE("The distance between two cores is more than nothing") {
  const std::optional<double> ns = core_distance_ns();
  if (ns) CHECK(*ns > 0);
}

}  // namespace
}  // namespace sp3::tools

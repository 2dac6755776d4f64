#include "workloads/workload.h"

#include <stdexcept>

#include <catch2/catch.hpp>

using namespace sp3::workloads;

TEST_CASE("A stream of operations is a function of seed and thread") {
  for (const WorkloadKind kind : kAllWorkloads) {
    WorkloadSpec spec;
    spec.kind = kind;
    spec.entries = 1000;
    const Zipf zipf(spec.entries, spec.zipf);
    OperationStream a(spec, zipf, 1);
    OperationStream b(spec, zipf, 1);
    OperationStream other(spec, zipf, 2);
    unsigned equal = 0;
    for (int i = 0; i < 1000; ++i) {
      const Operation x = a.next();
      const Operation y = b.next();
      const Operation z = other.next();
      REQUIRE((x.kind == y.kind && x.key == y.key && x.value == y.value));
      equal += x.kind == z.kind && x.key == z.key && x.value == z.value ? 1 : 0;
    }
    CHECK(equal < 600);  // dequeues are all alike
  }
}

TEST_CASE("Swaps exchange two different entries and inserts keep to their share") {
  WorkloadSpec spec;
  spec.entries = 10;
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream swaps(spec, zipf, 0);
  for (int i = 0; i < 10'000; ++i) {
    const Operation swap = swaps.next();
    REQUIRE(swap.kind == OperationKind::swap);
    REQUIRE(swap.key != swap.value);
    REQUIRE((swap.key < 10 && swap.value < 10));
  }
  spec.kind = WorkloadKind::rbtree;
  for (const double ratio : {0.0, 0.2, 0.5, 1.0}) {
    spec.insert_ratio = ratio;
    OperationStream stream(spec, zipf, 0);
    int inserts = 0;
    for (int i = 0; i < 10'000; ++i) inserts += stream.next().kind == OperationKind::insert ? 1 : 0;
    CHECK(inserts == Approx(ratio * 10'000).margin(250));
  }
}

TEST_CASE("The filled share of the keys is as asked") {
  WorkloadSpec spec;
  for (const double fill : {0.0, 0.3, 1.0}) {
    spec.fill = fill;
    int present = 0;
    for (std::uint64_t key = 0; key < 10'000; ++key) present += spec.present_at_start(key) ? 1 : 0;
    CHECK(present == Approx(fill * 10'000).margin(250));
  }
}

TEST_CASE("Impossible specs are refused") {
  const auto refused = [](auto change) {
    WorkloadSpec spec;
    change(spec);
    CHECK_THROWS_AS(spec.validate(), std::invalid_argument);
  };
  refused([](WorkloadSpec& s) { s.entries = 1; });
  refused([](WorkloadSpec& s) { s.entry_size = 100; });
  refused([](WorkloadSpec& s) { s.zipf = 1.0; });
  refused([](WorkloadSpec& s) { s.insert_ratio = 1.5; });
  refused([](WorkloadSpec& s) { s.fill = -1; });
  CHECK_THROWS_AS(workload_from_name("heap"), std::invalid_argument);
  CHECK_NOTHROW(WorkloadSpec().validate());
}

#include "workloads/workload.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

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

TEST_CASE("Threads do not insert and search in step, and add keys of their own") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::hashtable;
  spec.entries = 1000;
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream one(spec, zipf, 1);
  OperationStream two(spec, zipf, 2);
  int alike = 0;
  for (int i = 0; i < 1000; ++i) alike += one.next().kind == two.next().kind ? 1 : 0;
  CHECK(alike == Approx(500).margin(100));

  spec.mix = Mix::ycsb_d;
  std::set<std::uint64_t> first_added;
  for (unsigned thread = 0; thread < 8; ++thread) {
    OperationStream stream(spec, zipf, thread);
    Operation added = stream.next();
    while (added.kind != OperationKind::insert) added = stream.next();
    first_added.insert(added.key);
  }
  CHECK(first_added.size() > 4);
}

TEST_CASE("Threads are at home in warehouses by turns") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::tpcc;
  spec.warehouses = 3;
  const Zipf zipf(spec.entries, spec.zipf);
  for (unsigned thread = 0; thread < 7; ++thread) {
    OperationStream stream(spec, zipf, thread);
    for (int i = 0; i < 10; ++i) CHECK(stream.next().key == thread % 3);
  }
}

TEST_CASE("Transfers are of something, audits are of accounts that there are, orders are counted") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::bank;
  spec.entries = 100;
  const Zipf zipf(spec.entries, 0);
  OperationStream bank(spec, zipf, 0);
  for (int i = 0; i < 10'000; ++i) {
    const Operation operation = bank.next();
    if (operation.kind == OperationKind::transfer) {
      REQUIRE((operation.count >= 1 && operation.count <= kMostTransfer));
      REQUIRE((operation.key < spec.entries && operation.value < spec.entries));
    } else {
      REQUIRE(operation.count == kAuditWindow);
      REQUIRE(operation.key + operation.count <= spec.entries);
    }
  }

  spec.kind = WorkloadKind::tpcc;
  OperationStream tpcc(spec, zipf, 0);
  std::uint64_t orders = 0;
  for (int i = 0; i < 1000; ++i) orders += tpcc.next().kind == OperationKind::new_order ? 1 : 0;
  CHECK(tpcc.new_orders() == orders);
  CHECK(orders == Approx(500).margin(100));
}

TEST_CASE("Ranges lie in the object, and appends go through its last eighth in a circle") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::ranges;
  spec.entries = 1000;
  spec.entry_size = 64;
  spec.range_least = 640;
  spec.range_most = 6400;
  spec.range_zipf = 0;
  spec.range_mix = {1, 1, 1};
  const std::uint64_t log = spec.entries / 8;
  const Zipf zipf(spec.entries, 0);
  OperationStream stream(spec, zipf, 0);
  std::uint64_t log_at = spec.entries - log;  // where the next append goes, if it fits
  int appends = 0;
  int circles = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Operation operation = stream.next();
    CAPTURE(i, operation.key, operation.count);
    REQUIRE((operation.count >= 10 && operation.count <= 100));
    REQUIRE(operation.key + operation.count <= spec.entries);
    if (operation.kind == OperationKind::read_range || operation.key < spec.entries - log) {
      const bool writes = operation.kind == OperationKind::write_range;
      if (writes) REQUIRE(operation.key + operation.count <= spec.entries - log);
      continue;
    }
    ++appends;
    if (log_at + operation.count > spec.entries) {
      log_at = spec.entries - log;
      ++circles;
    }
    REQUIRE(operation.key == log_at);
    log_at += operation.count;
  }
  CHECK(appends == Approx(3333).margin(300));
  CHECK(circles > 100);

  // None is longer than the log, however short that is.
  spec.entries = 80;
  CHECK(spec.least_range() == 10);
  CHECK(spec.most_range() == 10);
  spec.range_least = 1'000'000;
  CHECK(spec.least_range() == 10);
}

TEST_CASE("A course that repeats has nearly all entries, however many there are") {
  using Stream = OperationStream;
  // As many as ever where those are enough.
  for (const std::uint64_t entries : {2U, 100'000U}) {
    CHECK(Stream::draws_for(entries, 1, {}) == 1U << 19);
    CHECK(Stream::draws_for(entries, 16, {}) == 1U << 19);
    CHECK(Stream::draws_for(entries, 1024, {}) == 1U << 13);
    CHECK(Stream::draws_for(entries, 1, 1'000'000) == 1U << 19);
    CHECK(Stream::draws_for(entries, 3, 100) == 303);
    CHECK(Stream::draws_for(entries, 3, 0) == 3);
  }
  CHECK(Stream::draws_for(1'000'000, 1, {}) == 4'000'000);
  CHECK(Stream::draws_for(1'000'000, 2, {}) == 2'000'000);
  CHECK(Stream::draws_for(1'000'000, 2, 1'000'000'000) == 2'000'000);
  CHECK(Stream::draws_for(1'000'000, 2, 1000) == 3003);
  CHECK(Stream::draws_for(10'000'000, 1000, {}) == 40'000);
  // Up to a limit of memory.
  CHECK(Stream::draws_for(0xffffffff, 1, {}) == Stream::kMostDraws);
  CHECK(Stream::draws_for(0xffffffff, 512, {}) == Stream::kMostDraws);

  WorkloadSpec spec;
  spec.kind = WorkloadKind::hashtable;
  spec.entries = 400'000;
  spec.zipf = 0;
  OperationStream stream(spec, Zipf(spec.entries, spec.zipf), 0);
  std::vector<bool> met(spec.entries, false);
  for (int i = 0; i < 1'600'000; ++i) met[stream.next().key] = true;
  CHECK(std::ranges::count(met, true) > 390'000);
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

TEST_CASE("A mix of YCSB has its shares, and its keys are there or new") {
  struct Counts {
    int search = 0, insert = 0, add = 0, modify = 0, scan = 0;
  };
  const auto counts_of = [](Mix mix, unsigned thread) {
    WorkloadSpec spec;
    spec.kind = WorkloadKind::bptree;
    spec.entries = 1000;
    spec.mix = mix;
    spec.validate();
    const Zipf zipf(spec.entries, spec.zipf);
    OperationStream stream(spec, zipf, thread, 5000);
    OperationStream again(spec, zipf, thread, 5000);
    Counts counts;
    std::set<std::uint64_t> added;
    for (int i = 0; i < 20'000; ++i) {
      const Operation operation = stream.next();
      const Operation same = again.next();
      REQUIRE((operation.kind == same.kind && operation.key == same.key &&
               operation.value == same.value && operation.count == same.count));
      REQUIRE(operation.key < spec.key_space());
      const bool is_new = operation.key >= spec.entries;
      if (operation.kind == OperationKind::search) {
        ++counts.search;
        if (is_new) REQUIRE(added.contains(operation.key));
      } else if (operation.kind == OperationKind::insert) {
        ++(is_new ? counts.add : counts.insert);
        if (is_new) added.insert(operation.key);
      } else if (operation.kind == OperationKind::modify) {
        ++counts.modify;
      } else {
        REQUIRE(operation.kind == OperationKind::scan);
        REQUIRE((operation.count >= 1 && operation.count <= kMostScanned));
        ++counts.scan;
      }
      if (operation.kind != OperationKind::search && operation.kind != OperationKind::insert) {
        REQUIRE_FALSE(is_new);
      }
    }
    // Each new key once, until all are there.
    CHECK(added.size() == static_cast<std::size_t>(std::min(counts.add, 1000)));
    return counts;
  };
  for (const Mix mix : mixes_from_name("ycsb")) {
    CAPTURE(to_string(mix));
    const MixShares shares = shares_of(mix);
    const Counts found = counts_of(mix, 3);
    const auto is_share = [](int count, std::uint32_t percent) {
      return percent == 0 ? count == 0 : count == Approx(200.0 * percent).margin(400);
    };
    CHECK(is_share(found.insert, shares.insert));
    CHECK(is_share(found.add, shares.add));
    CHECK(is_share(found.modify, shares.modify));
    CHECK(is_share(found.scan, shares.scan));
    CHECK(is_share(found.search, 100 - shares.insert - shares.add - shares.modify - shares.scan));
  }
}

TEST_CASE("Who searches the newest finds what was added last most often") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::hashtable;
  spec.entries = 1000;
  spec.mix = Mix::ycsb_d;
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream stream(spec, zipf, 0);
  std::vector<std::uint64_t> added;
  int newest = 0;
  int others = 0;
  while (added.size() < 500) {
    const Operation operation = stream.next();
    if (operation.kind == OperationKind::insert) {
      added.push_back(operation.key);
    } else if (!added.empty()) {
      ++(operation.key == added.back() ? newest : others);
    }
  }
  // Rank 0 of 1000 at zipf 0.99 is drawn with a probability of 0.13.
  CHECK(newest / static_cast<double>(newest + others) == Approx(0.13).margin(0.02));
}

TEST_CASE("The mixes are those of YCSB's core workloads") {
  const auto percents = [](Mix mix) {
    const MixShares s = shares_of(mix);
    return std::vector<std::uint32_t>{s.insert, s.add, s.modify, s.scan};
  };
  CHECK(percents(Mix::ycsb_a) == std::vector<std::uint32_t>{50, 0, 0, 0});
  CHECK(percents(Mix::ycsb_b) == std::vector<std::uint32_t>{5, 0, 0, 0});
  CHECK(percents(Mix::ycsb_c) == std::vector<std::uint32_t>{0, 0, 0, 0});
  CHECK(percents(Mix::ycsb_d) == std::vector<std::uint32_t>{0, 5, 0, 0});
  CHECK(percents(Mix::ycsb_e) == std::vector<std::uint32_t>{0, 5, 0, 95});
  CHECK(percents(Mix::ycsb_f) == std::vector<std::uint32_t>{0, 0, 50, 0});
}

TEST_CASE("Mixes are told by name, and a mix of YCSB has all keys there") {
  CHECK(mixes_from_name("ycsb").size() == 6);
  for (const Mix mix : mixes_from_name("ycsb")) {
    CHECK(mixes_from_name(to_string(mix)) == std::vector{mix});
  }
  CHECK_THROWS_WITH(mixes_from_name("ycsb-g"),
                    Catch::Contains("ycsb-f") && Catch::Contains("'ycsb-g'"));
  WorkloadSpec spec;
  spec.kind = WorkloadKind::bptree;
  spec.mix = Mix::ycsb_a;
  spec.fill = 0.5;
  CHECK_THROWS_WITH(spec.validate(), Catch::Contains("fill") && Catch::Contains("ycsb-a"));
}

TEST_CASE("The filled share of the keys is as asked") {
  WorkloadSpec spec;
  for (const double fill : {0.0, 0.3, 1.0}) {
    spec.fill = fill;
    int present = 0;
    for (std::uint64_t key = 0; key < 10'000; ++key) present += spec.present_at_start(key) ? 1 : 0;
    CHECK(present == Approx(fill * 10'000).margin(250));
    CHECK_FALSE(spec.present_at_start(spec.entries));  // a new key
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
  refused([](WorkloadSpec& s) { s.entries = std::uint64_t{1} << 32; });
  const auto taken = [](WorkloadKind kind, auto change) {
    WorkloadSpec spec;
    spec.kind = kind;
    change(spec);
    CHECK_NOTHROW(spec.validate());
  };
  taken(WorkloadKind::sps, [](WorkloadSpec& s) { s.entries = (std::uint64_t{1} << 32) - 1; });
  taken(WorkloadKind::tpcc, [](WorkloadSpec& s) { s.warehouses = kMostWarehouses; });
  taken(WorkloadKind::ranges, [](WorkloadSpec& s) { s.range_least = s.range_most; });
  CHECK_THROWS_AS(workload_from_name("heap"), std::invalid_argument);
  CHECK_NOTHROW(WorkloadSpec().validate());
}

// The check of contents: what no sequence of whole transactions leaves is found.
#include "workloads/contents.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

using namespace sp3::workloads;

namespace {

constexpr std::uint64_t kEntries = 1000;

WorkloadSpec spec_of(WorkloadKind kind) {
  WorkloadSpec spec;
  spec.kind = kind;
  spec.entries = kEntries;
  return spec;
}

std::string violation_of(const WorkloadSpec& spec, const std::vector<Item>& items,
                         unsigned producers = 2) {
  ContentsCheck check(spec, producers);
  for (const Item& item : items) {
    if (!check.add(item)) break;
  }
  return check.violation();
}

// What a store holds at the start.
std::vector<Item> initial(const WorkloadSpec& spec) {
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < spec.entries; ++i) {
    if (spec.present_at_start(i)) items.push_back({i, i, true});
  }
  return items;
}

std::uint64_t made(std::uint64_t producer, std::uint64_t number) {
  return producer << kProducerShift | number;
}

// Takes the items from..to away and numbers the others anew, as a queue would.
void lose(std::vector<Item>& items, std::uint64_t from, std::uint64_t to) {
  const auto at = [&](std::uint64_t i) { return items.begin() + static_cast<std::ptrdiff_t>(i); };
  items.erase(at(from), at(to));
  for (std::size_t i = 0; i < items.size(); ++i) items[i].key = i;
}

}  // namespace

TEST_CASE("A map whose mix adds keys may hold them, if somebody wrote them") {
  WorkloadSpec spec = spec_of(WorkloadKind::bptree);
  std::vector<Item> items = initial(spec);
  items.push_back({kEntries + 7, made(1, 1), true});
  CHECK(violation_of(spec, items) != "");
  spec.mix = Mix::ycsb_d;
  CHECK(violation_of(spec, items) == "");
  items.back().tag = kEntries + 7;
  CHECK(violation_of(spec, items) != "");
  items.back() = {2 * kEntries, made(1, 1), true};
  CHECK(violation_of(spec, items) != "");
  items.pop_back();
  CHECK(violation_of(spec, items) == "");
  items.pop_back();
  CHECK(violation_of(spec, items) != "");
}

TEST_CASE("A map that lost a key, or holds what nobody wrote, is found") {
  for (const WorkloadKind kind :
       {WorkloadKind::hashtable, WorkloadKind::rbtree, WorkloadKind::bptree}) {
    WorkloadSpec spec = spec_of(kind);
    std::vector<Item> items = initial(spec);
    CHECK(violation_of(spec, items) == "");
    items[7].tag = made(1, 1);
    items[8].tag = made(2, 500);
    CHECK(violation_of(spec, items) == "");
    CHECK(violation_of(spec, {}) != "");
    for (const std::uint64_t tag : {made(0, 8), made(0, 1001), made(1, 0), made(3, 1), ~0UL}) {
      std::vector<Item> strange = items;
      strange[7].tag = tag;
      CAPTURE(tag);
      CHECK(violation_of(spec, strange) != "");
    }
    std::vector<Item> fewer = items;
    fewer.erase(fewer.begin() + 500);
    CHECK(violation_of(spec, fewer) != "");
    std::vector<Item> twice = items;
    twice[9].key = 8;
    CHECK(violation_of(spec, twice) != "");
    // A key that was not there at the start may be missing, and is never found with its initial
    // tag.
    spec.fill = 0.5;
    const std::vector<Item> half = initial(spec);
    CHECK(half.size() < kEntries);
    CHECK(violation_of(spec, half) == "");
    CHECK(violation_of(spec, initial(spec_of(kind))) != "");
    CHECK(violation_of(spec, {half.begin() + 1, half.end()}) != "");
  }
}

TEST_CASE("A map that has one write at two keys is found") {
  WorkloadSpec spec = spec_of(WorkloadKind::hashtable);
  std::vector<Item> items = initial(spec);
  items[7].tag = made(1, 3);
  items[8].tag = made(2, 3);
  items[900].tag = made(1, 4);
  CHECK(violation_of(spec, items) == "");
  items[900].tag = made(1, 3);
  CHECK(violation_of(spec, items).find("at two keys") != std::string::npos);
  // Nor does a mix move entries from key to key.
  spec.mix = Mix::ycsb_f;
  CHECK(violation_of(spec, items) != "");
}

TEST_CASE("Of ranges what whole writes leave is right, and all else is found") {
  const WorkloadSpec spec = spec_of(WorkloadKind::ranges);
  // Each letter is a write, upper case those of one thread and lower case those of another, in the
  // order of the alphabet; '.' is an entry as it was at the start.
  const auto left = [&](std::string_view letters) {
    std::vector<Item> items = initial(spec);
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const char letter = letters[i];
      if (letter == '.') continue;
      const bool upper = letter < 'a';
      const auto number = 1 + static_cast<std::uint64_t>(letter - (upper ? 'A' : 'a'));
      items[10 + i].tag = made(upper ? 1 : 2, number);
    }
    CAPTURE(letters);
    return violation_of(spec, items);
  };
  for (const std::string_view letters : {"", "A", "AAAA", "AB", "BA", "A.B.c", "ABA", "AaA", "aAa",
                                         "AaBbAA", "AaBaA", "ABACA", "ABCBADA", "aAABBa.b.CcC"}) {
    CHECK(left(letters) == "");
  }
  // Two writes that alternate, and three.
  for (const std::string_view letters : {"AaAa", "aAaA", "AABAAB", "aAbaA", "AaBbAa", "AaBAaB"}) {
    CHECK(left(letters).find("cut it off") != std::string::npos);
  }
  // Over what had been there at the start, which then is no more.
  for (const std::string_view letters : {"A.A", "Aa.aA", "AaA.A", "A..aaA"}) {
    CHECK(left(letters).find("cut it off") != std::string::npos);
  }
  // Within what the same thread wrote later.
  for (const std::string_view letters : {"BAB", "baBab", "CBaAaBC", "BaAaB", "CaAaC", "CaAAaaC"}) {
    CHECK(left(letters).find("made later") != std::string::npos);
  }
  std::vector<Item> items = initial(spec);
  std::swap(items[4], items[5]);
  CHECK(violation_of(spec, items).find("Index 5") != std::string::npos);
}

TEST_CASE("A queue that lost values anywhere but at its front is found") {
  const WorkloadSpec spec = spec_of(WorkloadKind::queue);
  std::vector<Item> items = initial(spec);
  // Two producers, who take turns.
  for (std::uint64_t n = 1; n <= 100; ++n) {
    for (const std::uint64_t producer : {1U, 2U}) {
      items.push_back({items.size(), made(producer, n), true});
    }
  }
  CHECK(violation_of(spec, items) == "");
  for (const std::uint64_t taken : {1U, 999U, 1000U, 1051U, 1200U}) {
    std::vector<Item> rest = items;
    lose(rest, 0, taken);
    CHECK(violation_of(spec, rest) == "");
  }
  for (const std::uint64_t at : {4U, 899U, 999U, 1002U, 1197U}) {
    std::vector<Item> rest = items;
    lose(rest, at, at + 1);
    CAPTURE(at);
    CHECK(violation_of(spec, rest) != "");
  }
  std::vector<Item> rest = items;
  lose(rest, 4, 900);
  CHECK(violation_of(spec, rest) != "");
  rest = items;
  std::swap(rest[1100], rest[1102]);
  CHECK(violation_of(spec, rest) != "");
  rest = items;
  std::swap(rest[999], rest[1000]);
  CHECK(violation_of(spec, rest) != "");
  CHECK(violation_of(spec, items, 1) != "");
}

TEST_CASE("A bank whose balances do not add up, or an account of which is wrong, is found") {
  const WorkloadSpec spec = spec_of(WorkloadKind::bank);
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < kEntries; ++i) items.push_back({i, kStartBalance, true});
  CHECK(violation_of(spec, items) == "");
  items[4].tag -= 10;  // a transfer of which one half was lost
  CHECK(violation_of(spec, items).find("999990 together") != std::string::npos);
  items[9].tag += 10;
  CHECK(violation_of(spec, items) == "");
  std::vector<Item> wrong = items;
  wrong[4].tag -= kStartBalance;
  wrong[9].tag += kStartBalance;
  CHECK(violation_of(spec, wrong).find("Account 4 has -10") != std::string::npos);
  wrong = items;
  wrong[3].intact = false;
  CHECK(violation_of(spec, wrong).find("torn") != std::string::npos);
  wrong = items;
  wrong[3].key = 5;
  CHECK(violation_of(spec, wrong).find("Account 5 occurs twice") != std::string::npos);
  wrong = items;
  wrong.pop_back();
  CHECK(violation_of(spec, wrong).find("999 accounts") != std::string::npos);
}

TEST_CASE("An array with an entry too many, too few, torn or foreign is found") {
  for (const WorkloadKind kind : {WorkloadKind::sps, WorkloadKind::ranges}) {
    const WorkloadSpec spec = spec_of(kind);
    const std::vector<Item> items = initial(spec);
    CHECK(violation_of(spec, items) == "");
    CHECK(violation_of(spec, {items.begin(), items.end() - 1}) != "");
    std::vector<Item> wrong = items;
    wrong[3].tag = wrong[4].tag;
    CHECK(violation_of(spec, wrong) != "");
    wrong = items;
    wrong[3].intact = false;
    CHECK(violation_of(spec, wrong) != "");
    wrong = items;
    wrong.push_back({kEntries, kEntries, true});
    CHECK(violation_of(spec, wrong) != "");
  }
}

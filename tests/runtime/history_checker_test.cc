// The checker must find what it is there to find, and nothing else.
#include <string>

#include <catch2/catch.hpp>

#include "oracle/history.h"
#include "tests/support/pools.h"

namespace sp3::test {

using namespace oracle;

namespace {

using Tx = HistoryTransaction;
constexpr std::uint64_t x = 1;
constexpr std::uint64_t y = 2;

// All at the same time, unless times are given.
Tx at(std::uint64_t begin = 1, std::uint64_t end = 100) {
  Tx tx;
  tx.begin = begin;
  tx.end = end;
  return tx;
}

std::string verdict(const std::vector<Tx>& transactions) {
  History history;
  for (const Tx& tx : transactions) history.add(tx);
  const auto found = history.find_anomaly();
  if (!found) return "";
  CHECK_FALSE(found->explanation.empty());
  UNSCOPED_INFO(found->explanation);
  return found->name;
}

}  // namespace

TEST_CASE("histories with a serial order are accepted") {
  CHECK(verdict({}).empty());
  Tx a = at(1, 2), b = at(3, 4), c = at(5, 6);
  a.append(x, 1);
  b.read_list(x, {1});
  b.append(x, 2);
  b.read_list(x, {1, 2});
  c.read_list(x, {1, 2});
  CHECK(verdict({a, b, c}).empty());
  // Concurrent: the reader may come first.
  Tx reader = at();
  reader.read_list(x, {});
  CHECK(verdict({a, b, c}).empty());
  Tx writer = at();
  writer.append(x, 7);
  Tx later = at();
  later.read_list(x, {7});
  CHECK(verdict({reader, writer, later}).empty());
  // Registers.
  Tx r1 = at(), r2 = at();
  r1.read_register(y, 0);
  r1.write_register(y, 5);
  r1.read_register(y, 5);
  r2.read_register(y, 5);
  r2.write_register(y, 6);
  CHECK(verdict({r1, r2}).empty());
}

TEST_CASE("G0: two transactions order their writes both ways") {
  Tx a = at(), b = at(), c = at();
  a.append(x, 1);
  a.append(y, 1);
  b.append(x, 2);
  b.append(y, 2);
  c.read_list(x, {1, 2});
  c.read_list(y, {2, 1});
  CHECK(verdict({a, b, c}) == "G0");
}

TEST_CASE("G1c: two transactions read from each other") {
  Tx a = at(), b = at();
  a.append(x, 1);
  a.read_list(y, {2});
  b.append(y, 2);
  b.read_list(x, {1});
  CHECK(verdict({a, b}) == "G1c");
}

TEST_CASE("G-single: a transaction sees half of another") {
  Tx a = at(), b = at(), c = at();
  a.append(x, 1);
  a.append(y, 1);
  b.read_list(x, {1});
  b.read_list(y, {});
  c.read_list(y, {1});
  CHECK(verdict({a, b, c}) == "G-single");
}

TEST_CASE("G2: write skew") {
  Tx a = at(), b = at(), c = at();
  a.read_list(x, {});
  a.append(y, 1);
  b.read_list(y, {});
  b.append(x, 1);
  c.read_list(x, {1});
  c.read_list(y, {1});
  CHECK(verdict({a, b, c}) == "G2");
  // With registers, whose orders come from reading before writing.
  Tx d = at(), e = at();
  d.read_register(x, 0);
  d.read_register(y, 0);
  d.write_register(x, 1);
  e.read_register(x, 0);
  e.read_register(y, 0);
  e.write_register(y, 2);
  CHECK(verdict({d, e}) == "G2");
}

TEST_CASE("a read that misses what had returned before it is a real-time violation") {
  Tx a = at(1, 2), b = at(3, 4), c = at(5, 6);
  a.append(x, 1);
  b.read_list(x, {});
  c.read_list(x, {1});
  CHECK(verdict({a, b, c}) == "real-time violation");
  // Overlapping, it is allowed.
  Tx d = at(1, 4);
  d.append(x, 1);
  CHECK(verdict({d, b, c}).empty());
  // Through an unrelated transaction in between.
  Tx w = at(1, 2), u = at(3, 4), r = at(5, 6), late = at(7, 8);
  w.append(x, 1);
  u.append(y, 1);
  r.read_list(x, {});
  late.read_list(x, {1});
  late.read_list(y, {1});
  CHECK(verdict({w, u, r, late}) == "real-time violation");
}

TEST_CASE("a lost update is found in registers and in lists") {
  Tx a = at(), b = at();
  a.read_register(x, 0);
  a.write_register(x, 1);
  b.read_register(x, 0);
  b.write_register(x, 2);
  CHECK(verdict({a, b}) == "lost update");
  Tx c = at(), d = at(), e = at();
  c.read_list(x, {});
  c.append(x, 1);
  d.read_list(x, {});
  d.append(x, 2);
  e.read_list(x, {1, 2});
  CHECK(verdict({c, d, e}) == "G-single");
  Tx f = at();
  f.read_list(x, {2});
  CHECK(verdict({c, e, d, f}) == "incompatible lists");
}

TEST_CASE("reads of aborted, half-done, unwritten and own values are told apart") {
  Tx a = at(), b = at();
  a.append(x, 1);
  a.outcome = Tx::Outcome::aborted;
  b.read_list(x, {1});
  CHECK(verdict({a, b}) == "dirty read");
  a.outcome = Tx::Outcome::unknown;
  CHECK(verdict({a, b}).empty());
  Tx c = at();
  c.append(x, 1);
  c.append(x, 2);
  CHECK(verdict({c, b}) == "intermediate read");
  CHECK(verdict({b}) == "unwritten value");
  CHECK(verdict({a, a}) == "value written twice");
  Tx d = at();
  d.append(x, 1);
  d.read_list(x, {});
  CHECK(verdict({d}) == "inconsistent read");
  Tx e = at();
  e.write_register(y, 1);
  e.read_register(y, 0);
  CHECK(verdict({e}) == "inconsistent read");
}

TEST_CASE("a transaction that reads what it writes only later is found") {
  Tx r = at();
  r.read_register(x, 1);
  r.write_register(x, 1);
  CHECK(verdict({r}) == "inconsistent read");
  Tx l = at();
  l.read_list(x, {1});
  l.append(x, 1);
  CHECK(verdict({l}) == "inconsistent read");
  Tx half = at();
  half.append(x, 1);
  half.read_list(x, {2, 1});
  half.append(x, 2);
  CHECK(verdict({half}) == "inconsistent read");
}

TEST_CASE("a transaction whose outcome is unknown counts from the moment it is seen") {
  Tx lost = at(1, 2), seen = at(1, 2), reader = at(3, 4);
  lost.append(x, 1);
  lost.outcome = Tx::Outcome::unknown;
  seen.append(y, 1);
  seen.outcome = Tx::Outcome::unknown;
  reader.read_list(x, {});
  reader.read_list(y, {1});
  CHECK(verdict({lost, seen, reader}).empty());
  seen.append(x, 2);
  CHECK(verdict({lost, seen, reader}) == "G-single");  // it saw y = [1] and not x = [2]
  Tx later = at(5, 6);
  later.read_list(x, {2});
  CHECK(verdict({lost, seen, reader, later}) == "G-single");
}

TEST_CASE("an append that committed and that nobody read is missed") {
  Tx a = at(1, 2), later = at(3, 4);
  a.append(x, 1);
  later.read_list(x, {});
  CHECK(verdict({a, later}) == "real-time violation");
  a.outcome = Tx::Outcome::unknown;  // nothing was promised
  CHECK(verdict({a, later}).empty());
  a.outcome = Tx::Outcome::aborted;
  CHECK(verdict({a, later}).empty());
  a.outcome = Tx::Outcome::committed;
  Tx early = at(1, 4);
  early.read_list(x, {});
  CHECK(verdict({a, early}).empty());
  // Another's append in its place.
  Tx next = at(3, 4), last = at(5, 6);
  next.append(x, 2);
  next.read_list(x, {2});
  last.read_list(x, {2});
  CHECK(verdict({a, next, last}) == "real-time violation");
  // Several that nobody read may be in any order.
  Tx b = at(), c = at(), first = at();
  b.append(x, 3);
  c.append(x, 4);
  c.append(x, 5);
  first.read_list(x, {});
  CHECK(verdict({first, b, c}).empty());
  // Who read, and then appended what nobody read, came before all others of them.
  first.append(x, 6);
  CHECK(verdict({first, b, c}).empty());
  b.ops.insert(b.ops.begin(), {HistoryOp::Kind::read_list, x, 0, {}});
  CHECK(verdict({first, b, c}) == "G2");
}

TEST_CASE("half a transaction is found though nobody read its other half") {
  Tx a = at(), b = at();
  a.append(x, 1);
  a.append(y, 1);
  b.read_list(x, {1});
  b.read_list(y, {});
  CHECK(verdict({a, b}) == "G-single");
}

TEST_CASE("an update lost from a list is found though it was never read") {
  Tx a = at(), b = at(), c = at();
  a.read_list(x, {});
  a.append(x, 1);
  b.read_list(x, {});
  b.append(x, 2);
  c.read_list(x, {2});
  CHECK(verdict({a, b, c}) == "G-single");
}

TEST_CASE("what a transaction appended stands in a list once, together and in its order") {
  Tx a = at(1, 2), other = at(3, 4);
  a.append(x, 1);
  a.append(x, 2);
  other.append(x, 3);
  const auto verdict_on = [&](std::vector<std::uint64_t> list) {
    Tx reader = at(5, 6);
    reader.read_list(x, std::move(list));
    return verdict({a, other, reader});
  };
  CHECK(verdict_on({1, 2, 3}).empty());
  CHECK(verdict_on({2, 1, 3}) == "misplaced append");
  CHECK(verdict_on({1, 3, 2}) == "misplaced append");
  CHECK(verdict_on({2}) == "misplaced append");
  CHECK(verdict_on({2, 3}) == "misplaced append");
  CHECK(verdict_on({1, 2, 3, 1, 2}) == "misplaced append");
  CHECK(verdict_on({1, 1, 2, 3}) == "misplaced append");
  CHECK(verdict_on({1, 2, 3, 3}) == "misplaced append");
  CHECK(verdict_on({1}) == "intermediate read");
  CHECK(verdict_on({1, 2}) == "real-time violation");
  // Its own reader may be the longest, and see a part.
  Tx alone = at();
  alone.append(y, 1);
  alone.read_list(y, {1});
  alone.append(y, 2);
  CHECK(verdict({alone}).empty());
}

TEST_CASE("a register is what it was until the reader itself writes it") {
  Tx writer = at(), reader = at();
  writer.write_register(x, 1);
  reader.read_register(x, 0);
  reader.read_register(x, 0);
  CHECK(verdict({writer, reader}).empty());
  reader.read_register(x, 1);
  CHECK(verdict({writer, reader}) == "inconsistent read");
  Tx both = at();
  both.read_register(x, 0);
  both.write_register(x, 2);
  both.read_register(x, 2);
  both.write_register(x, 3);
  both.read_register(x, 3);
  CHECK(verdict({both}).empty());
}

TEST_CASE("a register's first value comes before all writers of it") {
  Tx blind = at(1, 2), reader = at(3, 4);
  blind.write_register(x, 1);
  reader.read_register(x, 0);
  CHECK(verdict({blind, reader}) == "real-time violation");
  blind.outcome = Tx::Outcome::unknown;
  CHECK(verdict({blind, reader}).empty());
  blind.outcome = Tx::Outcome::committed;
  reader.begin = 1;
  CHECK(verdict({blind, reader}).empty());
  // Half a transaction, of blind writes; and one that follows a blind write.
  blind.write_register(y, 1);
  reader.read_register(y, 1);
  CHECK(verdict({blind, reader}) == "G-single");
  Tx follower = at(3, 4), later = at(5, 6);
  follower.read_register(x, 1);
  follower.write_register(x, 2);
  follower.write_register(y, 2);
  later.read_register(x, 0);
  later.read_register(y, 2);
  CHECK(verdict({blind, follower, later}) == "G-single");
}

TEST_CASE("a cycle hidden in a long history is found") {
  Random random(5);
  std::vector<Tx> all;
  std::vector<std::uint64_t> list;
  for (std::uint64_t i = 1; i <= 3000; ++i) {
    Tx tx = at(2 * i, 2 * i + 1);
    tx.read_list(x, list);
    if (random.below(10) == 0 && list.size() < 200) {
      tx.append(x, i);
      list.push_back(i);
    }
    all.push_back(tx);
  }
  CHECK(verdict(all).empty());
  all[2000].ops[0].list.pop_back();
  const std::string found = verdict(all);
  CHECK((found == "real-time violation" || found == "G-single"));
}

}  // namespace sp3::test

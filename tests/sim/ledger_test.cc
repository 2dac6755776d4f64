// What the ledger demands of a history and of a state, from what it is told.
#include <string>

#include <catch2/catch.hpp>

#include "sim/ledger.h"

namespace sp3::test {
namespace {

using sim::Ledger;
using sim::Value;

// A ledger whose objects are there, with the values 1, 2, and so on.
struct Started {
  Ledger ledger{0};
  sim::State state;

  Started() {
    for (std::uint32_t i = 0; i < sim::kObjects; ++i) state.values[i] = i + 1;
    state.made = true;
    ledger.start_from(state.values, true);
  }

  Ledger::Number begin(int core) {
    const Ledger::Number tx = ledger.begin(core);
    ledger.attempt(tx);
    return tx;
  }
  // A transaction of the core that replaces what cell 0 has.
  Ledger::Number replace(int core) {
    const Ledger::Number tx = begin(core);
    const Value old = state.values[0];
    ledger.read(tx, 0, old);
    state.values[0] = ledger.next_value(tx);
    ledger.write(tx, 0, old, state.values[0]);
    return tx;
  }
  void read(int core, Value found) {
    const Ledger::Number tx = begin(core);
    ledger.read(tx, 0, found);
    ledger.acknowledge(tx);
  }
  [[nodiscard]] std::string verdict() const {
    const auto anomaly = ledger.history().find_anomaly();
    return anomaly ? anomaly->name : "";
  }
};

}  // namespace

TEST_CASE("an asynchronous commit is seen by all who begin after its call returned") {
  for (const int reader : {0, 1}) {
    Started blind, seeing;
    for (Started* const s : {&blind, &seeing}) {
      const Value old = s->state.values[0];
      const Ledger::Number tx = s->replace(0);
      s->ledger.publish(tx);
      s->read(reader, s == &blind ? old : s->state.values[0]);
      CHECK(s->verdict() == (s == &blind ? "real-time violation" : ""));
      s->ledger.acknowledge(tx);  // comes too late to excuse anybody
      CHECK(s->verdict() == (s == &blind ? "real-time violation" : ""));
    }
  }
}

TEST_CASE("while a call has not returned, who reads may come before it or after") {
  Started s;
  const Value old = s.state.values[0];
  static_cast<void>(s.replace(0));
  s.read(1, old);
  s.read(1, s.state.values[0]);
  CHECK(s.verdict().empty());
  s.read(1, old);
  CHECK(s.verdict() == "real-time violation");
}

TEST_CASE("what was published and not acknowledged may be lost") {
  Started s;
  const sim::State before = s.state;
  const Ledger::Number tx = s.replace(0);
  s.ledger.publish(tx);
  CHECK(s.ledger.find_fault(before).empty());
  CHECK(s.ledger.find_fault(s.state).empty());
  s.ledger.acknowledge(tx);
  CHECK(s.ledger.find_fault(before).find("acknowledged and lost") == 0);
  CHECK(s.ledger.find_fault(s.state).empty());
}

TEST_CASE("an attempt that came to nothing is asked about anew") {
  Started s;
  const Ledger::Number tx = s.replace(0);
  CHECK(s.ledger.find_fault(s.state).empty());
  const std::uint64_t before = s.ledger.demands();
  s.ledger.attempt(tx);
  CHECK(s.ledger.find_fault(s.state).find("was never written") != std::string::npos);
  CHECK(s.ledger.demands() != before);
}

TEST_CASE("what one ledger has been asked says nothing about another's answer") {
  const Started one, other;  // of runs with the same number, as programs that go on may have
  CHECK(one.ledger.demands() != other.ledger.demands());
}

}  // namespace sp3::test

// Who checks the checker: a serial world makes true histories, which the oracle must accept, and
// each way of spoiling one must be found.
#include "tools/crash/oracle.h"

#include <algorithm>
#include <utility>

#include <catch2/catch.hpp>

using namespace sp3::tools::crash;
using sp3::workloads::Rng;

namespace {

constexpr unsigned kWindow = 8;

constexpr WorkloadKind kKinds[] = {
    WorkloadKind::sps,    WorkloadKind::queue,  WorkloadKind::hashtable, WorkloadKind::rbtree,
    WorkloadKind::bptree, WorkloadKind::ranges, WorkloadKind::bank};

bool is_map(WorkloadKind kind) {
  return kind == WorkloadKind::hashtable || kind == WorkloadKind::rbtree ||
         kind == WorkloadKind::bptree;
}

// Runs the plan's transactions one after another, threads in random order.
class World {
 public:
  explicit World(const Plan& plan) : plan_(plan), rng_(plan.seed), waiting_(plan.threads) {
    dump_.journals.resize(plan.threads);
    if (plan.workload != WorkloadKind::queue) dump_.cells.resize(plan.entries);
    for (std::uint64_t i = 0; i < dump_.cells.size(); ++i) {
      dump_.cells[i].content = plan.first_content(i);
    }
  }

  // One transaction of `thread`; returns what it met.
  Outcome transact(unsigned thread) {
    Journal& journal = dump_.journals[thread];
    const std::uint64_t sequence = ++journal.sequence;
    Outcome outcome = act(plan_.step(thread, sequence), make_tag(thread, sequence));
    outcome.sequence = sequence;
    journal.outcomes.push_back(outcome);
    if (journal.outcomes.size() > kJournalLength) journal.outcomes.erase(journal.outcomes.begin());
    return outcome;
  }

  // `count` transactions, all acknowledged but each thread's last few.
  void run(Oracle& oracle, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const auto thread = static_cast<unsigned>(rng_.below(plan_.threads));
      waiting_[thread].push_back(transact(thread));
      if (waiting_[thread].size() <= kWindow) continue;
      oracle.acknowledged(thread, waiting_[thread].front());
      waiting_[thread].erase(waiting_[thread].begin());
    }
  }

  // The threads are dead: what was not acknowledged never will be.
  void crash() { waiting_.assign(plan_.threads, {}); }

  [[nodiscard]] Dump dump() const {
    Dump dump = dump_;
    if (!is_map(plan_.workload)) return dump;
    for (std::uint64_t key = 0; key < dump.cells.size(); ++key) {
      if (dump.cells[key].content != 0) dump.items.push_back({key, dump.cells[key].writer});
    }
    return dump;
  }

 private:
  Outcome act(const Step& step, Tag tag) {
    switch (step.action) {
      case Action::swap: {
        Cell& first = dump_.cells[step.first];
        Cell& second = dump_.cells[step.second];
        std::swap(first.content, second.content);
        first.writer = second.writer = tag;
        return {0, ++first.version, ++second.version};
      }
      case Action::transfer: {
        Cell& payer = dump_.cells[step.first];
        Cell& payee = dump_.cells[step.second];
        if (payer.content < step.amount) return {0, payer.version, kNothing};
        payer = {payer.version + 1, tag, payer.content - step.amount};
        payee = {payee.version + 1, tag, payee.content + step.amount};
        return {0, payer.version, payee.version};
      }
      case Action::insert:
      case Action::erase: {
        Cell& cell = dump_.cells[step.first];
        cell = {cell.version + 1, tag, step.action == Action::insert ? 1U : 0U};
        return {0, cell.version, 0};
      }
      case Action::search:
        return {0, dump_.cells[step.first].version, 0};
      case Action::enqueue:
        dump_.queue.push_back(tag);
        return {};
      case Action::dequeue:
        break;
    }
    if (dump_.queue.empty()) return {0, kNothing, 0};
    const Tag front = dump_.queue.front();
    dump_.queue.erase(dump_.queue.begin());
    return {0, front, 0};
  }

  Plan plan_;
  Rng rng_;
  Dump dump_;
  std::vector<std::vector<Outcome>> waiting_;  // by thread, not acknowledged yet
};

Plan plan_for(WorkloadKind kind, std::uint64_t seed = 1) {
  return {.workload = kind, .entries = 40, .threads = 3, .seed = seed};
}

// Whether the oracle objects to `spoil`ing a true state, with a sentence that contains `words`.
template <class F>
void must_find(WorkloadKind kind, const std::string& words, F&& spoil) {
  const Plan plan = plan_for(kind);
  Oracle oracle(plan, kWindow);
  World world(plan);
  world.run(oracle, 500);
  Dump dump = world.dump();
  spoil(dump);
  const std::vector<std::string> violations = oracle.verify(dump);
  CAPTURE(words, violations);
  CHECK(std::ranges::any_of(
      violations, [&](const std::string& text) { return text.find(words) != std::string::npos; }));
}

// A history of two threads of which nothing is acknowledged, in two rounds: what was there between
// them, and what is told of the second.
struct Told {
  Plan plan;
  Dump before;
  Dump after;

  // The outcomes of the second round's transactions of that kind, thread by thread.
  std::vector<Outcome*> all(Action action) {
    std::vector<Outcome*> found;
    for (unsigned thread = 0; thread < plan.threads; ++thread) {
      for (Outcome& outcome : after.journals[thread].outcomes) {
        if (outcome.sequence <= before.journals[thread].sequence) continue;
        if (plan.step(thread, outcome.sequence).action == action) found.push_back(&outcome);
      }
    }
    return found;
  }
};

// Whether the oracle objects, with a sentence that contains `words`, to a true history that
// `spoil(told)` has spoilt. That returns whether it found what it needs; else another is tried.
template <class F>
void must_find_in_some(WorkloadKind kind, const std::string& words, F&& spoil) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Plan plan{.workload = kind, .entries = 3, .threads = 2, .seed = seed};
    Oracle oracle(plan, 16);
    World world(plan);
    for (unsigned i = 0; i < 20; ++i) world.transact(i % 2);
    Told told{plan, world.dump(), {}};
    REQUIRE(oracle.verify(told.before).empty());
    for (unsigned i = 0; i < 20; ++i) world.transact(i % 2);
    told.after = world.dump();
    if (!spoil(told)) continue;
    const std::vector<std::string> violations = oracle.verify(told.after);
    CAPTURE(words, violations, seed);
    CHECK(std::ranges::any_of(violations, [&](const std::string& text) {
      return text.find(words) != std::string::npos;
    }));
    return;
  }
  FAIL("no history has what it takes");
}

}  // namespace

TEST_CASE("The oracle accepts true histories, round after round") {
  for (const WorkloadKind kind : kKinds) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const Plan plan = plan_for(kind, seed);
      Oracle oracle(plan, kWindow);
      World world(plan);
      for (unsigned round = 0; round < 10; ++round) {
        world.run(oracle, 200);
        world.crash();
        REQUIRE(oracle.verify(world.dump()) == std::vector<std::string>());
        REQUIRE(oracle.unacknowledged_survivors() > 0);
        // A second look at an unchanged pool finds nothing new.
        REQUIRE(oracle.verify(world.dump()) == std::vector<std::string>());
      }
      REQUIRE(oracle.acknowledged_total() > 1500);
    }
  }
}

TEST_CASE("An older state has lost acknowledged transactions") {
  for (const WorkloadKind kind : kKinds) {
    const Plan plan = plan_for(kind);
    Oracle oracle(plan, kWindow);
    World world(plan);
    world.run(oracle, 200);
    const Dump old = world.dump();
    world.run(oracle, 200);
    const auto violations = oracle.verify(old);
    REQUIRE_FALSE(violations.empty());
    CHECK(violations.front().starts_with("Lost"));
  }
}

TEST_CASE("More survivors than can be under way are found") {
  const Plan plan = plan_for(WorkloadKind::sps);
  Oracle oracle(plan, kWindow);
  World world(plan);
  for (unsigned i = 0; i <= kWindow; ++i) world.transact(0);
  CHECK_FALSE(oracle.verify(world.dump()).empty());
}

TEST_CASE("Half a swap is found") {
  must_find(WorkloadKind::sps, "Cell", [](Dump& dump) { --dump.cells[3].version; });
  must_find(WorkloadKind::sps, "Cell",
            [](Dump& dump) { std::swap(dump.cells[1].content, dump.cells[2].content); });
  must_find(WorkloadKind::sps, "Cell", [](Dump& dump) { dump.cells[5].writer = 0; });
}

TEST_CASE(
    "Half a transfer is found, and one that its payer could not bear, or was refused for nothing") {
  must_find(WorkloadKind::bank, "Cell", [](Dump& dump) { ++dump.cells[3].content; });
  // Accounts of two, a transfer from one to the other, told otherwise than it went.
  std::uint64_t seed = 1;
  const auto plan = [&] {
    return Plan{.workload = WorkloadKind::bank, .entries = 2, .threads = 1, .seed = seed};
  };
  const auto verdict = [&](bool made) {
    const Step step = plan().step(0, 1);
    Dump dump;
    dump.cells = {{0, 0, kFirstBalance}, {0, 0, kFirstBalance}};
    const Outcome outcome = made ? Outcome{1, 1, 1} : Outcome{1, 0, kNothing};
    if (made) {
      dump.cells[step.first] = {1, make_tag(0, 1), kFirstBalance - step.amount};
      dump.cells[step.second] = {1, make_tag(0, 1), kFirstBalance + step.amount};
    }
    dump.journals = {{1, {outcome}}};
    Oracle oracle(plan(), kWindow);
    const auto violations = oracle.verify(dump);
    return violations.empty() ? std::string() : violations.front();
  };
  while (plan().step(0, 1).amount <= kFirstBalance) ++seed;
  CHECK(verdict(false).empty());
  CHECK(verdict(true).find("took") != std::string::npos);
  while (plan().step(0, 1).amount > kFirstBalance) ++seed;
  CHECK(verdict(true).empty());
  CHECK(verdict(false).find("was refused") != std::string::npos);
}

TEST_CASE("A map and its cells at odds are found") {
  for (const WorkloadKind kind :
       {WorkloadKind::hashtable, WorkloadKind::rbtree, WorkloadKind::bptree}) {
    must_find(kind, "is not in the map", [](Dump& dump) { dump.items.pop_back(); });
    must_find(kind, "Half a transaction", [](Dump& dump) { dump.items[2].writer ^= 1; });
    must_find(kind, "twice", [](Dump& dump) { dump.items.push_back(dump.items.back()); });
  }
  must_find(WorkloadKind::rbtree, "follows",
            [](Dump& dump) { std::swap(dump.items[0], dump.items[1]); });
}

TEST_CASE("A queue that lost, doubled or reordered values is found") {
  must_find(WorkloadKind::queue, "lost", [](Dump& dump) { dump.queue.pop_back(); });
  must_find(WorkloadKind::queue, "twice",
            [](Dump& dump) { dump.queue.push_back(dump.queue.front()); });
  must_find(WorkloadKind::queue, "never there",
            [](Dump& dump) { dump.queue.push_back(make_tag(2, 1 << 20)); });
  must_find(WorkloadKind::queue, "behind a newer",
            [](Dump& dump) { std::ranges::reverse(dump.queue); });
}

TEST_CASE("A survivor whose predecessor is gone is found") {
  // Two threads, transactions until the second one's overwrites the first one's last.
  for (const WorkloadKind kind : {WorkloadKind::sps, WorkloadKind::rbtree}) {
    const Plan plan{.workload = kind, .entries = 2, .threads = 2, .seed = 4};
    World with(plan);
    with.transact(0);  // sps: every transaction touches both entries
    for (int i = 0; i < 4; ++i) with.transact(1);
    Dump dump = with.dump();
    dump.journals[0] = {};  // its journal says that it never ran
    Oracle oracle(plan, kWindow);
    const auto violations = oracle.verify(dump);
    CAPTURE(violations);
    CHECK_FALSE(violations.empty());
  }
}

TEST_CASE("Two writers of one version, and a cycle, are found") {
  const Plan plan{.workload = WorkloadKind::sps, .entries = 2, .threads = 2, .seed = 4};
  const auto verdict = [&](Outcome first, Outcome second) {
    Oracle oracle(plan, kWindow);
    Dump dump;
    dump.cells = {{2, make_tag(1, 1), 0}, {2, make_tag(1, 1), 1}};
    dump.journals = {{1, {first}}, {1, {second}}};
    const auto violations = oracle.verify(dump);
    return violations.empty() ? std::string() : violations.front();
  };
  // Which of the two entries comes first in a step depends on the seed; both orders are tried.
  const std::string lost = verdict({1, 1, 1}, {1, 1, 1});
  CHECK(lost.starts_with("Lost update"));
  const bool same_order = plan.step(0, 1).first == plan.step(1, 1).first;
  const std::string cycle =
      same_order ? verdict({1, 1, 2}, {1, 2, 1}) : verdict({1, 1, 2}, {1, 1, 2});
  CHECK(cycle.starts_with("No serial order"));
}

TEST_CASE("What readers were given must survive") {
  const Plan plan = plan_for(WorkloadKind::hashtable);
  Oracle oracle(plan, kWindow);
  World world(plan);
  world.run(oracle, 100);
  const Dump dump = world.dump();
  oracle.observed(7, dump.cells[7].version);
  CHECK(oracle.verify(dump).empty());
  oracle.observed(7, dump.cells[7].version + 1);
  CHECK_FALSE(oracle.verify(dump).empty());

  Oracle queue(plan_for(WorkloadKind::queue), kWindow);
  World line(plan_for(WorkloadKind::queue));
  line.run(queue, 100);
  queue.observed_front(make_tag(0, 1 << 20));
  CHECK_FALSE(queue.verify(line.dump()).empty());
}

TEST_CASE("A journal that remembers something else than was acknowledged is found") {
  must_find(WorkloadKind::bptree, "another outcome", [](Dump& dump) {
    for (Journal& journal : dump.journals) ++journal.outcomes.front().a;
  });
  // Up to the last that was acknowledged.
  must_find(WorkloadKind::sps, "another outcome", [](Dump& dump) {
    auto& outcomes = dump.journals[1].outcomes;
    ++outcomes[outcomes.size() - kWindow - 1].a;
  });
}

TEST_CASE("A queue's values that were taken as no queue gives them are found") {
  const auto taken = [](Told& told) {
    std::vector<Outcome*> all = told.all(Action::dequeue);
    std::erase_if(all, [](const Outcome* outcome) { return outcome->a == kNothing; });
    return all;
  };
  const auto find = [&](const std::string& words, auto&& spoil) {
    must_find_in_some(WorkloadKind::queue, words, spoil);
  };
  find("whose enqueue did not survive", [&](Told& told) {
    const auto all = taken(told);
    if (all.empty()) return false;
    all[0]->a = make_tag(1, 1000);
    return true;
  });
  find("was taken twice", [&](Told& told) {
    const auto all = taken(told);
    if (all.size() < 2) return false;
    all[1]->a = all[0]->a;
    return true;
  });
  // A value that was there from the beginning to the end.
  find("met an empty queue", [&](Told& told) {
    const auto all = taken(told);
    const auto& old = told.before.queue;
    if (all.empty() || old.empty() || told.after.queue.empty()) return false;
    if (std::ranges::find(told.after.queue, old.back()) == told.after.queue.end()) return false;
    all[0]->a = kNothing;
    return true;
  });
  // The first of the old values has stayed, and the second was taken.
  find("overtook an older value", [&](Told& told) {
    const auto& old = told.before.queue;
    auto& left = told.after.queue;
    if (old.size() < 2 || left.empty() || left.front() != old[1]) return false;
    for (Outcome* const outcome : taken(told)) {
      if (outcome->a == old[0]) outcome->a = old[1];
    }
    left.front() = old[0];
    return true;
  });
  // A new one was taken, and an old one has stayed.
  find("overtook an older value", [&](Told& told) {
    const auto& old = told.before.queue;
    auto& left = told.after.queue;
    if (old.empty() || left.empty() || std::ranges::find(old, left.front()) != old.end())
      return false;
    for (Outcome* const outcome : taken(told)) {
      if (outcome->a == old.back()) outcome->a = left.front();
    }
    left.front() = old.back();
    return true;
  });
  find("no longer at its front", [&](Told& told) {
    const auto& old = told.before.queue;
    auto& left = told.after.queue;
    if (old.size() < 2 || left.size() < 2 || left[1] != old.back()) return false;
    std::swap(left[0], left[1]);
    return true;
  });
  // By one consumer, of one producer.
  find("after a newer one", [&](Told& told) {
    const auto all = taken(told);
    for (std::size_t i = 1; i < all.size(); ++i) {
      const bool one_consumer = all[i]->sequence > all[i - 1]->sequence;
      if (!one_consumer || thread_of(all[i]->a) != thread_of(all[i - 1]->a)) continue;
      std::swap(all[i]->a, all[i - 1]->a);
      return true;
    }
    return false;
  });
}

TEST_CASE("A search that was shown what there was not, or not any more, is found") {
  must_find_in_some(WorkloadKind::rbtree, "which no survivor wrote", [](Told& told) {
    const auto searches = told.all(Action::search);
    if (searches.empty()) return false;
    searches[0]->a += 50;
    return true;
  });
  // The version before the one that the same thread has just written.
  must_find_in_some(WorkloadKind::rbtree, "No serial order", [](Told& told) {
    for (unsigned thread = 0; thread < 2; ++thread) {
      auto& outcomes = told.after.journals[thread].outcomes;
      for (std::size_t i = 11; i < outcomes.size(); ++i) {
        const Step write = told.plan.step(thread, outcomes[i - 1].sequence);
        const Step search = told.plan.step(thread, outcomes[i].sequence);
        if (write.action != Action::insert || search.action != Action::search) continue;
        if (write.first != search.first) continue;
        outcomes[i].a = outcomes[i - 1].a - 1;
        return true;
      }
    }
    return false;
  });
}

TEST_CASE("A thread that skips one of its transactions is found") {
  const Plan plan = plan_for(WorkloadKind::sps);
  Oracle oracle(plan, kWindow);
  World world(plan);
  oracle.acknowledged(0, world.transact(0));
  world.transact(0);
  oracle.acknowledged(0, world.transact(0));
  const auto violations = oracle.verify(world.dump());
  REQUIRE_FALSE(violations.empty());
  CHECK(violations.front() == "Thread 0 acknowledged 3 where 2 was next.");
}

TEST_CASE("As many survivors as can be under way are none too many") {
  const Plan plan = plan_for(WorkloadKind::sps);
  Oracle oracle(plan, kWindow);
  World world(plan);
  for (unsigned i = 0; i < kWindow; ++i) world.transact(0);
  CHECK(oracle.verify(world.dump()).empty());
  CHECK(oracle.unacknowledged_survivors() == kWindow);
}

TEST_CASE("A survivor that its journal does not remember is found") {
  const Plan plan = plan_for(WorkloadKind::sps);
  Oracle oracle(plan, kWindow);
  World world(plan);
  for (unsigned i = 0; i < 3; ++i) world.transact(0);
  Dump dump = world.dump();
  dump.journals[0].outcomes.erase(dump.journals[0].outcomes.begin() + 1);
  const auto violations = oracle.verify(dump);
  REQUIRE_FALSE(violations.empty());
  CHECK(violations.front().find("its journal lacks 2") != std::string::npos);
}

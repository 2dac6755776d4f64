#include "tools/crash/subject.h"

#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>

#include "workloads/entry.h"

namespace sp3::tools::crash {

namespace {

using workloads::Entry;
using workloads::mix64;

// A third of the keys is spread evenly; a third agrees in the bits of two directories, and the last
// third also in those of a small one below, so that a table of fifty keys has all kinds of
// directories.
struct UnevenHash {
  std::uint64_t operator()(std::uint64_t key) const noexcept {
    using Table = HashTable<std::uint64_t, std::uint64_t>;
    constexpr unsigned kTwoLevels = 2 * Table::cell_bits;
    constexpr unsigned kAlike[] = {0, kTwoLevels, kTwoLevels + Table::small_cell_bits};
    return mix_hash(key) >> kAlike[key % std::size(kAlike)];
  }
};

struct StoredOutcome {
  std::uint64_t sequence, a, b;
};

struct StoredJournal {
  std::uint64_t sequence;
  std::array<StoredOutcome, kJournalLength> outcomes;
};

// The journals and what all workloads do with them.
class Journals {
 public:
  void create(Session& session, unsigned threads) {
    session.run([&](Transaction& tx) {
      tx.set_root("journals", Array<StoredJournal>::create(tx, threads).header());
    });
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      journals_ = Array<StoredJournal>::open(tx, tx.root<Array<StoredJournal>::Header>("journals"));
    });
  }

  void record(Transaction& tx, unsigned thread, const Outcome& outcome) const {
    StoredJournal& journal = tx.write(journals_.at(tx, thread));
    if (journal.sequence + 1 != outcome.sequence) {
      throw Violation{fmt::format("Thread {} runs {}, its journal is at {}.", thread,
                                  outcome.sequence, journal.sequence)};
    }
    journal.sequence = outcome.sequence;
    journal.outcomes[outcome.sequence % kJournalLength] = {outcome.sequence, outcome.a, outcome.b};
  }

  void dump(Transaction& tx, Dump& dump) const {
    journals_.for_each(tx, [&](const StoredJournal& stored) {
      Journal& journal = dump.journals.emplace_back();
      journal.sequence = stored.sequence;
      for (const StoredOutcome& o : stored.outcomes) {
        if (o.sequence != 0) journal.outcomes.push_back({o.sequence, o.a, o.b});
      }
    });
  }

 private:
  Array<StoredJournal> journals_;
};

void add_violation(Dump& dump, std::string violation) {
  if (!violation.empty()) dump.violations.push_back(std::move(violation));
}

// A versioned slot of 128 bytes in which a mixture of two states is recognised.
struct StoredCell {
  std::uint64_t version, writer, content;
  std::array<std::uint64_t, 13> check;

  static StoredCell of(const Cell& cell) {
    StoredCell stored{cell.version, cell.writer, cell.content, {}};
    for (std::size_t i = 0; i < stored.check.size(); ++i) stored.check[i] = stored.expected(i);
    return stored;
  }
  [[nodiscard]] bool intact() const {
    for (std::size_t i = 0; i < check.size(); ++i) {
      if (check[i] != expected(i)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t expected(std::size_t i) const {
    return mix64(version + mix64(writer + mix64(content + i)));
  }
};

class Cells {
 public:
  void create(Session& session, const Plan& plan) {
    const std::uint64_t entries = plan.entries;
    session.run([&](Transaction& tx) {
      cells_ = Array<StoredCell>::reserve(tx, entries);
      tx.set_root("cells", cells_.header());
    });
    constexpr std::uint64_t kBatch = 64;
    for (std::uint64_t next = 0; next < entries; next += kBatch) {
      session.run([&](Transaction& tx) {
        for (std::uint64_t i = next; i < std::min(entries, next + kBatch); ++i) {
          cells_.fill(tx, 1, StoredCell::of({0, 0, plan.first_content(i)}));
        }
      });
    }
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      cells_ = Array<StoredCell>::open(tx, tx.root<Array<StoredCell>::Header>("cells"));
    });
  }

  [[nodiscard]] Cell get(Transaction& tx, std::uint64_t index) const {
    const StoredCell& stored = tx.read(cells_.at(tx, index));
    if (!stored.intact()) throw Violation{fmt::format("Cell {} is torn.", index)};
    return {stored.version, stored.writer, stored.content};
  }

  [[nodiscard]] Cell get_for_update(Transaction& tx, std::uint64_t index) const {
    return get(tx, index);
  }

  void set(Transaction& tx, std::uint64_t index, const Cell& cell) const {
    tx.write(cells_.at(tx, index)) = StoredCell::of(cell);
  }

  void dump(Transaction& tx, Dump& dump) const {
    add_violation(dump, cells_.check_invariants(tx));
    for (std::uint64_t i = 0; i < cells_.size(tx); ++i) dump.cells.push_back(get(tx, i));
  }

 private:
  Array<StoredCell> cells_;
};

// The same cells side by side in one ranged object, from an odd place on: a cell may lie in two
// chunks, and a chunk holds parts of three cells.
class RangedCells {
 public:
  void create(Session& session, const Plan& plan) {
    const std::uint64_t entries = plan.entries;
    session.run([&](Transaction& tx) {
      object_ = RangedObject::create(tx, place_of(entries), kChunk);
      tx.set_root("cells", object_.header());
    });
    constexpr std::uint64_t kBatch = 64;
    for (std::uint64_t next = 0; next < entries; next += kBatch) {
      session.run([&](Transaction& tx) {
        for (std::uint64_t i = next; i < std::min(entries, next + kBatch); ++i) {
          set(tx, i, {0, 0, plan.first_content(i)});
        }
      });
    }
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      object_ = RangedObject::open(tx, tx.root<RangedObject::Header>("cells"));
    });
  }

  [[nodiscard]] Cell get(Transaction& tx, std::uint64_t index) const {
    StoredCell stored;
    object_.read(tx, place_of(index), std::as_writable_bytes(std::span(&stored, 1)));
    if (!stored.intact()) throw Violation{fmt::format("Cell {} is torn.", index)};
    return {stored.version, stored.writer, stored.content};
  }
  [[nodiscard]] Cell get_for_update(Transaction& tx, std::uint64_t index) const {
    if (index % 2 == 0) object_.lock(tx, place_of(index), place_of(index + 1));
    return get(tx, index);
  }

  void set(Transaction& tx, std::uint64_t index, const Cell& cell) const {
    const StoredCell stored = StoredCell::of(cell);
    object_.write(tx, place_of(index), std::as_bytes(std::span(&stored, 1)));
  }

  void dump(Transaction& tx, Dump& dump) const {
    add_violation(dump, object_.check_invariants(tx));
    const std::uint64_t cells = (object_.size(tx) - place_of(0)) / sizeof(StoredCell);
    for (std::uint64_t i = 0; i < cells; ++i) dump.cells.push_back(get(tx, i));
  }

 private:
  static constexpr std::uint32_t kChunk = 256;
  static constexpr std::uint64_t place_of(std::uint64_t index) {
    return 40 + index * sizeof(StoredCell);
  }

  RangedObject object_;
};

// What every subject does, around what its workload `Self` does.
template <class Self>
class SubjectOf : public Subject {
 public:
  explicit SubjectOf(const Plan& plan) : plan_(plan) {}

  void create(Session& session) final {
    journals_.create(session, plan_.threads);
    self().create_data(session);
  }

  void attach(Session& session) final {
    journals_.attach(session);
    self().attach_data(session);
  }

  Outcome execute(Transaction& tx, unsigned thread, std::uint64_t sequence) const final {
    Outcome outcome = self().act(tx, plan_.step(thread, sequence), make_tag(thread, sequence));
    outcome.sequence = sequence;
    journals_.record(tx, thread, outcome);
    return outcome;
  }

  Dump dump(Session& session) const final {
    return session.run([&](Transaction& tx) {
      Dump dump;
      try {
        journals_.dump(tx, dump);
        self().dump_data(tx, dump);
      } catch (const Violation& violation) {
        add_violation(dump, violation.what);
      }
      return dump;
    });
  }

 protected:
  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }

  Plan plan_;
  Journals journals_;
};

// Cells that are swapped.
template <class CellStore>
class SwapSubject final : public SubjectOf<SwapSubject<CellStore>> {
 public:
  using SubjectOf<SwapSubject>::SubjectOf;

  void create_data(Session& session) { cells_.create(session, this->plan()); }
  void attach_data(Session& session) { cells_.attach(session); }

  Outcome act(Transaction& tx, const Step& step, Tag tag) const {
    const Cell first = cells_.get_for_update(tx, step.first);
    const Cell second = cells_.get_for_update(tx, step.second);
    cells_.set(tx, step.first, {first.version + 1, tag, second.content});
    cells_.set(tx, step.second, {second.version + 1, tag, first.content});
    return {0, first.version + 1, second.version + 1};
  }

  // A whole consistent reading: the contents must be a permutation at every instant.
  Observation observe(Transaction& tx, std::uint64_t random) const override {
    std::vector<bool> seen(this->plan().entries, false);
    Observation observation{false, random % this->plan().entries, 0};
    for (std::uint64_t i = 0; i < this->plan().entries; ++i) {
      const Cell cell = cells_.get(tx, i);
      if (cell.content >= seen.size() || seen[cell.content]) {
        throw Violation{fmt::format("A reader met {} twice in the array.", cell.content)};
      }
      seen[cell.content] = true;
      if (i == observation.cell) observation.value = cell.version;
    }
    return observation;
  }

  void dump_data(Transaction& tx, Dump& dump) const { cells_.dump(tx, dump); }

 private:
  CellStore cells_;
};

// Accounts between which money moves, if the payer has it.
class BankSubject final : public SubjectOf<BankSubject> {
 public:
  using SubjectOf::SubjectOf;

  void create_data(Session& session) { cells_.create(session, plan()); }
  void attach_data(Session& session) { cells_.attach(session); }

  Outcome act(Transaction& tx, const Step& step, Tag tag) const {
    const Cell payer = cells_.get(tx, step.first);
    if (payer.content < step.amount) return {0, payer.version, kNothing};
    const Cell payee = cells_.get(tx, step.second);
    cells_.set(tx, step.first, {payer.version + 1, tag, payer.content - step.amount});
    cells_.set(tx, step.second, {payee.version + 1, tag, payee.content + step.amount});
    return {0, payer.version + 1, payee.version + 1};
  }

  // An audit of all accounts: there is as much money as at first at every instant.
  Observation observe(Transaction& tx, std::uint64_t random) const override {
    Observation observation{false, random % plan().entries, 0};
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < plan().entries; ++i) {
      const Cell account = cells_.get(tx, i);
      sum += account.content;
      if (i == observation.cell) observation.value = account.version;
    }
    if (sum != plan().entries * kFirstBalance) {
      throw Violation{fmt::format("An audit of {} accounts found {}, wanted {}.", plan().entries,
                                  sum, plan().entries * kFirstBalance)};
    }
    return observation;
  }

  void dump_data(Transaction& tx, Dump& dump) const { cells_.dump(tx, dump); }

 private:
  Cells cells_;
};

using StoredValue = Entry<128>;

class QueueSubject final : public SubjectOf<QueueSubject> {
 public:
  using SubjectOf::SubjectOf;

  void create_data(Session& session) {
    session.run(
        [](Transaction& tx) { tx.set_root("queue", Queue<StoredValue>::create(tx).header()); });
  }
  void attach_data(Session& session) {
    session.run([&](Transaction& tx) {
      queue_ = Queue<StoredValue>::open(tx, tx.root<Queue<StoredValue>::Header>("queue"));
    });
  }

  Outcome act(Transaction& tx, const Step& step, Tag tag) const {
    if (step.action == Action::enqueue) {
      queue_.push(tx, StoredValue::of(tag));
      return {};
    }
    const auto value = queue_.pop(tx);
    return {0, value ? tag_of(*value) : kNothing, 0};
  }

  Observation observe(Transaction& tx, std::uint64_t /*random*/) const override {
    const auto value = queue_.front(tx);
    return {true, 0, value ? tag_of(*value) : kNothing};
  }

  void dump_data(Transaction& tx, Dump& dump) const {
    add_violation(dump, queue_.check_invariants(tx));
    queue_.for_each(tx, [&](const StoredValue& value) { dump.queue.push_back(tag_of(value)); });
  }

 private:
  static Tag tag_of(const StoredValue& value) {
    if (!value.intact()) throw Violation{fmt::format("Queue value {} is torn.", value.tag())};
    return value.tag();
  }

  Queue<StoredValue> queue_;
};

template <class Map>
class MapSubject final : public SubjectOf<MapSubject<Map>> {
 public:
  using SubjectOf<MapSubject<Map>>::SubjectOf;

  void create_data(Session& session) {
    cells_.create(session, this->plan());
    session.run([](Transaction& tx) { tx.set_root("map", Map::create(tx).header()); });
  }
  void attach_data(Session& session) {
    cells_.attach(session);
    session.run(
        [&](Transaction& tx) { map_ = Map::open(tx, tx.root<typename Map::Header>("map")); });
  }

  Outcome act(Transaction& tx, const Step& step, Tag tag) const {
    const std::uint64_t key = step.first;
    const Cell cell = cells_.get(tx, key);
    if (step.action == Action::search) {
      compare(tx, key, cell);
      return {0, cell.version, 0};
    }
    const bool inserting = step.action == Action::insert;
    const bool was_present =
        inserting ? !map_.insert_or_assign(tx, key, StoredValue::of(tag)) : map_.erase(tx, key);
    if (was_present != (cell.content != 0)) {
      throw Violation{fmt::format("Key {} {} in the map, its cell disagrees.", key,
                                  was_present ? "is" : "is not")};
    }
    cells_.set(tx, key, {cell.version + 1, tag, inserting ? 1U : 0U});
    return {0, cell.version + 1, 0};
  }

  Observation observe(Transaction& tx, std::uint64_t random) const override {
    const std::uint64_t key = random % this->plan().entries;
    const Cell cell = cells_.get(tx, key);
    compare(tx, key, cell);
    return {false, key, cell.version};
  }

  void dump_data(Transaction& tx, Dump& dump) const {
    cells_.dump(tx, dump);
    add_violation(dump, map_.check_invariants(tx));
    map_.for_each(tx, [&](std::uint64_t key, const StoredValue& value) {
      if (!value.intact()) throw Violation{fmt::format("The value of key {} is torn.", key)};
      dump.items.push_back({key, value.tag()});
    });
  }

 private:
  void compare(Transaction& tx, std::uint64_t key, const Cell& cell) const {
    const StoredValue* value = map_.lookup(tx, key);
    const bool agrees = value == nullptr
                            ? cell.content == 0
                            : cell.content != 0 && value->intact() && value->tag() == cell.writer;
    if (!agrees) throw Violation{fmt::format("A reader met key {} and its cell at odds.", key)};
  }

  Cells cells_;
  Map map_;
};

}  // namespace

std::unique_ptr<Subject> make_subject(const Plan& plan) {
  switch (plan.workload) {
    case WorkloadKind::sps:
      return std::make_unique<SwapSubject<Cells>>(plan);
    case WorkloadKind::queue:
      return std::make_unique<QueueSubject>(plan);
    case WorkloadKind::hashtable:
      return std::make_unique<MapSubject<HashTable<std::uint64_t, StoredValue, UnevenHash>>>(plan);
    case WorkloadKind::rbtree:
      return std::make_unique<MapSubject<RbTree<std::uint64_t, StoredValue>>>(plan);
    case WorkloadKind::bptree:
      return std::make_unique<MapSubject<BpTree<std::uint64_t, StoredValue>>>(plan);
    case WorkloadKind::ranges:
      return std::make_unique<SwapSubject<RangedCells>>(plan);
    case WorkloadKind::bank:
      return std::make_unique<BankSubject>(plan);
    case WorkloadKind::tpcc:
      break;
  }
  throw std::logic_error("make_subject: no such workload");
}

}  // namespace sp3::tools::crash

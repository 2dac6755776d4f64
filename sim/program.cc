#include "sim/program.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/atomic.h"
#include "emu/spin.h"
#include "emu/spin_lock.h"
#include "emu/threads.h"
#include "sim/objects.h"

namespace sp3::sim {

namespace {

constexpr std::uint32_t kDawdling = 20;  // turns of a waiting loop

// Returns where the box's new cell is.
std::uint64_t fill(Transaction& t, Box& box, Value value) {
  box.content = t.make<Small>(cell_of<Small>(value)).offset();
  box.value = value;
  box.twin = ~value;
  return box.content;
}

}  // namespace

class Program::Worker {
 public:
  Worker(Program& program, Pool& pool, int number)
      : program_(program),
        case_(program.case_),
        ledger_(program.ledger_),
        pool_(pool),
        number_(number),
        choose_(program.case_.seed * 64 + static_cast<std::uint64_t>(number) + 1),
        session_(pool.session()) {}

  // One transaction and what comes behind it, or the end; whether there is more to do.
  bool step() {
    try {
      if (done_ == case_.transactions) {
        settle(0);
        session_.close();
        return false;
      }
      ++done_;
      transaction();
      between();
      return true;
    } catch (const Error& error) {
      program_.expect_failure(error);
      go_on_after_failure();
      return false;
    }
  }

 private:
  enum class Action : std::uint8_t { read, update, rewrite, replace };
  struct Part {
    std::uint32_t cell;
    Action action;
    std::uint64_t kind;  // of a replacement
  };

  void transaction() {
    parts_.clear();
    const bool only_reads = choose_.one_in(5);
    const std::uint64_t count = 1 + choose_.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto cell = static_cast<std::uint32_t>(choose_.below(kCells));
      const bool used = std::any_of(parts_.begin(), parts_.end(),
                                    [&](const Part& part) { return part.cell == cell; });
      if (used) continue;
      constexpr Action kActions[] = {Action::read,    Action::read,   Action::update,
                                     Action::update,  Action::update, Action::rewrite,
                                     Action::rewrite, Action::replace};
      const Action chosen = only_reads ? Action::read : kActions[choose_.below(8)];
      const Action action = case_.churn && chosen != Action::read ? Action::replace : chosen;
      parts_.push_back({cell, action, choose_.below(kKinds)});
      if (case_.churn) parts_.back().kind = choose_.below(kAllKinds);
      if (case_.bulky && cell < kBulkyCells) parts_.back().kind = kBulk;
    }
    boxes_ = 0;
    if (case_.boxes && choose_.one_in(2)) {
      parts_.clear();
      boxes_ = static_cast<std::uint32_t>(1 + choose_.below((1U << kBoxes) - 1));
    }
    const bool give_up = choose_.one_in(10);
    const Ledger::Number tx = ledger_.begin(number_);
    order_with_others();
    const auto body = [&](Transaction& t) {
      // Weak memory orders attempts by nothing but what they do.
      ledger_.attempt(tx, !case_.weak_memory);
      work(t, tx);
      if (give_up) t.cancel();
    };
    try {
      if (case_.async && choose_.one_in(2)) {
        Ticket ticket = session_.run_async(body);
        order_with_others();
        ledger_.publish(tx);
        waiting_.emplace_back(tx, std::move(ticket));
      } else {
        session_.run(body);
        order_with_others();
        ledger_.acknowledge(tx);
      }
      if (is_where_one_was_read_) {
        program_.fault_ = "an object was made in the place of one that its maker had read";
      }
    } catch (const Cancelled&) {
      ledger_.give_up(tx);
    } catch (const Error& error) {
      if (!case_.tight || error.code() != ErrorCode::pool_full) throw;
      ledger_.give_up(tx);
    }
  }

  void work(Transaction& t, Ledger::Number tx) {
    const auto root = t.root<Directory>(kRootName);
    const Directory& directory = t.read(root);
    ledger_.read(tx, kDirectory, directory.value);
    watched_.clear();
    watch(directory, directory.value);
    bool moved = false;  // the directory has its new value
    for (const Part& part : parts_) {
      with_kind(directory.kinds[part.cell], [&]<class T>() {
        const auto at = Ptr<T>::from_offset(directory.cells[part.cell]);
        // What a blind write replaces is known from the private copy, which is the first and only
        // sight of the object.
        const bool blind = case_.blind && part.action != Action::read &&
                           part.action != Action::replace && part.cell % 2 == 0;
        const T& found = blind ? t.write(at) : t.read(at);
        const Value old = found.value;
        ledger_.read(tx, part.cell, old);
        if (!is_whole(found)) program_.fault_ = "an object is not whole to its reader";
        if (!blind) watch(found, old);
        if (case_.handles && !agrees(t, case_.structure, part.cell, old, handle_)) {
          program_.fault_ = "a view does not show its reader what the cell says";
        }
        if (part.action == Action::read || !may_write(t, case_.structure, part.cell)) return;
        if (part.action == Action::replace && !std::exchange(moved, true)) {
          const Value value = ledger_.next_value(tx);
          ledger_.write(tx, kDirectory, directory.value, value);
          t.write(root).value = value;
        }
        const Value value = ledger_.next_value(tx);
        ledger_.write(tx, part.cell, old, value);
        if (part.action == Action::replace) {
          t.destroy(at);
          make(t, t.write(root), part, value);
        } else if (part.action == Action::rewrite) {
          renew(t, at, part.cell, value);
        } else {
          update(t.write(at), value);
        }
        if (!case_.handles) handle_.reset();
        write_structure(t, case_.structure, part.cell, value, handle_);
      });
    }
    read_by_kept_pointer(t);
    for (std::uint32_t i = 0; i < kBoxes; ++i) {
      if ((boxes_ >> i & 1) != 0) refill(t, tx, directory, i);
    }
    dawdle();
    check_watched();
  }

  // Whoever begins now has heard of all who have been told that they committed.
  static void order_with_others() { base::atomic_fence(std::memory_order_seq_cst); }

  void dawdle() const {
    for (emu::Spin spin; case_.dawdles && spin.rounds() < kDawdling;) spin.pause();
  }

  // What a pointer from earlier on leads to, if it still is one.
  void read_by_kept_pointer(Transaction& t) {
    looked_at_ = 0;
    is_where_one_was_read_ = false;
    if (boxes_ == 0 || kept_ == 0) return;
    try {
      (void)t.read(Ptr<Small>::from_offset(kept_));
      looked_at_ = kept_;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::destroyed_object) throw;
    }
  }

  // A new cell for a box.
  void refill(Transaction& t, Ledger::Number tx, const Directory& directory, std::uint32_t number) {
    const auto at = Ptr<Box>::from_offset(directory.boxes[number]);
    const Box& box = t.read(at);
    ledger_.read(tx, kFirstBox + number, box.value);
    watch(box, box.value);
    const Value value = ledger_.next_value(tx);
    ledger_.write(tx, kFirstBox + number, box.value, value);
    t.destroy(Ptr<Small>::from_offset(box.content));
    const std::uint64_t content = fill(t, t.write(at), value);
    is_where_one_was_read_ = is_where_one_was_read_ || content == looked_at_;
    if (case_.keeps) kept_ = content;
  }

  // What a body was given to read stays as it is until the body returns.
  template <class T>
  void watch(const T& object, Value value) {
    watched_.emplace_back(&object.value, value);
  }
  void check_watched() {
    for (const auto& [at, value] : watched_) {
      if (*at != value) program_.fault_ = "a version changed under its reader";
    }
  }

  // Some cells by a look at what they hold, some without.
  template <class T>
  static void renew(Transaction& t, Ptr<T> at, std::uint32_t cell, Value value) {
    if (cell % 2 == 0) return rewrite(t.write(at), value);
    t.assign(at, cell_of<T>(value));
  }

  static void make(Transaction& t, Directory& directory, const Part& part, Value value) {
    with_kind(part.kind, [&]<class T>() {
      directory.cells[part.cell] = t.make<T>(cell_of<T>(value)).offset();
    });
    directory.kinds[part.cell] = part.kind;
  }

  void between() {
    if (case_.checkpoints && choose_.one_in(4)) pool_.checkpoint();
    if (choose_.one_in(4)) settle(choose_.below(3));
    if (choose_.one_in(8)) {
      session_.flush();
      acknowledge_all();
    }
    if (case_.reopens && choose_.one_in(3)) {
      session_.close();
      acknowledge_all();
      // Another may have the pool to itself meanwhile, or but for a checkpoint.
      dawdle();
      if (case_.dawdles && case_.checkpoints) pool_.checkpoint();
      session_ = pool_.session();
    }
  }

  // Tickets of what was durable in time may still say so. Nothing else is promised any more.
  void go_on_after_failure() {
    while (!waiting_.empty()) succeeds([&] { wait_for_first(); });
    if (succeeds([&] { pool_.checkpoint(); }) || succeeds([&] { (void)pool_.session(); }) ||
        (session_.is_open() && succeeds([&] { session_.run([](Transaction&) {}); }))) {
      program_.fault_ = "a pool whose disk failed goes on as if nothing had happened";
    }
  }

  template <class Call>
  bool succeeds(Call&& call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      program_.expect_failure(error);
      return false;
    }
  }

  // Waits until at most `left` transactions are in flight.
  void settle(std::size_t left) {
    while (waiting_.size() > left) wait_for_first();
  }

  void wait_for_first() {
    auto [tx, ticket] = std::move(waiting_.front());
    waiting_.pop_front();
    ticket.wait();
    ledger_.acknowledge(tx);
  }

  void acknowledge_all() {
    for (const auto& [tx, ticket] : waiting_) ledger_.acknowledge(tx);
    waiting_.clear();
  }

  Program& program_;
  const Case& case_;
  Ledger& ledger_;
  Pool& pool_;
  const int number_;
  emu::sim::Random choose_;
  Session session_;
  int done_ = 0;
  std::optional<SimRanged> handle_;
  std::vector<Part> parts_;
  std::uint32_t boxes_ = 0;             // a bit for each box to be refilled
  std::uint64_t kept_ = 0;              // where the cell was that this core made last for a box
  std::uint64_t looked_at_ = 0;         // kept_, if this attempt has read it
  bool is_where_one_was_read_ = false;  // by this attempt a cell was made there
  std::vector<std::pair<const Value*, Value>> watched_;  // of this attempt
  std::deque<std::pair<Ledger::Number, Ticket>> waiting_;
};

// Workers that any core may take for a step. What orders one core's step behind another's is no more
// than acquire and release.
class Program::Rack {
 public:
  Rack(Program& program, Pool& pool)
      : choose_seed_(program.case_.seed * 64 + 32),
        places_(static_cast<std::size_t>(program.case_.moving_sessions)) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      places_[i].worker.emplace(program, pool, static_cast<int>(i));
    }
  }

  // Of one core: until no worker has anything left to do.
  void work(int core) {
    emu::sim::Random choose(choose_seed_ + static_cast<std::uint64_t>(core));
    emu::Spin spin;
    while (finished_.load(std::memory_order_acquire) < places_.size()) {
      Place& place = places_[choose.below(places_.size())];
      if (!place.lock.try_lock()) {
        spin.pause();
      } else if (place.worker->step()) {
        place.lock.unlock();
      } else {
        finished_.fetch_add(1, std::memory_order_release);
      }
    }
  }

 private:
  struct Place {
    emu::SpinLock lock;  // held for good, of one that has finished
    std::optional<Worker> worker;
  };

  const std::uint64_t choose_seed_;
  std::vector<Place> places_;
  base::Atomic<std::size_t> finished_{0};
};

void Program::main() {
  try {
    run();
  } catch (const Error& error) {
    expect_failure(error);
  }
}

void Program::run() {
  Pool pool = found_ ? Pool::open(kPoolName, case_.options)
                     : Pool::create(kPoolName, case_.pool_bytes(), case_.options);
  opened_ = true;
  if (found_) check_found(pool);
  if (!found_ || !found_->made) set_up(pool);
  if (case_.moving_sessions == 0) {
    run_cores([&](int core) { work(pool, core); });
  } else {
    work_by_turns(pool);
  }
  const bool poisoned = failed_;
  if (!poisoned) check_end(pool);
  pool.close();
  if (poisoned) fault_ = "a pool whose disk failed was closed as if nothing had happened";
}

void Program::run_cores(const std::function<void(int)>& body) const {
  std::vector<emu::Thread> threads;
  threads.reserve(static_cast<std::size_t>(case_.cores));
  for (int i = 0; i < case_.cores; ++i) {
    threads.emplace_back([&body, i] { body(i); });
  }
  for (emu::Thread& thread : threads) thread.join();
}

void Program::work_by_turns(Pool& pool) {
  std::optional<Rack> rack;
  try {
    rack.emplace(*this, pool);
  } catch (const Error& error) {
    return expect_failure(error);
  }
  run_cores([&](int core) { rack->work(core); });
}

void Program::work(Pool& pool, int number) {
  emu::Spin spin;
  const auto others = static_cast<std::size_t>(number * case_.transactions / 2);
  while (case_.late && !failed_ && ledger_.size() < others) spin.pause();
  try {
    Worker worker(*this, pool, number);
    while (worker.step()) {
    }
  } catch (const Error& error) {
    expect_failure(error);
  }
}

void Program::expect_failure(const Error& error) {
  const bool at_open = !opened_ && error.code() == ErrorCode::io_error;
  if (case_.failing_io == 0 || (error.code() != ErrorCode::outcome_unknown && !at_open)) throw;
  failed_ = true;
  if (!opened_ && !found_ && emu::sim::machine().files().exists(kPoolName)) {
    fault_ = "a pool that could not be created is there";
  }
}

void Program::set_up(Pool& pool) {
  Session session = pool.session();
  Values values{};
  for (std::uint32_t i = 0; i < kObjects; ++i) values[i] = i + 1;
  ledger_.start_from(values, false);
  session.run([&](Transaction& t) {
    Directory directory{};
    for (std::uint32_t i = 0; i < kCells; ++i) {
      directory.kinds[i] = case_.bulky && i < kBulkyCells ? kBulk : i % kKinds;
      with_kind(directory.kinds[i],
                [&]<class T>() { directory.cells[i] = t.make<T>(cell_of<T>(values[i])).offset(); });
    }
    for (std::uint32_t i = 0; i < kBoxes; ++i) {
      Box box{};
      fill(t, box, values[kFirstBox + i]);
      directory.boxes[i] = t.make<Box>(box).offset();
    }
    directory.value = values[kDirectory];
    t.set_root(kRootName, t.make<Directory>(directory));
    make_structure(t, case_.structure);
    for (std::uint32_t i = 0; i < kCells; ++i) {
      std::optional<SimRanged> handle;
      if (case_.structure != StructureKind::queue)
        write_structure(t, case_.structure, i, values[i], handle);
    }
  });
  ledger_.start_from(values, true);
}

std::string read_pool(Pool& pool, StructureKind structure, State& state) {
  Session session = pool.session();
  return session.run([&](Transaction& t) {
    state = {};
    const auto root = t.root<Directory>(kRootName);
    if (!root) return std::string();
    const Directory& directory = t.read(root);
    state.made = true;
    state.values[kDirectory] = directory.value;
    for (std::uint32_t i = 0; i < kCells; ++i) {
      with_kind(directory.kinds[i], [&]<class T>() {
        state.values[i] = t.read(Ptr<T>::from_offset(directory.cells[i])).value;
      });
    }
    for (std::uint32_t i = 0; i < kBoxes; ++i) {
      state.values[kFirstBox + i] = t.read(Ptr<Box>::from_offset(directory.boxes[i])).value;
    }
    return read_structure(t, structure, state.contents);
  });
}

// Opened through the API the pool shows what recovery alone left.
void Program::check_found(Pool& pool) {
  State state;
  fault_ = read_pool(pool, case_.structure, state);
  if (fault_.empty() && (state.made != found_->made || state.values != found_->values ||
                         state.contents != found_->contents)) {
    fault_ = "the pool opens with another state than recovery left";
  }
  if (state.made) ledger_.start_from(state.values, true);
}

void Program::check_end(Pool& pool) {
  State state;
  std::string fault = read_pool(pool, case_.structure, state);
  if (fault.empty()) fault = ledger_.find_fault(state);
  if (fault.empty()) {
    const Contents start = found_ ? found_->contents : Contents();
    fault = find_difference(case_.structure, state, start, ledger_);
  }
  if (!fault.empty() && fault_.empty()) fault_ = "without a crash: " + fault;
}

}  // namespace sp3::sim

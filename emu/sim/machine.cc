// Scheduling.
//
//   timed     The running core has the smallest clock, so what it does happens before anything the
//             others still have to do: execution order is time order. It goes on, without looking
//             at the others, until its clock passes the next smallest (the horizon).
//   explored  One clock for all; the order is the scheduler's to choose. A core that waits for
//             another (pause) gives way: under priorities it drops below all others, or it would
//             wait for ever. A sleeper whose time has not come may be woken early by letting time
//             pass, rarely, so that background work meets every state of the foreground.
#include "emu/sim/machine.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "base/assert.h"
#include "emu/line.h"
#include "emu/sim/fibers.h"
#include "emu/sim/file.h"
#include "emu/sim/weak_memory.h"
#include "emu/step.h"

namespace sp3::emu::sim {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kEarlyWake = 512;     // one choice in so many wakes a sleeper
constexpr std::uint64_t kSkewNs = 5000;       // clocks that disagree do so by up to this
constexpr std::uint64_t kPicoseconds = 1000;  // in a nanosecond
// The entries of objects that share so many bytes of the pool share a cache line: four of 16 bytes,
// of the smallest objects that workloads have.
constexpr unsigned kEntryLineShift = 9;
// No object is smaller, nor takes more lines than it has such pieces.
constexpr unsigned kVersionLineShift = 4;

}  // namespace

Machine::Machine(const Config& config)
    : config_(config),
      random_(config.seed),
      switch_chance_(std::uint64_t{256} >> (2 * random_.below(4))),
      files_(std::make_unique<FileSystem>(*this)),
      lowest_priority_(std::uint64_t{1} << 32) {
  for (std::uint32_t i = 0; i < config_.priority_changes; ++i) {
    change_points_.push_back(random_.below(config_.expected_events));
  }
  std::sort(change_points_.rbegin(), change_points_.rend());
  if (config_.failing_io != 0) fail_io(EIO, config_.failing_io);
  if (config_.weak_memory) weak_memory_ = std::make_unique<WeakMemory>(*this, config_.seed);
  SP3_CHECK(!is_timed() || weak_memory_ == nullptr);
  const Costs& costs = config_.costs;
  step_costs_.fill(costs.step);
  const auto set = [this](Step step, std::uint32_t cost) {
    step_costs_[static_cast<std::size_t>(step)] = cost;
  };
  if (!is_timed()) return;  // when every schedule is tried, time is only there to pass
  set(Step::epoch_pin, costs.begin);
  set(Step::entry_read, costs.read);
  set(Step::commit_publish, costs.write);
  set(Step::commit_stamp, costs.commit);
  set(Step::commit_seal, costs.log);
  caches_ = std::make_unique<Caches>(costs);
}

Machine::~Machine() = default;

// Inline there is one core, which knows all it did.
base::MemoryModel* Machine::memory_model() const noexcept {
  return fibers_ == nullptr ? nullptr : weak_memory_.get();
}

void Machine::synchronise(const void* on) noexcept {
  if (memory_model() != nullptr) weak_memory_->synchronise(on);
}

void Machine::see_fenced() noexcept {
  if (memory_model() != nullptr) weak_memory_->see_fenced();
}

std::uint64_t Machine::stale_loads() const noexcept {
  return weak_memory_ == nullptr ? 0 : weak_memory_->stale_loads();
}

std::string Machine::race() const {
  return weak_memory_ == nullptr ? std::string() : weak_memory_->race();
}

void Machine::fail_io(int error, std::uint64_t countdown) noexcept {
  io_error_ = error;
  io_countdown_ = countdown;
}

int Machine::io_error() noexcept {
  if (io_error_ == 0) return 0;
  if (io_countdown_ > 0) --io_countdown_;
  if (io_countdown_ > 0) return 0;
  return config_.fails_once ? std::exchange(io_error_, 0) : io_error_;
}

std::uint64_t Machine::now() const noexcept { return time() / kPicoseconds; }

// Reading the counter takes time, but is no event: what it says is the core's own.
std::uint64_t Machine::ticks() noexcept {
  if (is_timed() && !cores_.empty()) cores_[core_].clock += config_.costs.clock;
  // Never zero: a counter that has just started is nobody's.
  const std::uint64_t skew = cores_.empty() || config_.clocks_agree ? 0 : cores_[core_].skew;
  return now() + skew + 1;
}

void Machine::step(std::uint8_t number) noexcept {
  event(Event::step, number, step_costs_[number]);
}

void Machine::event(Event event, std::uint64_t what, std::uint64_t cost) noexcept {
  ++events_;
  trace_ = (trace_ ^ (what + static_cast<std::uint64_t>(event) * 0x9E3779B97F4A7C15ULL + core_)) *
           0x100000001b3ULL;
  trace_ ^= trace_ >> 29;
  if (watcher_ != nullptr) watcher_->before(*this, event, what);
  if (cores_.empty()) {
    clock_ += cost;
    return;
  }
  if (is_timed()) {
    cores_[core_].clock += cost;
  } else {
    clock_ += cost;
  }
  reschedule();
}

// A line's name begins with its kind.
static_assert(static_cast<unsigned>(Line::word_clock) < Caches::kSpaces);

void Machine::touch(Line line, std::uint64_t which, Access access, std::uint64_t bytes) noexcept {
  const std::uint64_t cost =
      caches_ == nullptr ? config_.costs.step : access_cost(line, which, access, bytes);
  event(Event::touch, pack_touch({.line = line, .which = which, .access = access}), cost);
}

void Machine::prefetch(Line line, std::uint64_t which, bool as_writer,
                       std::uint64_t bytes) noexcept {
  if (caches_ == nullptr) return;
  Pipeline& core = pipeline();
  const std::uint64_t start = line == Line::version ? std::max(time(), core.pointer_at()) : time();
  const std::uint64_t there = start + lines_delay(line, which, as_writer, bytes, start);
  if (line == Line::entry) core.pointer_known_at(there);
}

void Machine::fence(std::uint64_t cost) noexcept {
  if (caches_ != nullptr) cost += std::max(time(), pipeline().all_done()) - time();
  event(Event::fence, 0, cost);
}

std::uint64_t Machine::access_cost(Line line, std::uint64_t which, Access access,
                                   std::uint64_t bytes) noexcept {
  Pipeline& core = pipeline();
  const std::uint64_t now = time();
  const auto there = [&](bool as_writer, std::uint64_t start) {
    return start + lines_delay(line, which, as_writer, bytes, start);
  };
  switch (access) {
    case Access::load:
      return std::max(there(false, now), core.checks_done()) - now;
    case Access::follow:
      return std::max(there(false, std::max(now, core.pointer_at())), core.checks_done()) - now;
    case Access::check:
      core.check_done_at(there(false, now));
      return 0;
    case Access::store:
      core.store_done_at(there(true, now));
      return 0;
    case Access::exchange:
      break;
  }
  return std::max(there(true, now), core.all_done()) - now + config_.costs.exchange;
}

// An object's new version is made in memory that its writer has freed not long before. That was
// some other version, which cores had read and written as they did the one that is replaced now: so
// what is charged is what it takes to get the lines of that one.
std::uint64_t Machine::lines_delay(Line line, std::uint64_t which, bool as_writer,
                                   std::uint64_t bytes, std::uint64_t start) noexcept {
  const std::uint64_t first = Caches::name_of(static_cast<std::uint64_t>(line),
                                              line == Line::entry     ? which >> kEntryLineShift
                                              : line == Line::version ? which >> kVersionLineShift
                                                                      : which);
  std::uint64_t delay = 0;
  for (std::uint64_t i = 0; i * 64 < bytes; ++i) {
    const std::uint64_t now = start + delay;
    const bool further = i != 0;
    delay += !as_writer              ? caches_->load(core_, first + i, now, further)
             : line == Line::version ? caches_->make(core_, first + i, now, further)
                                     : caches_->store(core_, first + i, now, further);
  }
  return delay;
}

void Machine::pause(std::uint64_t pauses, std::uint64_t yields) noexcept {
  if (is_timed()) {
    const Costs& costs = config_.costs;
    return event(Event::pause, pauses + yields, pauses * costs.pause + yields * costs.yield);
  }
  for (std::uint64_t i = 0; i < pauses + yields; ++i) {
    if (!cores_.empty() && config_.schedule == Schedule::priority) {
      cores_[core_].priority = --lowest_priority_;
    }
    event(Event::pause, 0, config_.costs.pause);
  }
}

// A turn of the waiting loop also looks at the counter.
std::uint64_t Machine::poll_period() const noexcept {
  return std::max<std::uint64_t>(1, std::uint64_t{config_.costs.pause} + config_.costs.clock);
}

void Machine::poll(const void* on, std::uint64_t deadline) noexcept {
  SP3_CHECK(is_timed() && !cores_.empty());
  CoreState& self = cores_[core_];
  self.state = State::blocked;
  self.polls = true;
  self.blocked_on = on;
  self.deadline = deadline * kPicoseconds;
  event(Event::pause, 0, poll_period());
}

// Those who poll see it in their next turn.
void Machine::changed(const void* on) noexcept {
  if (!is_timed()) return;
  const std::uint64_t at = time();
  const std::uint64_t period = poll_period();
  for (Core i = 0; i < cores_.size(); ++i) {
    CoreState& core = cores_[i];
    if (core.state != State::blocked || !core.polls || core.blocked_on != on) continue;
    core.state = State::ready;
    if (core.clock < at) core.clock += (at - core.clock + period - 1) / period * period;
    horizon_ = std::min(horizon_, core.clock);
    queue_.set(i, core.clock);
  }
}

bool Machine::block(const void* on, std::uint64_t deadline) {
  SP3_CHECK(!cores_.empty());  // inline, nobody could ever wake us
  CoreState& self = cores_[core_];
  self.state = State::blocked;
  self.polls = false;
  self.blocked_on = on;
  self.deadline = deadline == 0 ? kNever : deadline * kPicoseconds;
  self.woken = false;
  synchronise(on);
  event(Event::block);
  synchronise(on);
  return cores_[core_].woken;
}

void Machine::wake(const void* on) noexcept {
  synchronise(on);
  const std::uint64_t at = time() + config_.costs.wake;
  for (Core i = 0; i < cores_.size(); ++i) {
    CoreState& core = cores_[i];
    if (core.state != State::blocked || core.polls || core.blocked_on != on) continue;
    core.state = State::ready;
    core.woken = true;
    core.clock = std::max(core.clock, at);
    horizon_ = std::min(horizon_, core.clock);
    queue_.set(i, core.clock);
  }
}

Machine::Core Machine::spawn(std::function<void()> body) {
  SP3_CHECK(fibers_ != nullptr);
  const auto core = static_cast<Core>(cores_.size());
  CoreState state;
  state.clock = cores_.empty() ? clock_ : time() + config_.costs.wake;
  state.priority = (std::uint64_t{1} << 32) + random_.below(std::uint64_t{1} << 31);
  state.skew = random_.below(kSkewNs);
  cores_.push_back(state);
  queue_.add(state.clock);
  horizon_ = std::min(horizon_, state.clock);
  if (weak_memory_ != nullptr) weak_memory_->spawned(core);
  fibers_->add([this, core, body = std::move(body)] { body_of_core(core, body); });
  return core;
}

bool Machine::has_ended(Core core) const noexcept { return cores_[core].state == State::ended; }

const void* Machine::end_of(Core core) const noexcept {
  // A number that is no object's address: cores are few.
  return reinterpret_cast<const void*>(std::uintptr_t{core} + 1);
}

void Machine::body_of_core(Core core, const std::function<void()>& body) noexcept {
  try {
    body();
  } catch (const std::exception& e) {
    if (uncaught_.empty()) uncaught_ = e.what();
  } catch (...) {
    if (uncaught_.empty()) uncaught_ = "not a std::exception";
  }
  event(Event::end);
  cores_[core].state = State::ended;
  wake(end_of(core));
  next_ = pick();
}

Machine::Ended Machine::run(std::function<void()> body) {
  SP3_CHECK(fibers_ == nullptr);
  fibers_ = std::make_unique<Fibers>();
  const Use use(*this);
  run_began_ = events_;
  for (next_ = spawn(std::move(body)); next_ != kNobody;) {
    core_ = next_;
    fibers_->enter(core_);
  }
  for (const CoreState& core : cores_) clock_ = std::max(clock_, core.clock);
  const bool all = std::all_of(cores_.begin(), cores_.end(),
                               [](const CoreState& c) { return c.state == State::ended; });
  const bool hung = events_ - run_began_ > config_.most_events ||
                    std::any_of(cores_.begin(), cores_.end(),
                                [](const CoreState& c) { return c.state == State::ready; });
  fibers_.reset();
  core_ = 0;
  if (!all) return hung ? Ended::hung : Ended::deadlocked;
  cores_.clear();
  queue_.clear();
  return Ended::normally;
}

// On a core: lets the one run that the schedule says.
void Machine::reschedule() noexcept {
  if (config_.schedule == Schedule::timed) {
    const CoreState& self = cores_[core_];
    if (self.state == State::ready && self.clock <= horizon_) return;
  }
  const Core next = pick();
  if (next == core_) return;
  if (next == kNobody) {
    next_ = kNobody;
    fibers_->leave();
  } else {
    core_ = next;
    fibers_->change_to(next);
  }
}

Machine::Core Machine::pick() noexcept {
  if (events_ - run_began_ > config_.most_events) return kNobody;
  if (config_.schedule == Schedule::timed) return choose_timed();
  let_time_pass();
  return choose_explored();
}

// Wakes sleepers whose time has come; if nobody else can run, that of the first.
void Machine::let_time_pass() noexcept {
  std::uint64_t first = kNever;
  bool ready = false;
  for (const CoreState& core : cores_) {
    ready = ready || core.state == State::ready;
    if (core.state == State::blocked) first = std::min(first, core.deadline);
  }
  if (first == kNever) return;
  if (!ready || random_.one_in(kEarlyWake)) clock_ = std::max(clock_, first);
  if (clock_ < first) return;
  for (CoreState& core : cores_) {
    if (core.state == State::blocked && core.deadline <= clock_) core.state = State::ready;
  }
}

Machine::Core Machine::choose_timed() noexcept {
  const CoreState& self = cores_[core_];
  queue_.set(core_, self.state == State::ready     ? self.clock
                    : self.state == State::blocked ? std::max(self.clock, self.deadline)
                                                   : kNever);
  if (queue_.first() == kNever) return kNobody;
  const Core best = queue_.top();
  cores_[best].clock = queue_.first();
  cores_[best].state = State::ready;
  horizon_ = queue_.second();
  return best;
}

Machine::Core Machine::choose_explored() noexcept {
  const bool may_stay = core_ < cores_.size() && cores_[core_].state == State::ready;
  if (config_.schedule == Schedule::random) return choose_at_random(may_stay);
  while (may_stay && !change_points_.empty() && change_points_.back() <= events_) {
    change_points_.pop_back();
    cores_[core_].priority = --lowest_priority_;
  }
  Core best = kNobody;
  for (Core i = 0; i < cores_.size(); ++i) {
    if (cores_[i].state != State::ready) continue;
    if (best == kNobody || cores_[i].priority > cores_[best].priority) best = i;
  }
  return best;
}

// Of those that are ready; not one that has stalled, unless there are no others.
Machine::Core Machine::choose_at_random(bool may_stay) noexcept {
  const bool stalls =
      may_stay && config_.stalls_one_in != 0 && random_.one_in(config_.stalls_one_in);
  if (stalls) cores_[core_].stalled_until = events_ + random_.below(config_.longest_stall);
  if (may_stay && !stalls && random_.below(256) >= switch_chance_) return core_;
  const auto choose = [this](bool also_stalled) {
    const auto may_run = [&](const CoreState& core) {
      return core.state == State::ready && (also_stalled || core.stalled_until <= events_);
    };
    const auto able = std::count_if(cores_.begin(), cores_.end(), may_run);
    if (able == 0) return kNobody;
    std::uint64_t skip = random_.below(static_cast<std::uint64_t>(able));
    for (Core i = 0; i < cores_.size(); ++i) {
      if (may_run(cores_[i]) && skip-- == 0) return i;
    }
    return kNobody;
  };
  const Core chosen = choose(false);
  return chosen == kNobody ? choose(true) : chosen;
}

}  // namespace sp3::emu::sim

// Machine: a simulated computer: virtual cores, a clock, a file system, and whoever watches.
//
// The runtime, compiled with SP3_SIMULATED, reports every instant that matters to machine(), the
// current one. There the watcher may look (crash images are taken there), the core's clock is
// charged, and another core may go on. Between two events a core runs alone.
//
// A machine runs in one of two ways:
//   inline   code of the caller, on the caller's stack, under Machine::Use: one core, nothing ever
//            switches. Recovery of a crash image runs so.
//   run()    virtual cores, each a fiber; threads the code starts become further cores.
// Machines nest: a watcher may use another machine and come back.
//
// Determinism: all that happens follows from Config. No wall clock, address, thread or hash order
// reaches a run, so equal configurations give equal trace hashes at every optimisation level.
//
// Thread safety: none; one OS thread for all machines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/memory_model.h"
#include "base/scaled.h"
#include "emu/line.h"
#include "emu/sim/caches.h"
#include "emu/sim/core_queue.h"
#include "emu/sim/costs.h"
#include "emu/sim/pipeline.h"
#include "emu/sim/random.h"

namespace sp3::emu::sim {

class FileSystem;
class Fibers;
class WeakMemory;

enum class Event : std::uint8_t {
  step,        // a named instant of the protocol (emu/step.h)
  store,       // before a store to persistent memory
  flush,       // before a flush of one or more lines, or a pwrite
  fence,       // before a fence, or an fdatasync
  file,        // before a change to a file or its name
  touch,       // a cache line that cores share (emu/touch.h)
  interleave,  // between two accesses that are not atomic together
  pause,       // a core waits for another
  mutex,       // before a lock is taken
  block,       // the core sleeps
  end,         // the core's thread ends
  access,      // an atomic access, where memory is weak
};

// What an Event::touch is about: what is done to the line of this kind and number.
struct Touch {
  Line line;
  std::uint64_t which = 0;  // below 2^56
  Access access;
};

//   bits   8..63   3..7   0..2
//          which   line   access
constexpr std::uint64_t pack_touch(const Touch& touch) noexcept {
  return touch.which << 8 | static_cast<std::uint64_t>(touch.line) << 3 |
         static_cast<std::uint64_t>(touch.access);
}
constexpr Touch unpack_touch(std::uint64_t what) noexcept {
  return {.line = static_cast<Line>(what >> 3 & 31),
          .which = what >> 8,
          .access = static_cast<Access>(what & 7)};
}
static_assert(static_cast<unsigned>(Line::word_clock) <= 31);
static_assert(static_cast<unsigned>(Access::exchange) <= 7);

// What an Event::file is about.
enum class FileChange : std::uint8_t { make = 1, resize, name, sync_directory, remove };

enum class Schedule : std::uint8_t {
  timed,     // always the core with the smallest clock
  random,    // any core, switching with a probability that the seed chooses
  priority,  // PCT: the core of the highest priority; priorities change at a few random events
};

struct Config {
  std::uint64_t seed = 1;
  Schedule schedule = Schedule::random;
  Costs costs;
  bool clocks_agree = true;              // false: each core's clock is off by an amount of its own
  std::uint32_t priority_changes = 3;    // of Schedule::priority
  std::uint64_t expected_events = 2000;  // among which they are
  // Of Schedule::random: a core may lose its turn for long, as by an interrupt; 0: none does.
  std::uint64_t stalls_one_in = 0;         // of its events
  std::uint64_t longest_stall = 0;         // in events of others
  std::uint64_t most_events = 20'000'000;  // of a run; then it counts as hung
  // The flush, fence, write or sync, counted from the first, that fails with EIO; 0: none. Then it
  // alone, or all after it too.
  std::uint64_t failing_io = 0;
  bool fails_once = false;
  // false: what a power loss would leave is not kept; files are plain bytes, and large ones cheap
  bool tracks_media = true;
  // Blocks of the log of a file are durable when they have been written, and nothing else is:
  // natively so wherever the file system can do that.
  bool writes_through = false;
  // What a program is told that asks how many cores there are. It may start any number of threads,
  // each of which has a core.
  std::uint32_t cores = 1;
  // Cores do not see one order of all stores (emu/sim/weak_memory.h). Not with Schedule::timed.
  bool weak_memory = false;

  // Stalls of a frequency and length that are drawn.
  void draw_stalls(Random& choose) noexcept {
    stalls_one_in = std::uint64_t{64} << (2 * choose.below(4));
    longest_stall = std::uint64_t{64} << (2 * choose.below(4));
  }
};

class Machine;

// Who looks at each event before it happens. Must not throw.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void before(Machine& machine, Event event, std::uint64_t what) = 0;
};

class Machine {
 public:
  using Core = std::uint32_t;
  // Hung: after most_events, or more virtual time than can be counted.
  enum class Ended : std::uint8_t { normally, deadlocked, hung };
  static constexpr std::uint64_t kMostSeconds = CoreQueue::kLatest / 1'000'000'000'000;

  explicit Machine(const Config& config);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // While it lives this machine is the current one.
  class Use {
   public:
    explicit Use(Machine& machine) noexcept
        : before_(current_), model_before_(base::memory_model), scaling_(!machine.is_timed()) {
      current_ = &machine;
      base::memory_model = machine.memory_model();
    }
    ~Use() {
      current_ = before_;
      base::memory_model = model_before_;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Machine* before_;
    base::MemoryModel* model_before_;
    base::Scaling scaling_;
  };

  // Runs `body` as core 0 until every core has ended. A run that did not end normally leaves its
  // fibers where they are, with all they own: report and be done with the machine.
  Ended run(std::function<void()> body);

  [[nodiscard]] FileSystem& files() noexcept { return *files_; }
  void watch(Watcher* watcher) noexcept { watcher_ = watcher; }
  [[nodiscard]] Random& random() noexcept { return random_; }
  [[nodiscard]] const Costs& costs() const noexcept { return config_.costs; }
  [[nodiscard]] std::uint32_t advertised_cores() const noexcept { return config_.cores; }
  [[nodiscard]] bool tracks_media() const noexcept { return config_.tracks_media; }
  [[nodiscard]] bool writes_through() const noexcept { return config_.writes_through; }

  // The `countdown`-th flush, fence, write or sync from now on fails with `error`; 0: none does.
  void fail_io(int error, std::uint64_t countdown) noexcept;
  // Asked by each of them: 0, or the error it fails with.
  [[nodiscard]] int io_error() noexcept;

  // What the seam reports. `what` tells events of a kind apart in the trace; costs are in
  // picoseconds.
  void event(Event event, std::uint64_t what = 0) noexcept {
    this->event(event, what, costs().step);
  }
  void event(Event event, std::uint64_t what, std::uint64_t cost) noexcept;
  void step(std::uint8_t number) noexcept;
  void touch(Line line, std::uint64_t which, Access access, std::uint64_t bytes) noexcept;
  // No event: time passes for nobody.
  void prefetch(Line line, std::uint64_t which, bool as_writer, std::uint64_t bytes) noexcept;
  // Waits for what the core has under way, and then `cost`.
  void fence(std::uint64_t cost) noexcept;
  // A core waits for another: so many short pauses, then so many that offer the core. Timed: all at
  // once.
  void pause(std::uint64_t pauses, std::uint64_t yields) noexcept;
  // Timed: as pausing again and again until changed(on), or until ticks() is past `deadline`,
  // without the rounds in between.
  void poll(const void* on, std::uint64_t deadline) noexcept;
  void changed(const void* on) noexcept;
  // Sleeps until wake(on) or `deadline` (a value of now(); 0: none); whether it was woken.
  bool block(const void* on, std::uint64_t deadline);
  void wake(const void* on) noexcept;
  // What the core did, and what others did that have said so of the same place, comes before what
  // it does next. No event; nothing at all unless memory is weak.
  void synchronise(const void* on) noexcept;
  // A new core that runs `body` from now on.
  Core spawn(std::function<void()> body);
  [[nodiscard]] bool has_ended(Core core) const noexcept;
  [[nodiscard]] const void* end_of(Core core) const noexcept;  // what wake()s when it ends

  [[nodiscard]] Core core() const noexcept { return core_; }
  [[nodiscard]] std::size_t cores() const noexcept { return cores_.size(); }
  // Nanoseconds of virtual time, never falling; ticks() is what the core's own counter says.
  [[nodiscard]] std::uint64_t now() const noexcept;
  [[nodiscard]] std::uint64_t ticks() noexcept;
  [[nodiscard]] bool clocks_agree() const noexcept { return config_.clocks_agree; }
  [[nodiscard]] bool is_timed() const noexcept { return config_.schedule == Schedule::timed; }

  // What others did before they fenced fully comes before what the core loads next.
  void see_fenced() noexcept;
  // 0 unless memory is weak.
  [[nodiscard]] std::uint64_t stale_loads() const noexcept;
  // The first two accesses to plain memory that nothing orders, as text; empty if there were none,
  // or memory is not weak.
  [[nodiscard]] std::string race() const;
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t trace_hash() const noexcept { return trace_; }
  // The first exception that left a core's body, as text; empty if there was none.
  [[nodiscard]] const std::string& uncaught() const noexcept { return uncaught_; }

 private:
  friend Machine& machine() noexcept;
  static constexpr Core kNobody = ~Core{0};
  enum class State : std::uint8_t { ready, blocked, ended };
  struct CoreState {
    State state = State::ready;
    bool woken = false;
    std::uint64_t clock = 0;  // picoseconds, like all times in here
    std::uint64_t deadline = 0;
    const void* blocked_on = nullptr;
    bool polls = false;  // blocked, but at work
    std::uint64_t priority = 0;
    std::uint64_t stalled_until = 0;  // in events
    std::uint64_t skew = 0;           // in ticks
    Pipeline pipeline;                // timed
  };

  [[nodiscard]] base::MemoryModel* memory_model() const noexcept;
  void body_of_core(Core core, const std::function<void()>& body) noexcept;
  void reschedule() noexcept;
  [[nodiscard]] Core pick() noexcept;
  [[nodiscard]] Core choose_timed() noexcept;
  [[nodiscard]] Core choose_explored() noexcept;
  [[nodiscard]] Core choose_at_random(bool may_stay) noexcept;
  void let_time_pass() noexcept;
  [[nodiscard]] std::uint64_t poll_period() const noexcept;
  // How long the core waits for the access.
  [[nodiscard]] std::uint64_t access_cost(Line line, std::uint64_t which, Access access,
                                          std::uint64_t bytes) noexcept;
  // After how long all these lines are there, for one who asks for them at `start`.
  [[nodiscard]] std::uint64_t lines_delay(Line line, std::uint64_t which, bool as_writer,
                                          std::uint64_t bytes, std::uint64_t start) noexcept;
  [[nodiscard]] Pipeline& pipeline() noexcept {
    return cores_.empty() ? inline_pipeline_ : cores_[core_].pipeline;
  }
  [[nodiscard]] std::uint64_t time() const noexcept {
    return !is_timed() || cores_.empty() ? clock_ : cores_[core_].clock;
  }

  static inline Machine* current_ = nullptr;

  const Config config_;
  Random random_;
  std::uint64_t switch_chance_;  // of Schedule::random, in 1/256
  std::unique_ptr<FileSystem> files_;
  Watcher* watcher_ = nullptr;

  std::unique_ptr<Fibers> fibers_;  // while run() runs
  std::unique_ptr<WeakMemory> weak_memory_;
  std::vector<CoreState> cores_;
  Core core_ = 0;
  Core next_ = 0;              // who runs when the running core leaves
  std::uint64_t clock_ = 0;    // of all cores, unless timed
  std::uint64_t horizon_ = 0;  // timed: the running core goes on while its clock is not above
  std::vector<std::uint64_t> change_points_;
  std::uint64_t lowest_priority_;
  CoreQueue queue_;  // timed: of all cores; the clock of the running one is not kept in it
  std::unique_ptr<Caches> caches_;  // timed
  Pipeline inline_pipeline_;        // of the caller's core, where no others are
  std::array<std::uint32_t, 64> step_costs_{};

  int io_error_ = 0;  // of the calls that fail
  std::uint64_t io_countdown_ = 0;

  std::uint64_t events_ = 0;
  std::uint64_t run_began_ = 0;  // at this number of events
  std::uint64_t trace_ = 0xcbf29ce484222325ULL;
  std::string uncaught_;
};

// The machine the calling code runs on. REQUIRES: there is one.
inline Machine& machine() noexcept { return *Machine::current_; }

}  // namespace sp3::emu::sim

#include "emu/clock.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include "base/no_signals.h"

namespace sp3::emu {
namespace {

std::atomic<bool> forced_apart{false};

struct Sample {
  std::uint64_t ticks = 0;
  std::chrono::steady_clock::time_point time;
};

// Reads both clocks at one moment: of several tries, the one with the least time between its two
// readings of the counter.
Sample sample() noexcept {
  Sample best;
  std::uint64_t best_gap = ~std::uint64_t{0};
  for (int i = 0; i < 16; ++i) {
    const std::uint64_t before = ticks_after_loads();
    const auto time = std::chrono::steady_clock::now();
    const std::uint64_t gap = ticks_after_loads() - before;
    if (gap < best_gap) {
      best_gap = gap;
      best = {before + gap / 2, time};
    }
  }
  return best;
}

double measure_rate() noexcept {
  constexpr auto kLength = std::chrono::milliseconds(4);
  const Sample start = sample();
  while (std::chrono::steady_clock::now() - start.time < kLength) _mm_pause();
  const Sample end = sample();
  const double seconds = std::chrono::duration<double>(end.time - start.time).count();
  return static_cast<double>(end.ticks - start.ticks) / seconds;
}

bool rate_is_invariant() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
}

std::vector<std::size_t> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void pin_to(std::size_t core) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)sched_setaffinity(0, sizeof set, &set);  // unpinned, the test is weaker but not wrong
}

// What a look at the counters of two cores has shown. On a busy machine the cores may never run the
// two threads at once for long enough to tell.
enum class Agreement : std::uint8_t { shown, refuted, unknown };

// Two threads pass a turn to and fro, each with its reading of the counter, which must not be below
// the one that came with the turn.
class PingPong {
 public:
  explicit PingPong(std::chrono::milliseconds patience) : patience_(patience) {}

  // Shown: at least kEnough turns passed in time and none went backwards.
  Agreement compare(std::size_t core_a, std::size_t core_b) {
    const base::NoSignals blocked;
    std::jthread other([this, core_b] {  // joined also if there is no second thread to be had
      pin_to(core_b);
      play(1);
    });
    std::thread one([this, core_a] {
      pin_to(core_a);
      play(0);
    });
    one.join();
    other.join();
    // relaxed: the joins order these after everything.
    if (backwards_.load(std::memory_order_relaxed)) return Agreement::refuted;
    const bool enough = turn_.load(std::memory_order_relaxed) >= kEnough;
    return enough ? Agreement::shown : Agreement::unknown;
  }

 private:
  static constexpr std::uint64_t kTurns = 2000;
  static constexpr std::uint64_t kEnough = 100;

  void play(std::uint64_t parity) noexcept {
    const auto give_up = std::chrono::steady_clock::now() + patience_;
    for (std::uint64_t mine = parity; mine < kTurns; mine += 2) {
      // (1) acquire pairs with (2): the reading was taken before the turn was passed.
      for (std::uint32_t spins = 0; turn_.load(std::memory_order_acquire) != mine;) {
        if (++spins % 64 != 0) continue;
        if (std::chrono::steady_clock::now() > give_up) return;
        sched_yield();
      }
      const std::uint64_t now = ticks_after_loads();
      // relaxed: handed over with the turn.
      if (now < last_.load(std::memory_order_relaxed))
        backwards_.store(true, std::memory_order_relaxed);
      last_.store(now, std::memory_order_relaxed);
      turn_.store(mine + 1, std::memory_order_release);  // (2)
    }
  }

  const std::chrono::milliseconds patience_;
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<std::uint64_t> last_{0};
  std::atomic<bool> backwards_{false};
};

// Of all cores with the first.
Agreement compare_cores(const std::vector<std::size_t>& cores, std::chrono::milliseconds patience) {
  Agreement all = Agreement::shown;
  for (std::size_t i = 1; i < cores.size(); ++i) {
    const Agreement found = PingPong(patience).compare(cores.front(), cores[i]);
    if (found == Agreement::refuted) return found;
    if (found == Agreement::unknown) all = found;
  }
  return all;
}

// Whether the kernel itself tells the time by the counter, which it does only where it has found
// that all cores agree, and goes on watching.
bool kernel_trusts_counter() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return file >> source && source == "tsc";
}

// Whether there are cores that we are not let onto now, but may be later.
bool are_some_of(const std::vector<std::size_t>& cores) {
  return sysconf(_SC_NPROCESSORS_ONLN) > static_cast<long>(cores.size());
}

bool cores_agree() noexcept {
  try {
    if (!rate_is_invariant()) return false;
    const std::vector<std::size_t> cores = allowed_cores();
    if (cores.empty()) return false;
    if (are_some_of(cores) && !kernel_trusts_counter()) return false;
    Agreement found = compare_cores(cores, std::chrono::milliseconds(20));
    if (found == Agreement::unknown && kernel_trusts_counter()) return true;
    if (found == Agreement::unknown) found = compare_cores(cores, std::chrono::milliseconds(500));
    return found == Agreement::shown;
  } catch (...) {
    return false;  // no thread could be started: nothing was shown
  }
}

}  // namespace

double ticks_per_second() noexcept {
  static const double rate = measure_rate();
  return rate;
}

std::uint64_t ticks_from_nanoseconds(double nanoseconds) noexcept {
  if (nanoseconds <= 0) return 0;
  return static_cast<std::uint64_t>(std::llround(nanoseconds * ticks_per_second() / 1e9));
}

double nanoseconds_from_ticks(std::uint64_t ticks) noexcept {
  return static_cast<double>(ticks) * 1e9 / ticks_per_second();
}

bool clock_is_synchronised() noexcept {
  static const bool agree = cores_agree();
  return agree && !forced_apart.load(std::memory_order_relaxed);
}

void force_unsynchronised_clock(bool apart) noexcept {
  forced_apart.store(apart, std::memory_order_relaxed);  // relaxed: set before a pool is opened
}

}  // namespace sp3::emu

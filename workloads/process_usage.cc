#include "workloads/process_usage.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <malloc.h>

namespace sp3::workloads {

namespace {

constexpr std::chrono::milliseconds kInterval(5);

// A number of bytes that the kernel gives in a file of lines "name: kibibytes kB".
std::optional<std::uint64_t> bytes_in(const char* file, std::string_view name) {
  std::ifstream lines(file);
  std::string word;
  while (lines >> word) {
    if (word != name) continue;
    std::uint64_t kib = 0;
    lines >> kib;
    return kib << 10;
  }
  return std::nullopt;
}

// The kernel keeps no maximum of this number, only of one that counts mapped files too.
std::uint64_t anonymous_bytes() { return bytes_in("/proc/self/status", "RssAnon:").value_or(0); }

// What was freed before must not be taken for what is allocated now.
std::uint64_t bytes_at_start() {
  ::malloc_trim(0);
  return anonymous_bytes();
}

}  // namespace

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::uint64_t available_memory() {
  return bytes_in("/proc/meminfo", "MemAvailable:")
      .value_or(std::numeric_limits<std::uint64_t>::max());
}

MemoryPeak::MemoryPeak()
    : before_(bytes_at_start()), most_(before_), thread_([this] {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, kInterval, [this] { return ended_; })) look();
      }) {}

MemoryPeak::~MemoryPeak() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MemoryPeak::look() { most_ = std::max(most_, anonymous_bytes()); }

std::uint64_t MemoryPeak::bytes() {
  const std::lock_guard lock(mutex_);
  look();
  return most_ - before_;
}

}  // namespace sp3::workloads

#include "workloads/process_usage.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>

#include <malloc.h>

namespace sp3::workloads {

namespace {

constexpr std::chrono::milliseconds kInterval(5);

// The kernel keeps no maximum of this number, only of one that counts mapped files too.
std::uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "RssAnon:") continue;
    std::uint64_t kib = 0;
    status >> kib;
    return kib << 10;
  }
  return 0;
}

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

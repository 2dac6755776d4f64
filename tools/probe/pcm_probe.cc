// pcm-memory takes about a second to set up the memory controllers' counters, so it runs from
// before the store is filled. A sample is about the interval before it was printed; it counts if
// all of that interval was measured time.
#include "tools/probe/pcm_probe.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/telling_program.h"

namespace sp3::tools {

namespace {

constexpr std::chrono::milliseconds kInterval(100);

std::string find_program(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const std::size_t colon = std::min(folders.find(':'), folders.size());
    std::string file = fmt::format("{}/{}", folders.substr(0, colon), name);
    if (::access(file.c_str(), X_OK) == 0) return file;
    folders.remove_prefix(std::min(colon + 1, folders.size()));
  }
  return {};
}

// The mean of what the samples say, times the seconds.
void add(workloads::ProbeReading& reading, const char* name, double seconds,
         const std::vector<std::optional<double>>& rates) {
  double sum = 0;
  std::size_t count = 0;
  for (const std::optional<double>& rate : rates) {
    if (!rate) continue;
    sum += *rate;
    ++count;
  }
  if (count != 0) reading.counts.emplace_back(name, sum / static_cast<double>(count) * seconds);
}

}  // namespace

std::string why_no_pcm(std::string& program) {
  for (const char* const name : {"pcm-memory", "pcm-memory.x"}) {
    if (program.empty()) program = find_program(name);
  }
  if (program.empty()) return "unavailable: pcm-memory not installed";
  const int msr = ::open("/dev/cpu/0/msr", O_RDONLY | O_CLOEXEC);
  if (msr < 0) {
    return fmt::format("unavailable: no MSR access (/dev/cpu/0/msr: {})", std::strerror(errno));
  }
  ::close(msr);
  return {};
}

PcmProbe::PcmProbe(const std::string& program)
    : stop_reading_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (stop_reading_.get() < 0) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  const pool::Descriptor null = open_null_device();
  TellingProgram started = start_telling(program, {"0.1", "-nc", "-csv", "-silent"}, STDOUT_FILENO,
                                         {{null.get(), STDIN_FILENO}, {null.get(), STDERR_FILENO}},
                                         ProcessGroup::its_own);
  pid_ = started.pid;
  pipe_ = std::move(started.pipe);
  reader_ = std::thread([this] { read_samples(); });
}

PcmProbe::~PcmProbe() {
  end_program();
  // Somebody who cannot be signalled may still have the pipe; his next sample ends him.
  constexpr std::uint64_t kOne = 1;
  static_cast<void>(!::write(stop_reading_.get(), &kOne, sizeof kOne));
  reader_.join();
}

bool PcmProbe::has_ended() const noexcept {
  siginfo_t info{};
  // Not reaped: until it is, no other process, and no other group, can get its number.
  const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return found == 0 && info.si_pid == pid_ && pipe_closed_.load(std::memory_order_acquire);
}

void PcmProbe::end_program() noexcept {
  // As by Ctrl-C: it puts the counters back. If it has not after two seconds, it will not.
  ::kill(-pid_, SIGINT);
  for (int i = 0; i < 200 && !has_ended(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(-pid_, SIGKILL);
  // One that has another user's rights is not killed, and not waited for.
  int status = 0;
  const bool killed = ::kill(pid_, SIGKILL) == 0;
  ::waitpid(pid_, &status, killed ? 0 : WNOHANG);
}

void PcmProbe::read_samples() {
  PcmCsv csv;
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    pollfd ready[] = {{pipe_.get(), POLLIN, 0}, {stop_reading_.get(), POLLIN, 0}};
    if (::poll(ready, std::size(ready), -1) < 0 && errno == EINTR) continue;
    if (ready[1].revents != 0) return;
    const ssize_t n = ::read(pipe_.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      pipe_closed_.store(true, std::memory_order_release);
      return;
    }
    text.append(part.data(), static_cast<std::size_t>(n));
    for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
      const auto sample = csv.line(std::string_view(text).substr(0, end));
      if (!sample) continue;
      const std::lock_guard lock(mutex_);
      samples_.push_back({Clock::now(), *sample});
    }
  }
}

void PcmProbe::start() { start_ = Clock::now(); }

workloads::ProbeReading PcmProbe::stop() {
  const Clock::time_point end = Clock::now();
  const double seconds = std::chrono::duration<double>(end - start_).count();
  std::vector<std::optional<double>> media_read, media_write, dram_read, dram_write;
  {
    const std::lock_guard lock(mutex_);
    for (const Timed& timed : samples_) {
      if (timed.at < start_ + kInterval || timed.at > end) continue;
      media_read.push_back(timed.sample.media_read);
      media_write.push_back(timed.sample.media_write);
      dram_read.push_back(timed.sample.dram_read);
      dram_write.push_back(timed.sample.dram_write);
    }
  }
  workloads::ProbeReading reading{"pcm", {}, {}};
  add(reading, "media_read_bytes", seconds, media_read);
  add(reading, "media_write_bytes", seconds, media_write);
  add(reading, "dram_read_bytes", seconds, dram_read);
  add(reading, "dram_write_bytes", seconds, dram_write);
  if (media_read.empty()) {
    reading.note = "unavailable: pcm-memory printed no sample in the measured time";
  } else if (!media_read.front()) {
    reading.note = "unavailable: media bytes: pcm-memory found no persistent memory";
  }
  return reading;
}

}  // namespace sp3::tools

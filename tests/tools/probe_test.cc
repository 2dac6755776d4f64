// What probes make of what they are told, on machines that have the counters and on those that do
// not.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "tests/support/page_faults.h"
#include "tools/probe/pcm_csv.h"
#include "tools/probe/pcm_probe.h"
#include "tools/probe/perf_probe.h"
#include "tools/probe/probes.h"

namespace sp3::tools {
namespace {

constexpr const char* kGroups =
    ",,SKT0,SKT0,SKT0,SKT0,SKT0,System,System,System,System,System,System,System";
constexpr const char* kNames =
    "Date,Time,Mem Read (MB/s),Mem Write (MB/s),PMM_Read (MB/s), PMM_Write (MB/s),Memory "
    "(MB/s),DRAMRead,DRAMWrite,PMMREAD,PMMWrite,Read,Write,Memory";
constexpr const char* kSample =
    "2026-01-31,12:00:00.123,  812.50,  400.25,  100.00,   50.00, 1212.75,    812.50,    400.25,"
    "    100.00,     50.00,    912.50,    450.25,   1362.75";

TEST_CASE("A sample of pcm-memory tells the bytes of media and of DRAM") {
  PcmCsv csv;
  CHECK_FALSE(
      csv.line("Intel(r) Performance Counter Monitor: Memory Bandwidth Monitoring Utility"));
  CHECK_FALSE(csv.line(kSample));  // without headings it means nothing
  CHECK_FALSE(csv.line(kGroups));
  CHECK_FALSE(csv.line(kNames));
  const auto sample = csv.line(kSample);
  REQUIRE(sample);
  CHECK(sample->media_read == 100e6);
  CHECK(sample->media_write == 50e6);
  CHECK(sample->dram_read == 812.5e6);
  CHECK(sample->dram_write == 400.25e6);
  CHECK(csv.line(std::string(kSample) + "\r"));
}

TEST_CASE("Without persistent memory a sample of pcm-memory tells of DRAM only") {
  PcmCsv csv;
  csv.line(",,SKT0,SKT0,SKT0,System,System,System");
  csv.line("Date,Time,Mem Read (MB/s),Mem Write (MB/s),Memory (MB/s),Read,Write,Memory");
  const auto sample = csv.line("2026-01-31,12:00:00.123,1,2,3,   10.5,   20,  30.5");
  REQUIRE(sample);
  CHECK_FALSE(sample->media_read);
  CHECK_FALSE(sample->media_write);
  CHECK(sample->dram_read == 10.5e6);
  CHECK(sample->dram_write == 20e6);
}

TEST_CASE("What is no sample of pcm-memory is none") {
  PcmCsv csv;
  csv.line(kGroups);
  csv.line(kNames);
  for (const char* const line : {"", "2026-01-31,12:00:00.123,1,2", "a,b,c,d,e,f,g,h,i,j,k,l,m,n",
                                 "2026-01-31,12:00:00.123,,,,,,,,,,,,",
                                 "2026-01-31,12:00:00.123,1,2,3,4,5,nan,-7,inf,1e,x,y,z"}) {
    CAPTURE(line);
    CHECK_FALSE(csv.line(line));
  }
  CHECK(csv.line(kSample));
}

// A program in place of pcm-memory.
class Script {
 public:
  explicit Script(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("sp3-probe-{}", ::getpid())) {
    std::ofstream(path_) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~Script() { std::filesystem::remove(path_); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::map<std::string, double> counts_of(const workloads::ProbeReading& reading) {
  return {reading.counts.begin(), reading.counts.end()};
}

TEST_CASE("Bytes are the mean of the samples in the measured time") {
  const Script script(
      fmt::format("[ \"$*\" = '0.1 -nc -csv -silent' ] || exit 1\necho '{}'\necho '{}'\n"
                  "while echo '{}'; do sleep 0.01; done\n",
                  kGroups, kNames, kSample));
  PcmProbe probe(script.path());
  // As often as it takes, should the script not get to run in between.
  for (auto length = std::chrono::milliseconds(200); length < std::chrono::minutes(1);
       length *= 2) {
    const auto before = std::chrono::steady_clock::now();
    probe.start();
    std::this_thread::sleep_for(length);
    const auto reading = probe.stop();
    const std::chrono::duration<double> most = std::chrono::steady_clock::now() - before;
    if (reading.counts.empty()) {
      CHECK(reading.note.starts_with("unavailable: "));
      continue;
    }
    auto counts = counts_of(reading);
    CHECK(reading.note.empty());
    CHECK(counts.size() == 4);
    CHECK(counts["media_read_bytes"] <= 100e6 * most.count());
    CHECK(counts["media_read_bytes"] >= 100e6 * std::chrono::duration<double>(length).count());
    CHECK(counts["media_read_bytes"] == Approx(2 * counts["media_write_bytes"]));
    CHECK(counts["dram_read_bytes"] == Approx(8.125 * counts["media_read_bytes"]));
    return;
  }
  FAIL("the script never printed a sample");
}

TEST_CASE("A pcm-memory that ends at once makes no counts and no error") {
  const Script script("exit 1\n");
  PcmProbe probe(script.path());
  probe.start();
  const auto reading = probe.stop();
  CHECK(reading.counts.empty());
  CHECK(reading.note == "unavailable: pcm-memory printed no sample in the measured time");
}

TEST_CASE("The program of pcm is started before there are counters that it would inherit") {
  const auto probes = make_probes({"perf", "pcm"});
  REQUIRE(probes.size() == 2);
  for (const auto& probe : probes) probe->start();
  CHECK(probes[0]->stop().probe == "pcm");
  CHECK(probes[1]->stop().probe == "perf");
  CHECK(make_probes({"perf"}).size() == 1);
}

TEST_CASE("A pcm-memory that another program runs is told to end, and waited for") {
  const Script script(
      fmt::format("sh -c 'trap \"echo > $0.ended; exit\" INT\n"
                  "echo \"{}\"; echo \"{}\"\n"
                  "while echo \"{}\"; do sleep 0.01; done' $0\n:\n",
                  kGroups, kNames, kSample));
  const std::filesystem::path ended = script.path() + ".ended";
  {
    PcmProbe probe(script.path());
    workloads::ProbeReading reading;
    while (reading.counts.empty()) {
      probe.start();
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      reading = probe.stop();
    }
  }
  CHECK(std::filesystem::remove(ended));
}

TEST_CASE("A pcm-memory that escaped is not waited for for ever") {
  const Script script(
      "setsid sh -c 'echo $$ > $0.pid; mv $0.pid $0.escaped; exec sleep 600' $0 &\n");
  const std::filesystem::path escaped = script.path() + ".escaped";
  {
    const PcmProbe probe(script.path());
    while (!std::filesystem::exists(escaped)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  pid_t pid = 0;
  std::ifstream(escaped) >> pid;
  REQUIRE(pid > 0);
  CHECK(::kill(pid, SIGKILL) == 0);
  CHECK(std::filesystem::remove(escaped));
}

TEST_CASE("A program that cannot be started is an error") {
  CHECK_THROWS_AS(PcmProbe("/nonexistent/pcm-memory"), std::system_error);
}

TEST_CASE("Why pcm-memory cannot be asked is said in one line, or it is there") {
  std::string program;
  const std::string why = why_no_pcm(program);
  if (why.empty()) {
    CHECK(::access(program.c_str(), X_OK) == 0);
  } else {
    CHECK(why.starts_with("unavailable: "));
    CHECK(why.find('\n') == std::string::npos);
  }
}

// Touches so many pages for the first time, and returns how often that faulted: sanitizers have
// memory of their own for them.
double fault(std::size_t pages) {
  const long before = test::page_faults();
  const std::size_t bytes = pages * 4096;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  std::memset(memory, 1, bytes);
  ::munmap(memory, bytes);
  return static_cast<double>(test::page_faults() - before);
}

TEST_CASE("Counters hold what later threads did between start and stop, or a note says why not") {
  constexpr std::size_t kPages = 2000;
  PerfProbe probe;
  std::thread([] { fault(kPages); }).join();
  probe.start();
  double faults = 0;
  std::thread([&faults] { faults = fault(kPages); }).join();
  const auto reading = probe.stop();
  std::thread([] { fault(kPages); }).join();
  auto counts = counts_of(reading);
  for (const char* const name :
       {"instructions", "cycles", "llc_misses", "cpu_ns", "page_faults", "context_switches"}) {
    CAPTURE(name, reading.note);
    if (counts.contains(name)) {
      CHECK(counts[name] >= 0);
    } else {
      CHECK(reading.note.starts_with("unavailable: "));
      CHECK(reading.note.find(name) != std::string::npos);
      CHECK(reading.note.find("perf_event_open: E") != std::string::npos);
    }
  }
  if (counts.contains("page_faults")) {
    CHECK(faults >= kPages);
    CHECK(counts["page_faults"] >= faults);
    CHECK(counts["page_faults"] < 2 * faults);
  }
  if (counts.contains("cpu_ns")) CHECK(counts["cpu_ns"] > 0);
  if (counts.contains("instructions")) CHECK(counts["instructions"] > kPages);
}

}  // namespace
}  // namespace sp3::tools

// The mapped kinds, and what all kinds have in common.
#include "emu/memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <sp3/error.h>

#include "base/scope_exit.h"
#include "emu/flush.h"
#include "tests/emu/scratch_file.h"
#include "tests/support/errors.h"
#include "tests/support/page_faults.h"
#include "tests/support/skip.h"

using namespace sp3;
using namespace sp3::emu;
using sp3::test::pattern;
using sp3::test::ScratchFile;

namespace {

constexpr std::uint64_t kLog = ScratchFile::kLogOffset;

std::vector<FlushInstruction> available() {
  std::vector<FlushInstruction> found;
  for (const auto instruction :
       {FlushInstruction::clflush, FlushInstruction::clflushopt, FlushInstruction::clwb,
        FlushInstruction::non_temporal, FlushInstruction::none}) {
    if (cpu_has(instruction)) found.push_back(instruction);
  }
  return found;
}

MemoryOptions emulated(FlushInstruction flush, Latency latency = {}) {
  MemoryOptions options;
  options.kind = MemoryKind::emulated;
  options.flush = flush;
  options.latency = latency;
  return options;
}

// How often a store to each page of the log had to wait for the system to map it.
long faults_of_first_stores(std::uint32_t prefault_ms) {
  const ScratchFile file;
  MemoryOptions options = emulated(FlushInstruction::automatic);
  options.prefault_ms = prefault_ms;
  const std::unique_ptr<Memory> memory = file.map(options);
  const std::uint64_t value = 1;
  const long before = test::page_faults();
  for (std::uint64_t at = 0; at < ScratchFile::kLogLength; at += 4096) {
    memory->log_store(kLog + at, &value, sizeof value, false);
  }
  return test::page_faults() - before;
}

bool kernel_populates() {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool populated = madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
  munmap(page, 4096);
  return populated;
}

ErrorCode error_of(const ScratchFile& file, const MemoryOptions& options) {
  try {
    (void)file.map(options);
  } catch (const Error& error) {
    CHECK(error.facts().path == file.path());
    CHECK_FALSE(error.facts().wanted.empty());
    CHECK_FALSE(error.facts().found.empty());
    return error.code();
  }
  FAIL("no error");
  return {};
}

}  // namespace

TEST_CASE("pages of the log that were mapped ahead cost no fault") {
  const long pages = ScratchFile::kLogLength / 4096;
  const long unmapped = faults_of_first_stores(0);
  CHECK(unmapped >= pages / 2);
  if (!kernel_populates()) SP3_SKIP("this kernel maps no pages ahead");
  const long mapped = faults_of_first_stores(1000);
#ifdef __SANITIZE_THREAD__
  CHECK(mapped + pages / 2 <= unmapped);  // its own memory of these pages faults as well
#else
  CHECK(mapped <= 2);
#endif
}

TEST_CASE("what every instruction flushed is in the view, in the log view and in the file") {
  for (const auto instruction : available()) {
    INFO(to_string(instruction));
    const ScratchFile file;
    const auto data = pattern(640, 1);
    {
      const auto memory = file.map(emulated(instruction));
      CHECK(memory->kind() == MemoryKind::emulated);
      CHECK(memory->flush_instruction() == instruction);
      CHECK_FALSE(memory->writes_blocks());
      FlushCounts counts;
      for (const bool streaming : {false, true}) {
        const std::uint64_t at = kLog + (streaming ? 8192 : 0);
        memory->log_store(at, data.data(), data.size(), streaming);
        CHECK(std::memcmp(memory->log_view(at), data.data(), data.size()) == 0);
        REQUIRE(memory->log_flush(at, data.size(), streaming, counts).ok());
        REQUIRE(memory->fence(counts).ok());
        CHECK(std::memcmp(memory->view() + at, data.data(), data.size()) == 0);
      }
      memory->store(128, data.data(), data.size());
      memory->flush(128, data.size(), counts);
      REQUIRE(memory->fence(counts).ok());
      CHECK(std::memcmp(memory->view() + 128, data.data(), data.size()) == 0);
      CHECK(counts.lines == 30);
      CHECK(counts.fences == 3);
    }
    CHECK(file.read(kLog, data.size()) == data);
    CHECK(file.read(kLog + 8192, data.size()) == data);
    CHECK(file.read(128, data.size()) == data);
  }
}

TEST_CASE("automatic streams what its owner alone flushes") {
  const ScratchFile file;
  CHECK(file.map(emulated(FlushInstruction::automatic))->flush_instruction() ==
        FlushInstruction::non_temporal);
}

TEST_CASE("every line that a range touches is counted once") {
  struct Case {
    std::uint64_t offset;
    std::size_t bytes;
    std::uint64_t lines;
  };
  constexpr Case kCases[] = {{0, 0, 0},  {0, 1, 1},   {0, 64, 1}, {0, 65, 2},   {63, 1, 1},
                             {63, 2, 2}, {60, 68, 2}, {1, 64, 2}, {64, 384, 6}, {32, 384, 7},
                             {8, 48, 1}, {8, 56, 1},  {8, 57, 2}};
  const ScratchFile file;
  for (const auto instruction : available()) {
    const auto memory = file.map(emulated(instruction));
    for (const Case& c : kCases) {
      INFO(to_string(instruction) << " offset " << c.offset << " bytes " << c.bytes);
      FlushCounts home;
      memory->flush(c.offset, c.bytes, home);
      CHECK(home.lines == c.lines);
      CHECK(home.pending_lines == c.lines);
      FlushCounts log;
      REQUIRE(memory->log_flush(kLog + c.offset, c.bytes, false, log).ok());
      CHECK(log.lines == c.lines);
    }
  }
}

TEST_CASE("a fence counts only when something was flushed since the last") {
  const ScratchFile file;
  for (const auto instruction : available()) {
    INFO(to_string(instruction));
    const auto memory = file.map(emulated(instruction));
    FlushCounts counts;
    REQUIRE(memory->fence(counts).ok());
    CHECK(counts.fences == 0);
    memory->flush(0, 64, counts);
    memory->flush(4096, 64, counts);
    REQUIRE(memory->fence(counts).ok());
    CHECK(counts.fences == 1);
    CHECK(counts.pending_lines == 0);
    REQUIRE(memory->fence(counts).ok());
    CHECK(counts.fences == 1);
    CHECK(counts.lines == 2);
  }
}

TEST_CASE("stores of any alignment and size write exactly their bytes") {
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::emulated);
  const auto data = pattern(64, 3);
  const std::vector<std::byte> zeros(300);
  for (std::uint64_t offset = 4096; offset < 4096 + 9; ++offset) {
    for (std::size_t bytes = 0; bytes <= 40; ++bytes) {
      memory->store(4000, zeros.data(), zeros.size());
      memory->store(offset, data.data() + 1, bytes);
      std::vector<std::byte> expected(300);
      std::memcpy(expected.data() + (offset - 4000), data.data() + 1, bytes);
      INFO("offset " << offset << " bytes " << bytes);
      REQUIRE(std::memcmp(memory->view() + 4000, expected.data(), expected.size()) == 0);
    }
  }
  memory->store_word(8, 0x0123456789ABCDEF);
  std::uint64_t word = 0;
  std::memcpy(&word, memory->view() + 8, 8);
  CHECK(word == 0x0123456789ABCDEF);
}

TEST_CASE(
    "stores through the cache, or past it, write exactly their bytes and count each line once") {
  const ScratchFile file;
  const auto data = pattern(200, 4);
  const std::vector<std::byte> zeros(400);
  for (const auto instruction : available()) {
    const auto memory = file.map(emulated(instruction));
    for (const std::uint64_t offset : {4096U, 4097U, 4104U, 4152U, 4159U}) {
      for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 128U, 136U, 191U}) {
        memory->store(4000, zeros.data(), zeros.size());
        FlushCounts counts;
        memory->store_through(offset, data.data() + 1, bytes, counts);
        REQUIRE(memory->fence(counts).ok());
        std::vector<std::byte> expected(400);
        std::memcpy(expected.data() + (offset - 4000), data.data() + 1, bytes);
        INFO(to_string(instruction) << " offset " << offset << " bytes " << bytes);
        REQUIRE(std::memcmp(memory->view() + 4000, expected.data(), expected.size()) == 0);
        FlushCounts flushed;
        memory->flush(offset, bytes, flushed);
        REQUIRE(counts.lines == flushed.lines);
        REQUIRE(counts.fences == (bytes == 0 ? 0 : 1));
      }
    }
  }
}

TEST_CASE("many values stored through are what each of them alone would be") {
  const ScratchFile file;
  const auto data = pattern(4096, 5);
  for (const auto instruction : available()) {
    for (const LatencyModel model : {LatencyModel::fence, LatencyModel::line}) {
      const auto memory = file.map(emulated(instruction, {model, 10, 0}));
      std::vector<HomeValue> values;
      FlushCounts each;
      std::vector<std::byte> expected(4096);
      struct Shape {
        std::uint64_t begin;
        std::size_t bytes;
      };
      constexpr std::array kShapes = {Shape{0, 128}, Shape{64, 64}, Shape{0, 24}, Shape{32, 128},
                                      Shape{5, 100}};  // whole lines among others
      for (std::uint64_t i = 0; i < 20; ++i) {
        const Shape& shape = kShapes[i % kShapes.size()];
        const std::uint64_t at = i * 192 + shape.begin;
        const std::span<const std::byte> part(data.data() + at, shape.bytes);
        values.push_back({4096 + at, part});
        std::ranges::copy(part, expected.data() + at);
        FlushCounts counts;
        memory->store_through(4096 + at, part.data(), part.size(), counts);
        each.lines += counts.lines;
      }
      memory->store(4096, std::vector<std::byte>(4096).data(), 4096);
      FlushCounts counts;
      memory->store_through(values, counts);
      INFO(to_string(instruction) << ", " << values.size() << " values");
      CHECK(std::memcmp(memory->view() + 4096, expected.data(), expected.size()) == 0);
      CHECK(counts.lines == each.lines);
      CHECK(counts.pending_lines == each.lines);
      REQUIRE(memory->fence(counts).ok());
      CHECK(counts.fences == 1);
    }
  }
}

TEST_CASE("model line charges at least its latency for every line") {
  const ScratchFile file;
  const auto memory =
      file.map(emulated(FlushInstruction::automatic, {LatencyModel::line, 2000, 0}));
  FlushCounts counts;
  const std::uint64_t start = ticks();
  REQUIRE(memory->log_flush(kLog, std::size_t{6} * 64, false, counts).ok());
  CHECK(ticks() - start >= ticks_from_nanoseconds(6 * 2000) - 6);
  CHECK(counts.lines == 6);
}

TEST_CASE("models fence and yield charge at least one latency and the lines' bandwidth per fence") {
  const ScratchFile file;
  for (const auto model : {LatencyModel::fence, LatencyModel::yield}) {
    INFO(to_string(model));
    const auto memory = file.map(emulated(FlushInstruction::automatic, {model, 20000, 1000}));
    FlushCounts counts;
    memory->flush(0, std::size_t{5} * 64, counts);
    memory->flush(8192, std::size_t{3} * 64, counts);
    const std::uint64_t start = ticks();
    REQUIRE(memory->fence(counts).ok());
    CHECK(ticks() - start >= ticks_from_nanoseconds(20000 + 8 * 1000) - 16);
  }
}

TEST_CASE("the lines' bandwidth is charged per fence with model line, too") {
  const ScratchFile file;
  const auto memory =
      file.map(emulated(FlushInstruction::automatic, {LatencyModel::line, 0, 5000}));
  FlushCounts counts;
  memory->flush(0, std::size_t{8} * 64, counts);
  const std::uint64_t start = ticks();
  REQUIRE(memory->fence(counts).ok());
  CHECK(ticks() - start >= ticks_from_nanoseconds(8 * 5000) - 8);
}

TEST_CASE("streamed lines are charged and counted as flushed lines are") {
  const ScratchFile file;
  const auto memory =
      file.map(emulated(FlushInstruction::non_temporal, {LatencyModel::line, 2000, 0}));
  const auto data = pattern(128, 5);
  FlushCounts counts;
  memory->log_store(kLog, data.data(), data.size(), true);
  const std::uint64_t start = ticks();
  REQUIRE(memory->log_flush(kLog, data.size(), true, counts).ok());
  CHECK(ticks() - start >= ticks_from_nanoseconds(4000) - 2);
  REQUIRE(memory->fence(counts).ok());
  CHECK(counts.lines == 2);
  CHECK(counts.fences == 1);
}

TEST_CASE("an armed error fails the n-th fence or log flush and all later ones, on every kind") {
  for (const auto kind : {MemoryKind::emulated, MemoryKind::file}) {
    INFO(to_string(kind));
    const ScratchFile file;
    const auto memory = file.map(kind);
    FlushCounts counts;
    inject_io_error(EIO, 3);
    CHECK(memory->log_flush(kLog, 64, false, counts).ok());
    CHECK(memory->fence(counts).ok());
    const std::uint64_t lines = counts.lines;
    CHECK(memory->log_flush(kLog, 64, false, counts).error == EIO);
    CHECK(memory->fence(counts).error == EIO);
    CHECK(counts.lines == lines);
    inject_io_error(0, 0);
    CHECK(memory->log_flush(kLog, 64, false, counts).ok());
    CHECK(memory->fence(counts).ok());
  }
}

TEST_CASE("options that cannot be are refused with what was wanted and found") {
  const ScratchFile file;
  MemoryOptions options;
  options.kind = MemoryKind::file;
  options.latency.nanoseconds = 500;
  CHECK(error_of(file, options) == ErrorCode::unsupported);
  options.latency = {LatencyModel::fence, 0, 5};
  CHECK(error_of(file, options) == ErrorCode::unsupported);
  if (std::getenv("PMEM_IS_PMEM_FORCE") == nullptr) {
    options = {};
    options.kind = MemoryKind::dax;
    CHECK(error_of(file, options) == ErrorCode::unsupported);
  }
}

TEST_CASE("a file that ends too early and a log region outside it are refused") {
  const ScratchFile file;
  MemoryOptions options;
  options.kind = MemoryKind::emulated;
  const auto code = [&](std::uint64_t size) {
    try {
      (void)Memory::map(file.fd(), file.path(), size, options);
    } catch (const Error& error) {
      return error.code();
    }
    FAIL("no error");
    return ErrorCode{};
  };
  CHECK(code(ScratchFile::kSize + 1) == ErrorCode::wrong_size);
  CHECK(code(0) == ErrorCode::wrong_size);
  options.log_offset = ScratchFile::kSize - 4096;
  options.log_length = 8192;
  CHECK(code(ScratchFile::kSize) == ErrorCode::invalid_argument);
  options.log_offset = 64;
  options.log_length = 4096;
  CHECK(code(ScratchFile::kSize) == ErrorCode::invalid_argument);
  options.log_offset = 4096;
  options.log_length = 4096 + 64;
  CHECK(code(ScratchFile::kSize) == ErrorCode::invalid_argument);
  // Their sum is 0.
  options.log_length = ~options.log_offset + 1;
  CHECK(code(ScratchFile::kSize) == ErrorCode::invalid_argument);
  options.log_offset = ScratchFile::kSize + 4096;
  options.log_length = 0;
  CHECK(code(ScratchFile::kSize) == ErrorCode::invalid_argument);
}

TEST_CASE("a file that may not be mapped is an error of permissions") {
  const ScratchFile file;
  const int write_only = open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(write_only >= 0);
  const base::ScopeExit leave([&] { close(write_only); });
  MemoryOptions options;
  options.kind = MemoryKind::emulated;
  const auto error = test::error_of(
      [&] { return Memory::map(write_only, file.path(), ScratchFile::kSize, options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::permission_denied);
  CHECK(error->facts().path == file.path());
}

namespace {

int mappings_of(const ScratchFile& file) {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);) found += line.ends_with(file.path()) ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("a memory that goes away leaves no mapping of its file") {
  const ScratchFile file;
  for (const auto kind : {MemoryKind::automatic, MemoryKind::file, MemoryKind::emulated}) {
    INFO(to_string(kind));
    auto memory = file.map(kind);
    CHECK(mappings_of(file) >= 2);
    memory.reset();
    CHECK(mappings_of(file) == 0);
  }
  if (std::getenv("PMEM_IS_PMEM_FORCE") != nullptr) return;
  CHECK(test::code_of([&] { return file.map(MemoryKind::dax); }) == "unsupported");
  CHECK(mappings_of(file) == 0);
}

TEST_CASE("automatic is file where libpmem sees no persistent memory") {
  if (std::getenv("PMEM_IS_PMEM_FORCE") != nullptr) SP3_SKIP("PMEM_IS_PMEM_FORCE is set");
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::automatic);
  CHECK(memory->kind() == MemoryKind::file);
  CHECK(memory->flush_instruction() == FlushInstruction::none);
  CHECK(memory->writes_blocks());
}

namespace {

// Maps the file while no descriptor can be opened: libpmem opens a file by its name, what is open
// is mapped all the same.
std::unique_ptr<Memory> map_without_descriptors(const ScratchFile& file, MemoryKind kind) {
  // Of a type it has not met, the undefined-behaviour sanitizer looks at an object through a pipe.
  const Error met(ErrorCode::io_error, "");
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const base::ScopeExit restore([&] { (void)setrlimit(RLIMIT_NOFILE, &before); });
  return file.map(kind);
}

}  // namespace

TEST_CASE("what keeps libpmem from mapping a file says nothing of its kind of memory") {
  const ScratchFile file;
  const auto error = test::error_of([&] { return map_without_descriptors(file, MemoryKind::dax); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::io_error);
  CHECK_THAT(error->facts().found, Catch::Contains("open"));
  CHECK(map_without_descriptors(file, MemoryKind::automatic)->kind() == MemoryKind::file);
}

TEST_CASE("a descriptor for reading gives a view", "[emu]") {
  const ScratchFile file;
  const auto data = pattern(64, 9);
  {
    const auto memory = file.map(MemoryKind::emulated);
    memory->store(0, data.data(), data.size());
  }
  const int fd = open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  // Of whatever kind: nothing is ever flushed.
  for (const auto kind :
       {MemoryKind::automatic, MemoryKind::file, MemoryKind::emulated, MemoryKind::dax}) {
    MemoryOptions options;
    options.kind = kind;
    const auto memory = Memory::map(fd, file.path(), ScratchFile::kSize, options);
    CHECK(std::memcmp(memory->view(), data.data(), data.size()) == 0);
  }
  close(fd);
}

namespace {

// How a child ends that does `action`.
int status_of_child(void (*action)(Memory&), Memory& memory) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    action(memory);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("a forked child does not inherit the mappings") {
#ifdef __SANITIZE_ADDRESS__
  SP3_SKIP("the sanitizer turns the fault into a report");
#endif
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::emulated);
  const int read = status_of_child(
      [](Memory& m) { (void)*static_cast<const volatile std::byte*>(m.view()); }, *memory);
  CHECK(read != 0);
  const int wrote = status_of_child([](Memory& m) { m.store_word(0, 1); }, *memory);
  CHECK(wrote != 0);
}

// Run by the next test in a process of its own: libpmem reads its environment once, when loaded.
TEST_CASE("files of forced persistent memory are of kind dax", "[.forced-dax]") {
  const ScratchFile file;
  for (const auto kind : {MemoryKind::automatic, MemoryKind::dax}) {
    const auto memory = file.map(kind);
    REQUIRE(memory->kind() == MemoryKind::dax);
    REQUIRE_FALSE(memory->writes_blocks());
    const auto data = pattern(192, kind == MemoryKind::dax ? 1 : 2);
    FlushCounts counts;
    memory->log_store(kLog, data.data(), data.size(), false);
    REQUIRE(memory->log_flush(kLog, data.size(), false, counts).ok());
    REQUIRE(memory->fence(counts).ok());
    REQUIRE(counts.lines == 3);
    REQUIRE(counts.fences == 1);
    REQUIRE(std::memcmp(memory->view() + kLog, data.data(), data.size()) == 0);
    REQUIRE(file.read(kLog, data.size()) == data);
  }
}

TEST_CASE("automatic is dax where libpmem sees persistent memory") {
  const pid_t child = fork();
  if (child == 0) {
    setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    freopen("/dev/null", "w", stdout);
    execl("/proc/self/exe", "emu_test", "[.forced-dax]", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

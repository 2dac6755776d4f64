// That the native memory executes the instructions on which all durability rests: each line of a
// range flushed by the instruction that was chosen, what is streamed streamed, and a fence behind.
#include "emu/flush.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/memory.h"
#include "tests/emu/instruction_trace.h"
#include "tests/emu/scratch_file.h"
#include "tests/support/skip.h"

// ThreadSanitizer's own instructions are stepped through as well, and the handler, which it watches
// too, would wait for a lock that the stopped code holds.
#ifdef __SANITIZE_THREAD__
#define SP3_NEEDS_STEPS() SP3_SKIP("the sanitizer cannot be stepped through")
#else
#define SP3_NEEDS_STEPS() static_cast<void>(0)
#endif

using namespace sp3;
using namespace sp3::emu;
using sp3::test::Executed;
using sp3::test::pattern;
using sp3::test::Persisting;
using sp3::test::ScratchFile;

namespace {

constexpr std::uint64_t kLog = ScratchFile::kLogOffset;
constexpr std::uint64_t kHome = std::uint64_t{192} * 1024;

std::unique_ptr<Memory> map(const ScratchFile& file, FlushInstruction flush,
                            LatencyModel model = LatencyModel::fence, std::uint32_t latency = 0) {
  MemoryOptions options;
  options.kind = MemoryKind::emulated;
  options.flush = flush;
  options.latency.model = model;
  options.latency.nanoseconds = latency;
  return file.map(options);
}

std::vector<FlushInstruction> available(std::vector<FlushInstruction> among) {
  std::erase_if(among, [](FlushInstruction instruction) { return !cpu_has(instruction); });
  return among;
}

Persisting as_executed(FlushInstruction flush) {
  switch (flush) {
    case FlushInstruction::clwb:
      return Persisting::clwb;
    case FlushInstruction::clflushopt:
      return Persisting::clflushopt;
    default:
      return Persisting::clflush;
  }
}

// The flushes of the lines of [at, at + bytes), and behind them the fence if there is one.
std::vector<Executed> flushes(FlushInstruction flush, const std::byte* at, std::size_t bytes,
                              bool fenced) {
  std::vector<Executed> wanted;
  const std::byte* line = at - reinterpret_cast<std::uintptr_t>(at) % 64;
  for (; line < at + bytes; line += 64) wanted.push_back({as_executed(flush), line});
  if (fenced) wanted.push_back({Persisting::sfence, nullptr});
  return wanted;
}

// The streaming stores of [at, at + bytes), whole lines, and the fence.
std::vector<Executed> streams(const std::byte* at, std::size_t bytes) {
  std::vector<Executed> wanted;
  for (std::size_t i = 0; i < bytes; i += 16) wanted.push_back({Persisting::stream, at + i});
  wanted.push_back({Persisting::sfence, nullptr});
  return wanted;
}

// The same instructions, those before the fence by address: the parts of a line may come in any
// order.
std::vector<Executed> ordered(std::vector<Executed> executed) {
  const auto fence = std::ranges::find(executed, Persisting::sfence, &Executed::what);
  std::ranges::sort(executed.begin(), fence, {}, &Executed::at);
  return executed;
}

}  // namespace

TEST_CASE("the best flush is one that keeps the line, else one that overlaps with others") {
  const bool keeps = cpu_has(FlushInstruction::clwb);
  const bool overlaps = cpu_has(FlushInstruction::clflushopt);
  CHECK(best_flush() == (keeps      ? FlushInstruction::clwb
                         : overlaps ? FlushInstruction::clflushopt
                                    : FlushInstruction::clflush));
}

TEST_CASE("every line of a range is flushed, and fenced, by the instructions that were chosen") {
  SP3_NEEDS_STEPS();
  const auto flush = GENERATE(from_range(available(
      {FlushInstruction::clflush, FlushInstruction::clflushopt, FlushInstruction::clwb})));
  const auto latency = GENERATE(0U, 1U);  // lines that wait for the media are flushed one by one
  const ScratchFile file;
  const auto memory = map(file, flush, LatencyModel::line, latency);
  const bool fenced = flush != FlushInstruction::clflush;
  for (const std::uint64_t before : {0U, 1U, 63U}) {
    for (const std::size_t bytes : {1U, 64U, 65U, 300U}) {
      FlushCounts counts;
      const std::byte* const log = memory->log_view(kLog + before);
      const auto of_log = sp3::test::trace([&] {
        (void)memory->log_flush(kLog + before, bytes, false, counts);
        (void)memory->fence(counts);
      });
      CHECK(of_log == flushes(flush, log, bytes, fenced));
      const std::byte* const home = log - (kLog + before) + kHome + before;
      const auto of_home = sp3::test::trace([&] {
        memory->flush(kHome + before, bytes, counts);
        (void)memory->fence(counts);
      });
      CHECK(of_home == flushes(flush, home, bytes, fenced));
    }
  }
}

TEST_CASE("what is streamed needs a fence alone, and nothing else goes without a flush") {
  SP3_NEEDS_STEPS();
  const ScratchFile file;
  const auto memory = map(file, FlushInstruction::non_temporal);
  const auto data = pattern(192, 3);
  FlushCounts counts;
  const std::byte* const log = memory->log_view(kLog);
  const auto streamed = sp3::test::trace([&] {
    memory->log_store(kLog, data.data(), data.size(), true);
    (void)memory->log_flush(kLog, data.size(), true, counts);
    (void)memory->fence(counts);
  });
  CHECK(ordered(streamed) == streams(log, data.size()));
  const auto stored = sp3::test::trace([&] {
    memory->log_store(kLog, data.data(), data.size(), false);
    (void)memory->log_flush(kLog, data.size(), false, counts);
    (void)memory->fence(counts);
  });
  CHECK(stored == flushes(best_flush(), log, data.size(), true));
}

TEST_CASE("of what is stored through, whole lines are streamed and the rest is flushed") {
  SP3_NEEDS_STEPS();
  const auto flush = GENERATE(from_range(available(
      {FlushInstruction::clflushopt, FlushInstruction::clwb, FlushInstruction::non_temporal})));
  const ScratchFile file;
  const auto memory = map(file, flush);
  const auto data = pattern(200, 3);
  const std::byte* const home = memory->view() + kHome;
  const std::byte* const stored = memory->log_view(kLog) - kLog + kHome;
  const auto executed = [&](std::uint64_t before, std::size_t bytes) {
    FlushCounts counts;
    auto found = ordered(sp3::test::trace([&] {
      memory->store_through(kHome + before, data.data(), bytes, counts);
      (void)memory->fence(counts);
    }));
    CHECK(std::memcmp(home + before, data.data(), bytes) == 0);
    return found;
  };
  const auto part = flush == FlushInstruction::non_temporal ? best_flush() : flush;
  CHECK(executed(0, 128) == streams(stored, 128));
  CHECK(executed(8, 48) == flushes(part, stored, 64, true));
  CHECK(executed(32, 64) == flushes(part, stored, 128, true));
  std::vector<Executed> mixed = flushes(part, stored, 64, false);
  std::ranges::copy(streams(stored + 64, 64), std::back_inserter(mixed));
  mixed.insert(mixed.end() - 1, {as_executed(part), stored + 128});
  CHECK(executed(32, 100) == mixed);
}

TEST_CASE("what is stored through is flushed alone where streaming was not chosen") {
  SP3_NEEDS_STEPS();
  const ScratchFile file;
  const auto memory = map(file, FlushInstruction::clflush);
  const auto data = pattern(128, 3);
  FlushCounts counts;
  const std::byte* const stored = memory->log_view(kLog) - kLog + kHome;
  const auto executed = sp3::test::trace([&] {
    memory->store_through(kHome, data.data(), data.size(), counts);
    (void)memory->fence(counts);
  });
  CHECK(executed == flushes(FlushInstruction::clflush, stored, data.size(), false));
}

TEST_CASE("where caches are flushed by a power loss, the fence is left") {
  SP3_NEEDS_STEPS();
  const ScratchFile file;
  const auto memory = map(file, FlushInstruction::none);
  FlushCounts counts;
  const auto executed = sp3::test::trace([&] {
    memory->flush(kHome, 200, counts);
    (void)memory->fence(counts);
    (void)memory->fence(counts);  // with nothing to order
  });
  CHECK(executed == std::vector<Executed>{{Persisting::sfence, nullptr}});
}

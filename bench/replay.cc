// How fast recovery scans and replays, against what the machine can do at best.
//
//   replay_bench [log MiB] [homes MiB] [sessions] [repeats]
//
// Makes a pool in memory whose log holds 128-byte images at uniformly random slots of the homes,
// one per transaction, stamps interleaved over the sessions; then recovers it with each strategy
// and number of threads. Beside it, in the same run: memcpy between large buffers, and a loop that
// only checks each record's checksum and applies it where it belongs, in log order, without
// flushing, with the pages of the homes mapped as recovery maps them. Bandwidths are payload bytes
// (128 per write) per second; medians of the repeats.
//
// What recovery reports is time of day, and is compared with memcpy by the time of day. The loop,
// and the lines that say so, are CPU time, which shows something on a busy machine too, and are
// compared with memcpy by CPU time.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "emu/clock.h"
#include "emu/executor.h"
#include "log/record_builder.h"
#include "log/record_walker.h"
#include "pool/pool_file.h"
#include "pool/slab_directory.h"
#include "recovery/finish.h"
#include "recovery/recover.h"
#include "recovery/replay.h"
#include "workloads/pool_remover.h"
#include "workloads/process_usage.h"
#include "workloads/scratch_directory.h"
#include "workloads/unused_path.h"

namespace {

using namespace sp3;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kObject = 128;

constexpr std::uint32_t kMostSessions = 64;

struct Setup {
  std::uint64_t log_bytes = 0;
  std::uint64_t home_bytes = 0;
  std::uint32_t sessions = 0;
  int repeats = 0;
};

// Seconds so far. Of CPU time two threads use as much as one if they speed up perfectly.
using Clock = double (*)();
double wall_seconds() { return emu::nanoseconds_from_ticks(emu::ticks()) * 1e-9; }
constexpr Clock cpu_seconds = workloads::cpu_seconds;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double memcpy_bandwidth(int repeats, Clock now) {
  const std::size_t bytes = 256 * kMiB;
  const std::unique_ptr<char[]> from(new char[bytes]);
  const std::unique_ptr<char[]> to(new char[bytes]);
  std::memset(from.get(), 1, bytes);
  std::memset(to.get(), 2, bytes);
  std::vector<double> rates;
  for (int i = 0; i < repeats + 2; ++i) {
    const double start = now();
    std::memcpy(to.get(), from.get(), bytes);
    rates.push_back(static_cast<double>(bytes) / (now() - start));
  }
  return median(rates);
}

// A session needs a segment, and segments are of one MiB. The bench writes logs itself and uses the
// library's own session like any other.
std::uint32_t max_sessions(const Setup& setup) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(kMostSessions, setup.log_bytes / kMiB));
}

class Bench {
 public:
  explicit Bench(const Setup& setup) : setup_(setup) {
    options_.memory = MemoryKind::emulated;
    options_.geometry.log_size = setup.log_bytes;
    options_.geometry.segment_size = kMiB;
    options_.geometry.slab_size = kMiB;
    options_.geometry.max_sessions = max_sessions(setup) - pool::kOwnSessions;
    auto file =
        pool::PoolFile::create(path_, setup.log_bytes + setup.home_bytes + 16 * kMiB, options_);
    carve(*file);
    image_ = recovery::start_generation(*file);
    fill_log(*file);
  }

  void run() {
    const double copy = memcpy_bandwidth(setup_.repeats, wall_seconds);
    const double cpu_copy = memcpy_bandwidth(setup_.repeats, cpu_seconds);
    fmt::print("{} MiB of log, {} MiB of homes, {} sessions, {} writes of {} bytes\n",
               setup_.log_bytes / kMiB, setup_.home_bytes / kMiB, setup_.sessions, writes_,
               kObject);
    fmt::print("memcpy                    {:7.2f} GB/s, by CPU time {:.2f}\n", copy * 1e-9,
               cpu_copy * 1e-9);
    (void)check_and_apply();  // brings the pages of the homes into being
    std::vector<double> plain;
    plain.reserve(static_cast<std::size_t>(setup_.repeats));
    for (int i = 0; i < setup_.repeats; ++i) plain.push_back(check_and_apply());
    const double loop = median(plain);
    fmt::print("crc + apply, one thread   {:7.2f} GB/s  {:.3f} s\n", rate(loop), loop);
    for (const RecoveryStrategy strategy : {RecoveryStrategy::stamp, RecoveryStrategy::dag}) {
      double single = 0;
      double single_cpu = 0;
      for (const std::uint32_t threads : {1U, 2U}) {
        const Replay replay = recover(strategy, threads);
        const RecoveryReport& report = replay.report;
        const double wall = report.order_seconds + report.replay_seconds;
        if (threads == 1) {
          single = wall;
          single_cpu = replay.cpu_replay;
        }
        fmt::print(
            "{:5} {} threads: scan {:.3f} cut {:.3f} order {:.3f} replay {:.3f} flush {:.3f} "
            "total {:.3f} s\n",
            to_string(strategy), threads, report.scan_seconds, report.cut_seconds,
            report.order_seconds, report.replay_seconds, report.flush_seconds,
            report.total_seconds);
        fmt::print(
            "      replay {:.2f}, order + replay {:.2f} GB/s = {:.1f} and {:.1f} % of memcpy; "
            "{:.2f} x one thread\n",
            rate(report.replay_seconds), rate(wall), 100 * rate(report.replay_seconds) * 1e9 / copy,
            100 * rate(wall) * 1e9 / copy, single / wall);
        fmt::print(
            "      CPU: {}flush of the log and replay {:.3f} s = {:.1f} % of memcpy per thread, "
            "{:.2f} x one thread at best; scan to replay {:.0f} % of crc + apply\n",
            strategy == RecoveryStrategy::dag ? "graph, " : "", replay.cpu_replay,
            100 * rate(replay.cpu_replay) * 1e9 / cpu_copy,
            threads * single_cpu / replay.cpu_replay, 100 * loop / replay.cpu_whole);
        fmt::print("      {} MiB of DRAM, {:.1f} bytes per write\n", replay.peak_bytes / kMiB,
                   static_cast<double>(replay.peak_bytes) / static_cast<double>(writes_));
      }
    }
  }

 private:
  // One recovery of the log.
  struct Replay {
    RecoveryReport report;
    double cpu_replay = 0;  // flushing the log, the graph of dag, replaying
    double cpu_whole = 0;   // and scan, cut and what sorts the writes
    std::uint64_t peak_bytes = 0;
  };

  [[nodiscard]] double rate(double seconds) const {
    return static_cast<double>(writes_ * kObject) / seconds * 1e-9;
  }
  [[nodiscard]] std::unique_ptr<pool::PoolFile> open() const {
    return pool::PoolFile::open(path_, options_, pool::PoolFile::Access::read_write);
  }

  // Fewer writes would take less time.
  void require_all(std::uint64_t done, const char* what) const {
    if (done == writes_) return;
    throw std::runtime_error(fmt::format("{} of {} writes were {}", done, writes_, what));
  }

  // Every slab full of objects of one type.
  void carve(pool::PoolFile& file) {
    const auto shape = pool::slab_shape(file.layout().slab_size, kObject);
    pool::Bitmap bitmap(shape.bitmap_bytes / 8);
    for (std::uint32_t i = 0; i < shape.slots; ++i) bitmap[i / 64] |= std::uint64_t{1} << (i % 64);
    auto directory = pool::SlabDirectory::load(file.memory(), file.layout(), file.identity(), 0);
    emu::FlushCounts counts;
    for (const int copy : {0, 1}) {
      for (std::uint32_t slab = 0; slab < file.layout().slabs; ++slab) {
        pool::SlabRecord record;
        record.type = 1;
        record.type_size = kObject;
        record.slot_size = kObject;
        directory.store(file.memory(), copy, slab, record, bitmap, counts);
      }
    }
    (void)file.memory().fence(counts);
  }

  void fill_log(pool::PoolFile& file) {
    const pool::Layout& layout = file.layout();
    const auto shape = pool::slab_shape(layout.slab_size, kObject);
    struct Writer {
      std::uint64_t at = 0;
      std::uint64_t end = 0;
      log::Lsn lsn = 1;
    };
    std::vector<Writer> writers(setup_.sessions);
    writes_to_.assign(layout.slabs, 0);
    std::mt19937_64 random(1);
    log::RecordBuilder builder;
    std::uint32_t segment = 0;
    std::uint64_t object[kObject / 8] = {};
    for (log::Stamp stamp = 1000;; ++stamp) {
      const auto session = static_cast<log::SessionId>(random() % setup_.sessions);
      Writer& writer = writers[session];
      const auto slab = static_cast<std::uint32_t>(random() % layout.slabs);
      const std::uint64_t slot =
          layout.slab_offset(slab) + shape.data + random() % shape.slots * kObject;
      object[0] = stamp;
      builder.reset();
      builder.add_image(slot, object, kObject);
      const std::uint32_t seed = log::seed(image_.fixed.uuid, session, image_.fixed.generation);
      builder.seal(writer.lsn, stamp, writer.lsn - 1, seed);
      if (writer.at + builder.size() > writer.end) {
        if (segment == layout.segments) break;
        log::SegmentHeader header;
        header.generation = image_.fixed.generation;
        header.first_lsn = writer.lsn;
        header.checkpoint_number = image_.fixed.checkpoint_number;
        header.session = session;
        header.crc = log::checksum(header, seed, segment);
        writer.at = layout.segment_offset(segment) + sizeof header;
        writer.end = layout.segment_offset(segment) + layout.segment_size;
        file.memory().log_store(layout.segment_offset(segment++), &header, sizeof header, false);
      }
      file.memory().log_store(writer.at, builder.data(), builder.size(), false);
      writer.at += builder.size();
      ++writer.lsn;
      ++writes_;
      ++writes_to_[slab];
    }
  }

  // What recovery plans when it has seen the log.
  [[nodiscard]] recovery::SlabPlan plan_of(const pool::Layout& layout,
                                           const pool::SlabDirectory& directory) const {
    recovery::SlabPlan plan(layout, directory);
    const std::uint32_t data = pool::slab_shape(layout.slab_size, kObject).data;
    for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
      for (std::uint32_t i = 0; i < writes_to_[slab]; ++i) {
        plan.count(layout.slab_offset(slab) + data);
      }
    }
    return plan;
  }

  double check_and_apply() const {
    const auto file = open();
    const pool::Layout& layout = file->layout();
    const auto directory = pool::SlabDirectory::load(file->memory(), layout, file->identity(), 0);
    recovery::SlabPlan plan = plan_of(layout, directory);
    emu::Executor one_thread(1);
    std::uint64_t applied = 0;
    const double start = cpu_seconds();
    recovery::populate_homes({file->memory(), plan, {}, {}, one_thread, {}});
    for (std::uint32_t segment = 0; segment < layout.segments; ++segment) {
      const std::byte* begin = file->memory().view() + layout.segment_offset(segment);
      log::SegmentHeader header;
      std::memcpy(&header, begin, sizeof header);
      const std::uint32_t seed = log::seed(image_.fixed.uuid, header.session, header.generation);
      log::RecordWalker walker({begin, layout.segment_size}, header.first_lsn, seed);
      while (const auto record = walker.next()) {
        record->for_each_write([&](const log::WriteView& write) {
          file->memory().store(write.slot, write.payload.data(), write.payload.size());
          ++applied;
        });
      }
    }
    const double seconds = cpu_seconds() - start;
    require_all(applied, "applied");
    return seconds;
  }

  // The median run. Afterwards the superblock is put back, so that it can be done again.
  Replay recover(RecoveryStrategy strategy, std::uint32_t threads) {
    std::vector<Replay> replays;
    for (int i = 0; i < setup_.repeats; ++i) {
      auto file = open();
      RecoveryOptions options;
      options.strategy = strategy;
      options.threads = threads;
      Replay replay;
      workloads::MemoryPeak peak;
      const double cpu_start = cpu_seconds();
      double cpu_cut = 0;
      options.progress = [&](const Progress& progress) {
        if (std::strcmp(progress.phase, "cut") == 0) cpu_cut = cpu_seconds();
        if (std::strcmp(progress.phase, "flush") == 0 && progress.done == 0) {
          replay.cpu_whole = cpu_seconds() - cpu_start;
          replay.cpu_replay = cpu_seconds() - cpu_cut;
        }
      };
      replay.report = recovery::recover(*file, options).report;
      require_all(replay.report.replayed, "replayed");
      replay.peak_bytes = peak.bytes();
      replays.push_back(std::move(replay));
      emu::FlushCounts counts;
      for (const int copy : {0, 1}) {
        pool::write_superblock(file->memory(), file->layout(), copy, image_, counts);
      }
      (void)file->memory().fence(counts);
    }
    std::ranges::sort(replays, {}, [](const Replay& r) { return r.report.total_seconds; });
    return replays[replays.size() / 2];
  }

  const Setup setup_;
  Options options_;
  const std::filesystem::path path_ =
      workloads::unused_path(workloads::scratch_directory(), "sp3-replay-bench");
  const workloads::PoolRemover remover_{path_};
  pool::SuperblockImage image_;
  std::uint64_t writes_ = 0;
  std::vector<std::uint32_t> writes_to_;  // by slab
};

// The arguments. Throws std::invalid_argument that names the one that cannot be.
Setup parse(int argc, char** argv) {
  const auto number = [&](int at, const char* name, std::uint64_t otherwise, std::uint64_t least,
                          std::uint64_t most) {
    if (argc <= at) return otherwise;
    const std::string_view text = argv[at];
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    if (error == std::errc{} && end == text.end() && value >= least && value <= most) return value;
    throw std::invalid_argument(
        fmt::format("{}: wanted {} to {}, found '{}'", name, least, most, text));
  };
  if (argc > 5) throw std::invalid_argument("more than four arguments");
  constexpr std::uint64_t kMostMiB = 1 << 20;
  Setup setup;
  setup.log_bytes = number(1, "log MiB", 512, 4, kMostMiB) * kMiB;
  setup.home_bytes = number(2, "homes MiB", 2048, 1, kMostMiB) * kMiB;
  setup.sessions = static_cast<std::uint32_t>(
      number(3, "sessions", std::min(4U, max_sessions(setup)), 1, max_sessions(setup)));
  setup.repeats = static_cast<int>(number(4, "repeats", 3, 1, 1000));
  return setup;
}

}  // namespace

int main(int argc, char** argv) {
  Setup setup;
  try {
    setup = parse(argc, argv);
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "replay_bench: {}\nusage: [log MiB] [homes MiB] [sessions] [repeats]\n",
               error.what());
    return 2;
  }
  try {
    Bench(setup).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "replay_bench: {}\n", error.what());
    return 3;
  }
}

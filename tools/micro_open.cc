#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <sp3/sp3.h>

#include "tools/median.h"
#include "tools/micro.h"
#include "tools/progress_bar.h"
#include "workloads/entry.h"
#include "workloads/pool_remover.h"
#include "workloads/rng.h"

namespace sp3::tools {

namespace {

using Object = workloads::Entry<128>;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<Ptr<Object>> make_pool(const workloads::SystemOptions& options,
                                   const OpenArguments& a) {
  constexpr std::uint64_t kBatch = 256;
  ProgressBar progress;
  std::vector<Ptr<Object>> objects;
  Pool pool = Pool::create(options.path, a.pool_size, options.pool);
  Session session = pool.session();
  while (objects.size() < a.objects) {
    const std::uint64_t first = objects.size();
    const std::uint64_t last = std::min(a.objects, first + kBatch);
    session.run([&](Transaction& tx) {
      objects.resize(first);  // an attempt that was thrown away may have left some
      for (std::uint64_t i = first; i < last; ++i)
        objects.push_back(tx.make<Object>(Object::of(i)));
    });
    progress.show("making objects", last, a.objects);
  }
  session.close();
  pool.close();
  return objects;
}

}  // namespace

std::vector<MicroRow> measure_open(const workloads::SystemOptions& given, const OpenArguments& a,
                                   unsigned repeat) {
  workloads::SystemOptions options = given;
  options.pool_size = a.pool_size;
  workloads::PoolRemover remover(options.path);
  const std::vector<Ptr<Object>> objects = remover.making([&] { return make_pool(options, a); });
  constexpr std::uint64_t kReads = 100'000;

  std::vector<double> opened, first, reads;
  for (unsigned r = 0; r < repeat; ++r) {
    const Clock::time_point start = Clock::now();
    Pool pool = Pool::open(options.path, options.pool);
    opened.push_back(milliseconds_since(start));
    Session session = pool.session();
    session.run([&](Transaction& tx) { static_cast<void>(tx.read(objects.front())); });
    first.push_back(milliseconds_since(start));
    workloads::Rng rng(1 + r);
    for (std::uint64_t i = 0; i < kReads; ++i) {
      const std::uint64_t which = rng.below(objects.size());
      const bool right =
          session.run([&](Transaction& tx) { return tx.read(objects[which]).tag() == which; });
      if (!right) throw std::runtime_error(fmt::format("object {} holds something else", which));
    }
    reads.push_back(milliseconds_since(start));
    session.close();
    pool.close();
  }
  const std::string what =
      fmt::format("{} objects, {} MiB, median of {}", a.objects, a.pool_size >> 20, opened.size());
  return {{"open", median(opened), "ms", what + "; aim <= 50 ms", options},
          {"open_first_transaction", median(first), "ms", "from the start of opening", options},
          {"open_100000_reads", median(reads), "ms",
           "from the start of opening, one read each transaction", options}};
}

}  // namespace sp3::tools

#include "tools/micro_runtime.h"

#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <sp3/sp3.h>

#include "emu/clock.h"
#include "tools/bench_options.h"
#include "workloads/pool_remover.h"
#include "workloads/rng.h"

namespace sp3::tools {
namespace {

constexpr std::size_t kNodes = 64;

// As large as an entry of the workloads.
struct Node {
  std::uint64_t next;
  std::uint64_t value;
  std::array<std::uint64_t, 14> rest;
};

}  // namespace
}  // namespace sp3::tools

template <>
struct sp3::TypeTag<sp3::tools::Node> {
  static constexpr std::string_view name = "sp3.tools.Node";
  static constexpr std::uint32_t version = 1;
};

namespace sp3::tools {
namespace {

class Ring {
 public:
  Ring(const std::filesystem::path& path, const Options& options)
      : remover_(path),
        pool_(remover_.making([&] { return Pool::create(path, kRuntimePool, options); })),
        session_(pool_.session()) {
    // One cycle through all nodes, in no order that a prefetcher or a predictor could guess.
    std::array<std::uint64_t, kNodes> order{};
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = kNodes - 1; i > 0; --i) std::swap(order[i], order[rng_.below(i + 1)]);
    session_.run([&](Transaction& tx) {
      for (Ptr<Node>& node : nodes_) node = tx.make<Node>(Node{});
      for (std::size_t i = 0; i < kNodes; ++i) {
        tx.write(nodes_[order[i]]).next = order[(i + 1) % kNodes];
      }
    });
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    session_.close();
    pool_.close();
  }

  RuntimeMicro reads(const std::string& name, std::uint64_t count, unsigned objects) {
    return time(name, count, [&](Transaction& tx) {
      std::uint64_t at = here_;
      for (unsigned i = 0; i < objects; ++i) {
        const Node& node = tx.read(nodes_[at]);
        // What a search does with it: decides, and cannot be foreseen.
        if ((node.value & 1) != 0) {
          sum_ += at;
        } else {
          sum_ ^= at;
        }
        at = node.next;
      }
      here_ = at;
    });
  }

  RuntimeMicro writes(const std::string& name, std::uint64_t count, unsigned objects) {
    return time(name, count, [&](Transaction& tx) {
      for (unsigned i = 0; i < objects; ++i) {
        Node& node = tx.write(nodes_[(here_ + i) % kNodes]);
        node.value = rng_.next();
        node.rest.fill(node.value);
      }
      here_ = (here_ + objects) % kNodes;
    });
  }

 private:
  template <class Body>
  RuntimeMicro time(const std::string& name, std::uint64_t count, Body body) {
    for (std::uint64_t i = 0; i < count / 10 + kNodes; ++i) session_.run(body);
    const SessionStatistics before = session_.statistics();
    const std::uint64_t start = emu::ticks();
    for (std::uint64_t i = 0; i < count; ++i) session_.run(body);
    const double ns = emu::nanoseconds_from_ticks(emu::ticks() - start);
    const SessionStatistics after = session_.statistics();
    if (sum_ == 1) throw std::runtime_error("the nodes are not what was made");  // uses sum_
    const auto each = static_cast<double>(count);
    return {name, ns / each, static_cast<double>(after.lines - before.lines) / each};
  }

  workloads::PoolRemover remover_;
  Pool pool_;
  Session session_;
  workloads::Rng rng_{7};
  std::array<Ptr<Node>, kNodes> nodes_;
  std::uint64_t here_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace

std::vector<RuntimeMicro> run_runtime_micros(const std::filesystem::path& path,
                                             const Options& options, std::uint64_t count) {
  std::vector<RuntimeMicro> rows;
  Options volatile_only = options;
  volatile_only.policy = CommitPolicy::volatile_only;
  {
    const std::filesystem::path other = std::filesystem::path(path) += ".volatile";
    require_usable(other);
    Ring ring(other, volatile_only);
    rows.push_back(ring.writes("write_1", count, 1));
    rows.push_back(ring.writes("write_8", count, 8));
    // Written with random values, so that what readers decide is random.
    rows.push_back(ring.reads("read_1", count, 1));
    rows.push_back(ring.reads("read_8", count, 8));
  }
  Ring ring(path, options);
  rows.push_back(ring.writes("durable_1", count, 1));
  rows.push_back(ring.writes("durable_8", count, 8));
  return rows;
}

}  // namespace sp3::tools

// The design defines the cut from above: start with everything, lower a session's cut to before its
// first record whose dependency is not within the other's cut, repeat to a fixpoint. This computes
// the same set from below, the way commits advance in a running pool: each session moves over its
// records until one depends on a stamp that the other session has not reached, then sleeps until it
// has. The two differ only for dependencies in a circle, which kept stamps rule out: a dependency's
// stamp is always the smaller one.
//
// Each session sleeps on one dependency at a time and each dependency is passed once, so no record
// is looked at twice, however long the chains are.
#include "recovery/cut.h"

#include <queue>

#include "base/assert.h"
#include "base/mutant.h"

namespace sp3::recovery {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

struct Sleeper {
  base::Stamp until = 0;
  std::size_t prefix = 0;
  bool operator>(const Sleeper& other) const { return until > other.until; }
};
using Sleepers = std::priority_queue<Sleeper, std::vector<Sleeper>, std::greater<>>;

class Advance {
 public:
  explicit Advance(std::span<const log::LogPrefix> prefixes)
      : prefixes_(prefixes), passed_(prefixes.size(), 0), sleepers_(prefixes.size()) {
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      const std::size_t session = prefixes[i].session;
      if (index_.size() <= session) index_.resize(session + 1, kNone);
      index_[session] = i;
    }
  }

  Cut run() {
    std::vector<std::size_t> awake(prefixes_.size());
    for (std::size_t i = 0; i < awake.size(); ++i) awake[i] = i;
    while (!awake.empty()) {
      const std::size_t i = awake.back();
      awake.pop_back();
      go_on(i);
      while (!sleepers_[i].empty() && sleepers_[i].top().until <= reached(i)) {
        awake.push_back(sleepers_[i].top().prefix);
        sleepers_[i].pop();
      }
    }
    return result();
  }

 private:
  // Moves over dependencies until one is not satisfied.
  void go_on(std::size_t i) {
    const auto& dependencies = prefixes_[i].dependencies;
    for (; passed_[i] < dependencies.size(); ++passed_[i]) {
      const log::DependencyRef& dependency = dependencies[passed_[i]];
      SP3_ASSERT(dependency.stamp < prefixes_[i].records[dependency.record()].stamp);
      const std::size_t on =
          dependency.session() < index_.size() ? index_[dependency.session()] : kNone;
      if (base::mutant(base::Mutant::recovery_replays_not_closed)) continue;
      if (on == kNone) return;  // for ever
      if (reached(on) >= dependency.stamp) continue;
      sleepers_[on].push({dependency.stamp, i});
      return;
    }
  }

  [[nodiscard]] std::uint64_t kept(std::size_t i) const {
    const log::LogPrefix& prefix = prefixes_[i];
    const bool all = passed_[i] == prefix.dependencies.size();
    return all ? prefix.records.size() : prefix.dependencies[passed_[i]].record();
  }

  [[nodiscard]] base::Stamp reached(std::size_t i) const {
    const std::uint64_t count = kept(i);
    return count == 0 ? 0 : prefixes_[i].records[count - 1].stamp;
  }

  [[nodiscard]] Cut result() const {
    Cut cut;
    for (std::size_t i = 0; i < prefixes_.size(); ++i) {
      cut.kept.push_back(kept(i));
      cut.missing.emplace_back();
      if (passed_[i] == prefixes_[i].dependencies.size()) continue;
      const log::DependencyRef& dependency = prefixes_[i].dependencies[passed_[i]];
      cut.missing.back() = base::Tid{dependency.stamp, dependency.session()};
    }
    return cut;
  }

  const std::span<const log::LogPrefix> prefixes_;
  std::vector<std::size_t> index_;   // session -> prefix
  std::vector<std::size_t> passed_;  // dependencies of each prefix known to be satisfied
  std::vector<Sleepers> sleepers_;   // by the prefix they wait for
};

}  // namespace

Cut compute_cut(std::span<const log::LogPrefix> prefixes) { return Advance(prefixes).run(); }

}  // namespace sp3::recovery

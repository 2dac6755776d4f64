#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "recovery/cut.h"

namespace sp3::recovery {
namespace {

using log::LogPrefix;

LogPrefix prefix_of(base::SessionId session, const std::vector<base::Stamp>& stamps) {
  LogPrefix prefix;
  prefix.session = session;
  prefix.first_lsn = 1;
  for (const base::Stamp stamp : stamps) prefix.records.push_back({stamp, 0});
  return prefix;
}

// The definition: lower until nothing is missing.
std::vector<std::uint64_t> lower_to_fixpoint(const std::vector<LogPrefix>& prefixes) {
  std::vector<std::uint64_t> kept;
  for (const LogPrefix& prefix : prefixes) kept.push_back(prefix.records.size());
  const auto top = [&](base::SessionId session) -> base::Stamp {
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      if (prefixes[i].session == session) {
        return kept[i] == 0 ? 0 : prefixes[i].records[kept[i] - 1].stamp;
      }
    }
    return 0;
  };
  for (bool lowered = true; lowered;) {
    lowered = false;
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      for (const log::DependencyRef& dependency : prefixes[i].dependencies) {
        if (dependency.record() >= kept[i]) break;
        if (dependency.stamp <= top(dependency.session())) continue;
        kept[i] = dependency.record();
        lowered = true;
        break;
      }
    }
  }
  return kept;
}

}  // namespace

TEST_CASE("the cut is the largest closed set, by brute force on random dependencies") {
  std::mt19937_64 random(5);
  std::uint64_t dropped = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t sessions = 1 + random() % 6;
    std::vector<std::vector<base::Stamp>> stamps(sessions);
    struct Edge {
      std::size_t from;
      std::size_t record;
      base::SessionId on;
      base::Stamp stamp;
    };
    std::vector<Edge> edges;
    for (base::Stamp stamp = 2; stamp < 60; ++stamp) {
      const std::size_t session = random() % sessions;
      stamps[session].push_back(stamp);
      for (std::uint64_t n = random() % 3; n > 0; --n) {
        // Now and then on a record that its session's log has lost, or on a session without a log.
        const auto on =
            static_cast<base::SessionId>(random() % (sessions + (random() % 20 == 0 ? 1 : 0)));
        if (on == session) continue;
        if (on == sessions) {
          edges.push_back({session, stamps[session].size() - 1, on, stamp - 1});
        } else if (!stamps[on].empty()) {
          const auto& all = stamps[on];
          edges.push_back({session, stamps[session].size() - 1, on,
                           all[all.size() - 1 - random() % std::min<std::size_t>(3, all.size())]});
        }
      }
    }
    std::vector<LogPrefix> prefixes;
    for (std::size_t s = 0; s < sessions; ++s) {
      auto kept = stamps[s];
      kept.resize(kept.size() - random() % (kept.size() + 1) / 3);
      LogPrefix prefix = prefix_of(static_cast<base::SessionId>(s), kept);
      for (const Edge& edge : edges) {
        if (edge.from != s || edge.record >= kept.size()) continue;
        prefix.dependencies.emplace_back(edge.stamp, edge.on, edge.record);
      }
      prefixes.push_back(std::move(prefix));
    }
    const Cut cut = compute_cut(prefixes);
    REQUIRE(cut.kept == lower_to_fixpoint(prefixes));
    for (std::size_t s = 0; s < sessions; ++s) {
      const bool whole = cut.kept[s] == prefixes[s].records.size();
      dropped += whole ? 0 : 1;
      CHECK(cut.missing[s].has_value() == !whole);
    }
  }
  CHECK(dropped > 1000);
}

TEST_CASE("a chain that zigzags through all sessions is cut in linear time") {
  constexpr std::size_t kSessions = 64;
  constexpr std::size_t kRecords = 400'000;
  std::vector<LogPrefix> prefixes;
  for (std::size_t s = 0; s < kSessions; ++s)
    prefixes.push_back(prefix_of(static_cast<base::SessionId>(s), {}));
  for (std::size_t i = 0; i < kRecords; ++i) {
    LogPrefix& prefix = prefixes[i % kSessions];
    prefix.records.push_back({i + 1, 0});
    if (i != 0) {
      prefix.dependencies.emplace_back(i, static_cast<base::SessionId>((i - 1) % kSessions),
                                       prefix.records.size() - 1);
    }
  }
  SECTION("all there") {
    for (const std::uint64_t kept : compute_cut(prefixes).kept) CHECK(kept == kRecords / kSessions);
  }
  SECTION("the first one lost") {
    prefixes[0].records.clear();
    prefixes[0].dependencies.clear();
    for (const std::uint64_t kept : compute_cut(prefixes).kept) CHECK(kept == 0);
  }
}

}  // namespace sp3::recovery

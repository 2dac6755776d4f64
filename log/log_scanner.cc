// How the scan is put together.
//
//   1. find_runs: all headers of this generation, in parallel.
//   2. walk_run: each run that can matter, on its own, in parallel.
//   3. chain: per session, walks are joined run to run by LSN.
//   4. A large object may hold bytes that look like a log, and old headers survive in the tail of a
//      long run. What looks like a header inside what was read of a run that holds a record above
//      the floor is none: it is taken out, and the walk is made again without it. Only what was
//      read: a recycled run's header may be believed once more, if the header of the run that
//      began anew in its place was lost and its first record was not; in what the old one claims
//      besides there may be others' runs by then.
//   5. judge: what lies beyond each end is searched for witnesses.
#include "log/log_scanner.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "base/mutant.h"
#include "emu/threads.h"

namespace sp3::log {
namespace {

// Consecutive runs of one session, by first LSN, from the run that holds its head on.
struct Candidates {
  std::vector<SegmentRun> runs;
  std::vector<RunWalk> walks;
};

// The runs of a session's prefix, as indices into Candidates.
struct Chain {
  std::vector<std::size_t> runs;
  Lsn next_lsn = 0;
};

class Scan {
 public:
  Scan(const LogSource& source, Stamp floor, std::span<const Lsn> heads, emu::Executor& executor,
       const ScanProgress& progress)
      : source_(source), floor_(floor), heads_(heads), executor_(executor), progress_(progress) {}

  ScanResult run() {
    search_ = find_runs(source_, executor_);
    do {
      group();
      walk_all();
      chain_all();
    } while (take_out_covered());
    judge_all();
    join_all();
    result_.newest = search_.newest;
    return std::move(result_);
  }

 private:
  void group();
  void walk_all();
  void chain_all();
  Chain chain(SessionId session, const Candidates& candidates) const;
  bool take_out_covered();
  void judge_all();
  Beyond look_beyond_end(std::size_t index) const;
  void judge(std::size_t index, Beyond& beyond);
  void join_all();
  void join(std::size_t index);
  void note(const Beyond& beyond);

  const LogSource& source_;
  const Stamp floor_;
  const std::span<const Lsn> heads_;
  emu::Executor& executor_;
  const ScanProgress& progress_;

  RunSearch search_;
  std::vector<Candidates> candidates_;  // one per entry of result_.sessions, as is chains_
  std::vector<Chain> chains_;
  std::vector<Lsn> durable_;  // per session: its log was durable up to here
  ScanResult result_;
};

// Drops the runs that end before their session's head: history.
void Scan::group() {
  candidates_.clear();
  result_ = {};
  const std::vector<SegmentRun>& runs = search_.runs;
  for (std::size_t begin = 0; begin < runs.size();) {
    std::size_t end = begin;
    std::size_t first = begin;
    const SessionId session = runs[begin].session;
    for (; end < runs.size() && runs[end].session == session; ++end) {
      if (runs[end].first_lsn <= heads_[session] && runs[end].first_lsn != runs[first].first_lsn) {
        first = end;
      }
    }
    Candidates candidates;
    candidates.runs.assign(runs.begin() + static_cast<std::ptrdiff_t>(first),
                           runs.begin() + static_cast<std::ptrdiff_t>(end));
    candidates_.push_back(std::move(candidates));
    LogPrefix log;
    log.session = session;
    result_.sessions.push_back(std::move(log));
    begin = end;
  }
}

void Scan::walk_all() {
  std::vector<std::pair<std::size_t, std::size_t>> tasks;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    candidates_[i].walks.resize(candidates_[i].runs.size());
    for (std::size_t j = 0; j < candidates_[i].runs.size(); ++j) {
      tasks.emplace_back(i, j);
      total += candidates_[i].runs[j].bytes;
    }
  }
  emu::Mutex mutex;
  std::uint64_t done = 0;
  executor_.parallel_for(tasks.size(), [&](std::size_t task) {
    Candidates& candidates = candidates_[tasks[task].first];
    const std::size_t j = tasks[task].second;
    const SegmentRun& run = candidates.runs[j];
    candidates.walks[j] = walk_run(source_, run, heads_[run.session], floor_);
    const std::lock_guard lock(mutex);
    result_.bytes_scanned += candidates.walks[j].position;
    done += run.bytes;
    if (progress_) progress_(done, total);
  });
}

void Scan::chain_all() {
  chains_.clear();
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    chains_.push_back(chain(result_.sessions[i].session, candidates_[i]));
  }
}

Chain Scan::chain(SessionId session, const Candidates& candidates) const {
  Chain chain;
  chain.next_lsn = heads_[session];
  Stamp last_stamp = 0;
  const std::vector<SegmentRun>& runs = candidates.runs;
  for (std::size_t i = 0; i < runs.size();) {
    // A run that was started and left empty may have a twin with the same first LSN; the one that
    // goes on is meant.
    std::size_t best = i;
    std::size_t end = i;
    for (; end < runs.size() && runs[end].first_lsn == runs[i].first_lsn; ++end) {
      if (candidates.walks[end].next_lsn > candidates.walks[best].next_lsn) best = end;
    }
    const RunWalk& walk = candidates.walks[best];
    const Lsn first_lsn = runs[i].first_lsn;
    i = end;
    const bool starts = chain.runs.empty();
    if (first_lsn > chain.next_lsn) break;                // the run between is missing
    if (!starts && first_lsn < chain.next_lsn) continue;  // left empty, then forgotten
    if (!starts && walk.first_stamp != 0 && walk.first_stamp <= last_stamp) break;
    chain.runs.push_back(best);
    chain.next_lsn = std::max(chain.next_lsn, walk.next_lsn);
    last_stamp = std::max(last_stamp, walk.last_stamp);
    if (walk.next_lsn < chain.next_lsn || !walk.contradiction.empty()) break;
  }
  return chain;
}

// One round of step 4: outermost runs first, since what lies inside may be made up as a whole.
bool Scan::take_out_covered() {
  struct Live {
    const SegmentRun* run;
    const RunWalk* walk;
    // How far into the run it hides headers: as far as it was read.
    [[nodiscard]] std::uint64_t reach() const {
      return base::mutant(base::Mutant::recovery_hides_unread_headers) ? run->bytes
                                                                       : walk->position;
    }
    [[nodiscard]] bool covers(std::uint64_t offset) const {
      const std::uint64_t at = offset - run->offset;
      return offset > run->offset && at < reach() && !walk->is_in_gap(at);
    }
  };
  // Those that reach beyond their first segment.
  std::vector<Live> live;
  for (std::size_t i = 0; i < chains_.size(); ++i) {
    for (const std::size_t run : chains_[i].runs) {
      const Live l{&candidates_[i].runs[run], &candidates_[i].walks[run]};
      if (l.walk->records.empty() || l.reach() <= source_.layout.segment_size) continue;
      live.push_back(l);
    }
  }
  std::ranges::sort(live, {}, [](const Live& l) { return l.run->offset; });
  const std::size_t before = search_.runs.size();
  std::vector<Live> outer;  // of those so far, what reaches furthest
  for (const Live& l : live) {
    if (std::ranges::any_of(outer, [&](const Live& o) { return o.covers(l.run->offset); })) {
      continue;
    }
    std::erase_if(outer, [&](const Live& o) { return o.run->offset + o.reach() <= l.run->offset; });
    outer.push_back(l);
    const auto inside = [&](std::uint32_t segment) {
      return l.covers(source_.layout.segment_offset(segment));
    };
    std::erase_if(search_.runs, [&](const SegmentRun& other) { return inside(other.segment); });
    std::erase_if(search_.bad, [&](const BadHeader& bad) { return inside(bad.segment); });
  }
  return search_.runs.size() != before;
}

void Scan::note(const Beyond& beyond) {
  result_.largest_stamp = std::max(result_.largest_stamp, beyond.largest_stamp);
  for (const Watermark& mark : beyond.watermarks) {
    if (mark.session < durable_.size())
      durable_[mark.session] = std::max(durable_[mark.session], mark.lsn);
  }
}

// Watermarks may be in any session's log, so all evidence is taken before any verdict.
void Scan::judge_all() {
  durable_.assign(heads_.size(), 0);
  for (const Candidates& candidates : candidates_) {
    for (const RunWalk& walk : candidates.walks) note({0, {}, walk.last_stamp, 0, walk.watermarks});
  }
  std::vector<Beyond> beyond(candidates_.size());
  executor_.parallel_for(beyond.size(), [&](std::size_t i) { beyond[i] = look_beyond_end(i); });
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    note(beyond[i]);
    Lsn& durable = durable_[result_.sessions[i].session];
    durable = std::max(durable, beyond[i].persisted_upto);
  }
  for (const BadHeader& bad : search_.bad) {
    result_.damage.push_back({source_.layout.segment_offset(bad.segment), bad.what});
  }
  for (std::size_t i = 0; i < beyond.size(); ++i) judge(i, beyond[i]);
  // Sessions of which not even a run is left.
  for (std::size_t session = 0; session < durable_.size(); ++session) {
    const auto known = std::lower_bound(
        result_.sessions.begin(), result_.sessions.end(), session,
        [](const LogPrefix& log, std::size_t wanted) { return log.session < wanted; });
    const bool found = known != result_.sessions.end() && known->session == session;
    if (found || durable_[session] < heads_[session]) continue;
    result_.damage.push_back(
        {source_.layout.log_offset,
         fmt::format("the log of session {} is gone: it was durable from record {} to {}", session,
                     heads_[session], durable_[session])});
  }
}

Beyond Scan::look_beyond_end(std::size_t index) const {
  const Candidates& candidates = candidates_[index];
  const Chain& chain = chains_[index];
  const Lsn missing = chain.next_lsn;
  Beyond beyond;
  if (!chain.runs.empty()) {
    const std::size_t last = chain.runs.back();
    look_beyond(source_, candidates.runs[last], candidates.walks[last].position, missing, beyond);
  }
  for (std::size_t j = 0; j < candidates.runs.size(); ++j) {
    const bool searched = !chain.runs.empty() && chain.runs.back() == j;
    if (searched || candidates.runs[j].first_lsn < missing) continue;
    look_beyond(source_, candidates.runs[j], sizeof(SegmentHeader), missing, beyond);
  }
  return beyond;
}

void Scan::judge(std::size_t index, Beyond& beyond) {
  LogPrefix& log = result_.sessions[index];
  const Chain& chain = chains_[index];
  log.next_lsn = chain.next_lsn;
  log.beyond_records = beyond.records;
  log.beyond = std::move(beyond.named);
  std::string contradiction;
  bool begun = beyond.largest_stamp != 0;
  if (!chain.runs.empty()) {
    const SegmentRun& run = candidates_[index].runs[chain.runs.back()];
    const RunWalk& walk = candidates_[index].walks[chain.runs.back()];
    log.end_offset = run.offset + walk.position;
    contradiction = walk.contradiction;
    for (const std::uint64_t at : {walk.position, base::round_up(walk.position, kFileBlock)}) {
      if (run.bytes - at < sizeof(RecordHeader)) break;
      RecordHeader header;
      std::memcpy(&header, source_.file + run.offset + at, sizeof header);
      begun = begun || header.lsn == chain.next_lsn;
    }
  }
  log.end = begun ? PrefixEnd::torn : PrefixEnd::clean;
  const std::uint64_t at = log.end_offset != 0 ? log.end_offset : source_.layout.log_offset;
  if (!contradiction.empty()) {
    log.end = PrefixEnd::damaged;
    result_.damage.push_back({at, fmt::format("session {}: {}", log.session, contradiction)});
  } else if (durable_[log.session] >= log.next_lsn) {
    log.end = PrefixEnd::damaged;
    result_.damage.push_back(
        {at, fmt::format("session {}: record {} cannot be read, but the log was "
                         "durable up to record {}",
                         log.session, log.next_lsn, durable_[log.session])});
  }
}

void Scan::join_all() {
  executor_.parallel_for(candidates_.size(), [&](std::size_t i) { join(i); });
  std::erase_if(result_.sessions, [](const LogPrefix& log) {
    return log.records.empty() && log.end == PrefixEnd::clean && log.ranges.empty();
  });
}

void Scan::join(std::size_t index) {
  LogPrefix& log = result_.sessions[index];
  Candidates& candidates = candidates_[index];
  std::size_t records = 0;
  for (const std::size_t run : chains_[index].runs) records += candidates.walks[run].records.size();
  log.records.reserve(records);
  for (const std::size_t run : chains_[index].runs) {
    RunWalk walk = std::move(candidates.walks[run]);
    log.ranges.push_back({candidates.runs[run].offset, walk.position});
    if (walk.records.empty()) continue;
    if (log.records.empty()) log.first_lsn = walk.first_lsn;
    for (const DependencyRef& dependency : walk.dependencies) {
      log.dependencies.emplace_back(dependency.stamp, dependency.session(),
                                    log.records.size() + dependency.record());
    }
    log.records.insert(log.records.end(), walk.records.begin(), walk.records.end());
    log.watermark_records += walk.watermark_records;
  }
}

}  // namespace

ScanResult scan_logs(const LogSource& source, Stamp floor, std::span<const Lsn> heads,
                     emu::Executor& executor, const ScanProgress& progress) {
  return Scan(source, floor, heads, executor, progress).run();
}

}  // namespace sp3::log

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
//      besides there may be others' runs by then. A run that begins in a gap of what was read ends
//      where the gap ends: no byte belongs to two records.
//   5. judge: what lies beyond each end is searched for witnesses.
//
// Steps 2 to 4 are repeated until nothing is taken out; what stayed as it was is not walked again.
// All reading, and each round, draws on one allowance (log/read_allowance.h). When it is spent,
// what has been found is all there is, and that is damage.
#include "log/log_scanner.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "base/damage_list.h"
#include "base/mutant.h"
#include "emu/threads.h"

namespace sp3::log {
namespace {

// Consecutive runs of one session, by first LSN, from the run that holds its head on.
struct Candidates {
  std::vector<SegmentRun> runs;
  std::vector<const RunWalk*> walks;
};

// The runs of a session's prefix, as indices into Candidates.
struct Chain {
  std::vector<std::size_t> runs;
  Lsn next_lsn = 0;
  Stamp last_stamp = 0;
};

class Scan {
 public:
  Scan(const LogSource& source, Stamp floor, std::span<const Lsn> heads, emu::Executor& executor,
       const ScanProgress& progress)
      : source_(source),
        floor_(floor),
        heads_(heads),
        executor_(executor),
        progress_(progress),
        allowance_((kMostPasses + source.layout.max_sessions) * source.layout.log_bytes,
                   source.layout.log_bytes / kBytesForEachKept),
        walks_(source.layout.segments) {}

  ScanResult run() {
    search_ = find_runs(source_, executor_);
    do {
      group();
      walk_all();
      chain_all();
    } while (take_out_covered() && !allowance_.is_spent());
    judge_all();
    for (const auto& walk : walks_) result_.bytes_scanned += walk ? walk->position : 0;
    join_all();
    result_.newest = search_.newest;
    result_.bytes_read = allowance_.used();
    return std::move(result_);
  }

 private:
  void group();
  void walk_all();
  void walk_all(const std::vector<SegmentRun>& runs);
  void chain_all();
  Chain chain(SessionId session, const Candidates& candidates) const;
  bool take_out_covered();
  void judge_all();
  std::vector<FileRange> beyond_end(std::size_t index) const;
  Beyond look_beyond_end(std::size_t index);
  void judge(std::size_t index, Beyond& beyond);
  void join_all();
  void join(std::size_t index);
  void note(Stamp largest_stamp, std::span<const Watermark> watermarks);

  const LogSource& source_;
  const Stamp floor_;
  const std::span<const Lsn> heads_;
  emu::Executor& executor_;
  const ScanProgress& progress_;

  ReadAllowance allowance_;
  RunSearch search_;
  std::vector<std::unique_ptr<RunWalk>> walks_;  // by the run's first segment
  std::uint64_t walked_ = 0;                     // bytes of the runs among them
  std::vector<Candidates> candidates_;           // one per entry of result_.sessions, as is chains_
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

// Walks what was not walked before.
void Scan::walk_all() {
  std::vector<SegmentRun> unread;
  for (const Candidates& candidates : candidates_) {
    for (const SegmentRun& run : candidates.runs) {
      if (!walks_[run.segment]) unread.push_back(run);
    }
  }
  walk_all(unread);
  for (Candidates& candidates : candidates_) {
    candidates.walks.clear();
    for (const SegmentRun& run : candidates.runs) {
      candidates.walks.push_back(walks_[run.segment].get());
    }
  }
}

void Scan::walk_all(const std::vector<SegmentRun>& runs) {
  const std::uint64_t used = allowance_.used();
  const std::uint64_t kept = allowance_.kept();
  std::uint64_t total = walked_;
  for (const SegmentRun& run : runs) total += run.bytes;
  const auto walk = [&](const SegmentRun& run) {
    walks_[run.segment] =
        std::make_unique<RunWalk>(walk_run(source_, run, heads_[run.session], floor_, allowance_));
  };
  emu::Mutex mutex;
  executor_.parallel_for(runs.size(), [&](std::size_t i) {
    walk(runs[i]);
    const std::lock_guard lock(mutex);
    walked_ += runs[i].bytes;
    if (progress_) progress_(walked_, total);
  });
  if (!allowance_.is_spent()) return;
  // What was read in time depends on the threads. What is replayed must not: a recovery that was
  // killed must be followed by one that chooses the same records.
  allowance_.set(used, kept);
  for (const SegmentRun& run : runs) walk(run);
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
  const std::vector<SegmentRun>& runs = candidates.runs;
  for (std::size_t i = 0; i < runs.size();) {
    // A run that was started and left empty may have a twin with the same first LSN; the one that
    // goes on is meant.
    std::size_t best = i;
    std::size_t end = i;
    for (; end < runs.size() && runs[end].first_lsn == runs[i].first_lsn; ++end) {
      if (candidates.walks[end]->next_lsn > candidates.walks[best]->next_lsn) best = end;
    }
    const RunWalk& walk = *candidates.walks[best];
    const Lsn first_lsn = runs[i].first_lsn;
    i = end;
    const bool starts = chain.runs.empty();
    if (first_lsn > chain.next_lsn) break;                // the run between is missing
    if (!starts && first_lsn < chain.next_lsn) continue;  // left empty, then forgotten
    if (!starts && walk.first_stamp != 0 && walk.first_stamp <= chain.last_stamp) break;
    chain.runs.push_back(best);
    chain.next_lsn = std::max(chain.next_lsn, walk.next_lsn);
    chain.last_stamp = std::max(chain.last_stamp, walk.last_stamp);
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
  };
  const std::uint64_t segment_size = source_.layout.segment_size;
  // Those that reach beyond their first segment.
  std::vector<Live> live;
  for (std::size_t i = 0; i < chains_.size(); ++i) {
    for (const std::size_t run : chains_[i].runs) {
      const Live l{&candidates_[i].runs[run], candidates_[i].walks[run]};
      if (l.walk->records.empty() || l.reach() <= segment_size) continue;
      live.push_back(l);
    }
  }
  std::ranges::sort(live, {}, [](const Live& l) { return l.run->offset; });
  std::vector<bool> hidden(source_.layout.segments);
  std::vector<std::uint64_t> gap_ends(source_.layout.segments);  // in the file; 0: in no gap
  for (const Live& l : live) {
    if (hidden[l.run->segment]) continue;
    for (std::uint64_t at = segment_size; at < l.reach(); at += segment_size) {
      const std::uint64_t segment = l.run->segment + at / segment_size;
      if (l.walk->is_in_gap(at)) {
        gap_ends[segment] = l.run->offset + l.walk->gap_end;
      } else {
        hidden[segment] = true;
      }
    }
  }
  const std::size_t before = search_.runs.size();
  std::erase_if(search_.runs, [&](const SegmentRun& run) { return hidden[run.segment]; });
  std::erase_if(search_.bad, [&](const BadHeader& bad) { return hidden[bad.segment]; });
  allowance_.use(before * sizeof(SegmentHeader));
  bool changed = search_.runs.size() != before;
  for (SegmentRun& run : search_.runs) {
    const std::uint64_t end = gap_ends[run.segment];
    if (end == 0 || run.offset + run.bytes <= end) continue;
    run.bytes = end - run.offset;
    walks_[run.segment].reset();
    changed = true;
  }
  return changed;
}

void Scan::note(Stamp largest_stamp, std::span<const Watermark> watermarks) {
  result_.largest_stamp = std::max(result_.largest_stamp, largest_stamp);
  for (const Watermark& mark : watermarks) {
    if (mark.session < durable_.size())
      durable_[mark.session] = std::max(durable_[mark.session], mark.lsn);
  }
}

// Watermarks may be in any session's log, so all evidence is taken before any verdict.
void Scan::judge_all() {
  durable_.assign(heads_.size(), 0);
  for (const Candidates& candidates : candidates_) {
    for (const RunWalk* walk : candidates.walks) note(walk->last_stamp, walk->watermarks);
  }
  std::vector<Beyond> beyond(candidates_.size());
  executor_.parallel_for(beyond.size(), [&](std::size_t i) { beyond[i] = look_beyond_end(i); });
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    note(beyond[i].largest_stamp, beyond[i].watermarks);
    Lsn& durable = durable_[result_.sessions[i].session];
    durable = std::max(durable, beyond[i].persisted_upto);
  }
  if (allowance_.is_spent()) {
    base::add_damage(
        result_, {source_.layout.log_offset,
                  fmt::format("the log is not read to its end: its runs overlap as those of no log "
                              "that was written; {} bytes have been read of {}, {} entries found",
                              allowance_.used(), source_.layout.log_bytes, allowance_.kept())});
  }
  for (const BadHeader& bad : search_.bad) {
    base::add_damage(result_, {source_.layout.segment_offset(bad.segment), bad.what});
  }
  for (std::size_t i = 0; i < beyond.size(); ++i) judge(i, beyond[i]);
  // Sessions of which not even a run is left.
  for (std::size_t session = 0; session < durable_.size(); ++session) {
    const auto known = std::lower_bound(
        result_.sessions.begin(), result_.sessions.end(), session,
        [](const LogPrefix& log, std::size_t wanted) { return log.session < wanted; });
    const bool found = known != result_.sessions.end() && known->session == session;
    if (found || durable_[session] < heads_[session]) continue;
    base::add_damage(
        result_, {source_.layout.log_offset,
                  fmt::format("the log of session {} is gone: it was durable from record {} to {}",
                              session, heads_[session], durable_[session])});
  }
}

// Where witnesses may be, in file order. Runs that overlap, of which a session that began some and
// left them empty may have many, make one range: it is searched once.
std::vector<FileRange> Scan::beyond_end(std::size_t index) const {
  const Candidates& candidates = candidates_[index];
  const Chain& chain = chains_[index];
  std::vector<FileRange> ranges;
  for (std::size_t j = 0; j < candidates.runs.size(); ++j) {
    const SegmentRun& run = candidates.runs[j];
    const bool last = !chain.runs.empty() && chain.runs.back() == j;
    if (!last && run.first_lsn < chain.next_lsn) continue;
    const std::uint64_t from = last ? candidates.walks[j]->position : sizeof(SegmentHeader);
    ranges.push_back({run.offset + from, run.bytes - from});
  }
  std::ranges::sort(ranges, {}, &FileRange::offset);
  std::vector<FileRange> apart;
  for (const FileRange& range : ranges) {
    if (apart.empty() || apart.back().end() <= range.offset) {
      apart.push_back(range);
    } else if (range.end() > apart.back().end()) {
      apart.back().length = range.end() - apart.back().offset;
    }
  }
  return apart;
}

Beyond Scan::look_beyond_end(std::size_t index) {
  Beyond beyond;
  for (const FileRange& range : beyond_end(index)) {
    look_beyond(source_, result_.sessions[index].session, range, chains_[index].next_lsn,
                allowance_, beyond);
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
    const RunWalk& walk = *candidates_[index].walks[chain.runs.back()];
    log.end_offset = run.offset + walk.position;
    contradiction = walk.contradiction;
    for (const std::uint64_t at : {walk.position, base::round_up(walk.position, kFileBlock)}) {
      if (at + sizeof(RecordHeader) > run.bytes) break;
      RecordHeader header;
      std::memcpy(&header, source_.file + run.offset + at, sizeof header);
      // What an earlier generation left there has no such stamp.
      begun = begun ||
              (header.lsn == chain.next_lsn && header.stamp > std::max(floor_, chain.last_stamp));
    }
  }
  log.end = begun ? PrefixEnd::torn : PrefixEnd::clean;
  const std::uint64_t at = log.end_offset != 0 ? log.end_offset : source_.layout.log_offset;
  if (!contradiction.empty()) {
    log.end = PrefixEnd::damaged;
    base::add_damage(result_, {at, fmt::format("session {}: {}", log.session, contradiction)});
  } else if (durable_[log.session] >= log.next_lsn) {
    log.end = PrefixEnd::damaged;
    base::add_damage(result_,
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
  const Candidates& candidates = candidates_[index];
  std::size_t records = 0;
  for (const std::size_t run : chains_[index].runs)
    records += candidates.walks[run]->records.size();
  log.records.reserve(records);
  for (const std::size_t run : chains_[index].runs) {
    const RunWalk walk = std::move(*walks_[candidates.runs[run].segment]);
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

// Two rounds at most. A write can only be checked against its slab's class, and the class may come
// from a make anywhere in the log. So the first round checks against the directory and collects the
// makes that disagree with it; if there are any, the plan is carved and a second round decides. If
// makes clash, they alone are bad: what else seemed so may be good where their sessions end.
#include "recovery/preparation.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/scaled.h"
#include "recovery/apply.h"

namespace sp3::recovery {
namespace {

std::uint64_t records_per_stretch() noexcept {
  constexpr std::uint64_t kRecords = std::uint64_t{16} * 1024;
  return base::scaled<std::uint64_t>(kRecords, kRecords, 2);
}

struct Carving {
  log::WriteView write;
  std::uint64_t record = 0;
};

struct Found {
  std::optional<BadRecord> bad;  // the first
  std::vector<Carving> carvings;
  std::uint64_t transactions = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes = 0;
};

BadRecord bad_record(const Selection& selection, std::size_t prefix, std::uint64_t record,
                     std::string_view why) {
  const log::LogPrefix& log = selection.prefixes[prefix];
  return {prefix, record, log.records[record].offset,
          fmt::format("session {}, record {}: {}", log.session, log.first_lsn + record, why)};
}

// Whether one of the prefix was found before, which ends it. REQUIRES: prefixes come in order.
bool has_ended(const std::vector<BadRecord>& bad, std::size_t prefix) {
  return !bad.empty() && bad.back().prefix == prefix;
}

class Round {
 public:
  Round(const Selection& selection, SlabPlan& plan, std::uint32_t shards, bool last)
      : selection_(selection), plan_(plan), shards_(shards), last_(last) {}

  void examine(Preparation::Stretch& stretch, Found& found) const {
    stretch.shards.assign(shards_, {});
    for (auto& shard : stretch.shards) shard.reserve(2 * (stretch.end - stretch.begin) / shards_);
    const log::LogPrefix& prefix = selection_.prefixes[stretch.prefix];
    for (std::uint64_t i = stretch.begin; i < stretch.end; ++i) {
      if (i + kAskAhead < stretch.end) {
        __builtin_prefetch(selection_.file + prefix.records[i + kAskAhead].offset);
      }
      const log::RecordView record =
          log::trusted_record(selection_.file + prefix.records[i].offset);
      if (record.kind() == log::RecordKind::transaction) ++found.transactions;
      found.bytes += record.length();
      record.for_each_write([&](const log::WriteView& write) {
        examine(write, {prefix.records[i].stamp, offset_of(write)}, i, stretch, found);
      });
    }
  }

 private:
  static constexpr std::uint64_t kAskAhead = 32;  // records

  [[nodiscard]] std::uint64_t offset_of(const log::WriteView& write) const {
    return static_cast<std::uint64_t>(write.payload.data() - selection_.file) -
           sizeof(log::WriteHeader);
  }

  void examine(const log::WriteView& write, const WriteRef& ref, std::uint64_t record,
               Preparation::Stretch& stretch, Found& found) const {
    ++found.writes;
    stretch.shards[shard_of(write.slot, shards_)].push_back(ref);
    const SlabPlan::Verdict verdict = plan_.check(write);
    if (verdict == SlabPlan::Verdict::good) {
      plan_.count(write.slot);
      if (allocates(write)) plan_.touch(write.slot);
    } else if (verdict == SlabPlan::Verdict::carves && !last_) {
      note(found.carvings, {write, record});
    } else if (!found.bad) {
      found.bad = bad_record(selection_, stretch.prefix, record, plan_.explain(write));
    }
  }

  // Makes of one kind come in crowds; one of them says it all.
  static void note(std::vector<Carving>& carvings, const Carving& carving) {
    if (!carvings.empty()) {
      constexpr std::uint64_t kNear = pool::kMinSlabSize;
      const log::WriteView& last = carvings.back().write;
      const bool same = last.make_prefix() == carving.write.make_prefix() &&
                        last.slot / kNear == carving.write.slot / kNear;
      if (same) return;
    }
    carvings.push_back(carving);
  }

  const Selection& selection_;
  SlabPlan& plan_;
  const std::uint32_t shards_;
  const bool last_;
};

std::vector<Preparation::Stretch> make_stretches(const Selection& selection) {
  std::vector<Preparation::Stretch> stretches;
  for (std::size_t prefix = 0; prefix < selection.prefixes.size(); ++prefix) {
    for (std::uint64_t begin = 0; begin < selection.kept[prefix]; begin += records_per_stretch()) {
      Preparation::Stretch stretch;
      stretch.prefix = prefix;
      stretch.begin = begin;
      stretch.end = std::min(begin + records_per_stretch(), selection.kept[prefix]);
      stretches.push_back(std::move(stretch));
    }
  }
  return stretches;
}

}  // namespace

std::vector<std::uint64_t> Preparation::by_shard() const {
  std::vector<std::uint64_t> sizes(shards);
  for (const Stretch& stretch : stretches) {
    for (std::uint32_t i = 0; i < shards; ++i) sizes[i] += stretch.shards[i].size();
  }
  return sizes;
}

Preparation prepare(const Selection& selection, SlabPlan& plan, std::uint32_t shards,
                    emu::Executor& executor) {
  Preparation result;
  plan.forget();
  result.shards = shards;
  result.stretches = make_stretches(selection);
  for (const bool last : {false, true}) {
    std::vector<Found> found(result.stretches.size());
    const Round round(selection, plan, shards, last);
    executor.parallel_for(found.size(),
                          [&](std::size_t i) { round.examine(result.stretches[i], found[i]); });
    bool carved = false;
    std::vector<BadRecord> clashes;
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (const Carving& carving : found[i].carvings) {
        carved = true;
        if (plan.carve(carving.write)) continue;
        const std::size_t prefix = result.stretches[i].prefix;
        if (has_ended(clashes, prefix)) continue;
        clashes.push_back(
            bad_record(selection, prefix, carving.record, "a make of a second class in one slab"));
      }
    }
    if (carved && clashes.empty()) continue;
    result.bad = std::move(clashes);
    for (Found& part : found) {
      if (!carved && part.bad && !has_ended(result.bad, part.bad->prefix)) {
        result.bad.push_back(std::move(*part.bad));
      }
      result.transactions += part.transactions;
      result.writes += part.writes;
      result.bytes += part.bytes;
    }
    break;
  }
  return result;
}

}  // namespace sp3::recovery

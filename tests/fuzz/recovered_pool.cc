#include "tests/fuzz/recovered_pool.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "pool/pool_file.h"
#include "tests/fuzz/fuzzed_pool.h"

namespace sp3::test {
namespace {

struct Account {
  std::array<std::uint64_t, 6> amounts{};
  Ptr<Account> other;
};
struct Note {
  std::uint64_t text[3] = {};
};

// Sessions that go on from what others have not made durable yet, so that records depend on each
// other; objects that are changed in part, destroyed, and made again in their slots.
int build_busy(const std::filesystem::path& path) {
  Options options = FuzzedPool::options();
  options.geometry = {32 * 1024, 4096, 4096, 3};
  Pool pool = Pool::create(path, 128 * 1024, options);
  std::array<Session, 3> sessions{pool.session(), pool.session(), pool.session()};
  std::array<Ptr<Account>, 5> accounts;
  sessions[0].run([&](Transaction& tx) {
    for (Ptr<Account>& account : accounts) account = tx.make<Account>();
    tx.set_root("account", accounts[0]);
  });
  pool.checkpoint();
  std::vector<Ptr<Note>> notes;
  Random random(7);
  std::vector<Ticket> tickets;
  for (std::uint64_t i = 0; i < 36; ++i) {
    const std::size_t one = random.below(accounts.size());
    const std::size_t two = random.below(accounts.size());
    const bool takes_note = notes.size() < 4;
    Ptr<Note> note;
    tickets.push_back(sessions[random.below(3)].run_async([&](Transaction& tx) {
      tx.write(accounts[one]).amounts[i % 6] += i;
      tx.write(accounts[two]).other = accounts[one];
      if (takes_note) {
        note = tx.make<Note>(Note{{i, i, i}});
      } else {
        tx.destroy(notes.front());
      }
    }));
    if (takes_note) {
      notes.push_back(note);
    } else {
      notes.erase(notes.begin());
    }
    if (i % 9 != 8) continue;
    for (Ticket& ticket : tickets) ticket.wait();
    tickets.clear();
  }
  ::_exit(1);
}

std::vector<char> busy_image() {
  const TempPath path;
  if (in_child([&] { return build_busy(path.path()); }) != 1) return {};
  return read_bytes(path.path());
}

// Empty, or why a pool that has just been opened cannot be worked with.
std::string use(Pool& pool) {
  try {
    Session session = pool.session();
    session.run([](Transaction& tx) {
      const Ptr<Note> note = tx.make<Note>();
      tx.destroy(tx.make<Account>());
      tx.write(note).text[1] = 5;
      tx.destroy(note);
    });
    pool.checkpoint();
    session.run([](Transaction& tx) { static_cast<void>(tx.root_names()); });
    session.close();
    return {};
  } catch (const Error& error) {
    // Objects are what somebody forged, and the pool may be full.
    const bool is_forged =
        error.code() == ErrorCode::pool_full || error.code() == ErrorCode::wrong_type ||
        error.code() == ErrorCode::invalid_pointer || error.code() == ErrorCode::destroyed_object ||
        error.code() == ErrorCode::damaged_metadata;
    return is_forged ? "" : error.what();
  }
}

}  // namespace

// By slab: its class, its bitmap, and the bytes of its objects.
struct RecoveredPools::Contents {
  std::vector<std::string> slabs;
  std::vector<bool> unreadable;

  static Contents of(const std::filesystem::path& path) {
    Contents contents;
    const auto file =
        pool::PoolFile::open(path, FuzzedPool::options(), pool::PoolFile::Access::read_only);
    const pool::Layout& layout = file->layout();
    const pool::SlabDirectory directory = file->directory();
    const auto* bytes = reinterpret_cast<const char*>(file->memory().view());
    for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
      const pool::SlabRecord& record = directory.record(slab);
      contents.slabs.push_back(
          fmt::format("{:x} {} {}", record.type, record.type_size, record.slot_size));
      contents.unreadable.push_back(false);
      if (record.type == 0) continue;
      const pool::SlabShape shape = pool::slab_shape(layout.slab_size, record.slot_size);
      try {
        const pool::Bitmap bitmap = file->bitmap(directory, slab);
        for (std::uint32_t slot = 0; slot < shape.slots; ++slot) {
          if ((bitmap[slot / 64] >> (slot % 64) & 1) == 0) continue;
          contents.slabs.back() += fmt::format(" {}:", slot);
          contents.slabs.back().append(
              bytes + layout.slab_offset(slab) + shape.data + slot * record.slot_size,
              record.slot_size);
        }
      } catch (const Error&) {
        contents.unreadable.back() = true;
      }
    }
    return contents;
  }

  [[nodiscard]] bool is_all_readable() const { return std::ranges::count(unreadable, true) == 0; }
};

struct RecoveredPools::Outcome {
  std::optional<Error> refusal;
  std::size_t assessed = 0;  // pieces of damage as told before anything was written
  RecoveryReport report;
  std::vector<char> killed;  // the file as whoever is killed right after the opening leaves it
  std::vector<char> closed;
  Contents contents;  // of that
  std::string fault;

  [[nodiscard]] std::string what() const { return refusal ? refusal->what() : "it opens"; }
};

RecoveredPools::RecoveredPools() {
  using State = FuzzedPool::State;
  for (const State state : {State::clean, State::crashed, State::mixed}) {
    sources_.emplace_back(FuzzedPool(state, 5).image());
  }
  sources_.emplace_back(busy_image());
}

const std::vector<char>& RecoveredPools::image(std::size_t source) const {
  return sources_[source].image();
}

RecoveredPools::Outcome RecoveredPools::open(const std::vector<char>& image,
                                             RecoveryStrategy strategy, std::uint32_t threads,
                                             bool accept_loss) const {
  write_bytes(path_.path(), image);
  Outcome outcome;
  Options options = FuzzedPool::options(strategy, accept_loss);
  options.recovery.threads = threads;
  options.recovery.assessed = [&](const RecoveryReport& report) {
    outcome.assessed = report.damage.size();
  };
  try {
    Pool pool = Pool::open(path_.path(), options);
    outcome.report = pool.recovery_report();
    outcome.killed = read_bytes(path_.path());
    pool.close();
    outcome.closed = read_bytes(path_.path());
    outcome.contents = Contents::of(path_.path());
  } catch (const Error& error) {
    outcome.refusal = error;
    if (!outcome.killed.empty()) outcome.fault = fmt::format("opened, but {}", error.what());
    // Nothing is written before it is known that the pool opens.
    if (outcome.killed.empty() && read_bytes(path_.path()) != image) {
      outcome.fault = fmt::format("refused, but written to: {}", error.what());
    }
  }
  return outcome;
}

RecoveredPools::Outcome RecoveredPools::open_all_ways(const std::vector<char>& image,
                                                      bool accept_loss, std::string& fault) const {
  Outcome first = open(image, RecoveryStrategy::stamp, 1, accept_loss);
  if (!first.fault.empty()) fault = first.fault;
  for (const auto& [strategy, threads] :
       {std::pair{RecoveryStrategy::stamp, 3U}, std::pair{RecoveryStrategy::dag, 1U},
        std::pair{RecoveryStrategy::dag, 3U}}) {
    const Outcome other = open(image, strategy, threads, accept_loss);
    const bool is_alike = first.refusal.has_value() == other.refusal.has_value() &&
                          (!first.refusal || first.refusal->code() == other.refusal->code()) &&
                          first.contents.slabs == other.contents.slabs &&
                          first.report.damage.size() == other.report.damage.size() &&
                          first.report.dropped == other.report.dropped;
    if (is_alike) continue;
    fault =
        fmt::format("{} with {} threads{} comes to something else: {}, not {}", to_string(strategy),
                    threads, accept_loss ? " and accept_loss" : "", other.what(), first.what());
  }
  return first;
}

// Of what opened, with or without a loss.
std::string RecoveredPools::fault_of(const Outcome& outcome) const {
  const Contents& contents = outcome.contents;
  write_bytes(path_.path(), outcome.closed);
  const CheckReport checked = Pool::check(path_.path());
  // A bitmap that nothing stands in for stays as it is, and has been told of; those of a closed pool
  // are not read before somebody wants their objects.
  const bool may_lack_bitmaps = outcome.report.was_clean || !contents.is_all_readable();
  for (const Damage& damage : checked.damage) {
    if (may_lack_bitmaps && damage.what.find("bitmap") != std::string::npos) continue;
    return "what has been opened and closed is not sound: " + damage.what;
  }
  if (!outcome.report.was_clean && !contents.is_all_readable() && outcome.report.damage.empty()) {
    return "an unreadable bitmap was not told of";
  }
  const Outcome again = open(outcome.closed, RecoveryStrategy::dag, 1, false);
  if (again.refusal) return "what opened does not open again: " + again.what();
  if (again.contents.slabs != contents.slabs) return "what opened again has other content";
  const Outcome killed =
      open(outcome.killed, RecoveryStrategy::dag, 1, !contents.is_all_readable());
  if (killed.refusal) return "what opened, and was killed, does not open: " + killed.what();
  if (killed.contents.slabs != contents.slabs) return "what was killed has other content";
  write_bytes(path_.path(), outcome.closed);
  try {
    Pool pool = Pool::open(path_.path(), FuzzedPool::options());
    std::string fault = use(pool);
    if (!fault.empty()) return "what opened cannot be used: " + fault;
    pool.close();
  } catch (const Error& error) {
    return std::string("what was used does not close: ") + error.what();
  }
  const CheckReport used = Pool::check(path_.path());
  if (!may_lack_bitmaps && !used.sound()) {
    return "what was used is not sound: " + used.damage.front().what;
  }
  return {};
}

RecoveredPools::Result RecoveredPools::recover(const std::vector<char>& image) const {
  Result result;
  std::string damage;
  write_bytes(path_.path(), image);
  try {
    const CheckReport report = Pool::check(path_.path());
    if (!report.sound()) damage = report.damage.front().what;
  } catch (const Error& error) {
    damage = error.what();
  }
  const Outcome whole = open_all_ways(image, false, result.fault);
  if (!result.fault.empty()) return result;
  const Outcome salvaged = open_all_ways(image, true, result.fault);
  if (!result.fault.empty()) return result;
  result.opened = !whole.refusal;
  result.salvaged = whole.refusal && !salvaged.refusal;
  result.replayed = salvaged.report.replayed != 0;
  if (damage.empty() && whole.refusal && whole.refusal->code() != ErrorCode::wrong_version) {
    result.fault = "it is sound and does not open: " + whole.what();
  }
  if (result.opened && (salvaged.refusal || !salvaged.report.damage.empty() ||
                        salvaged.contents.slabs != whole.contents.slabs)) {
    result.fault = "it opens, and comes to something else with accept_loss: " + salvaged.what();
  }
  if (result.salvaged && salvaged.report.damage.empty()) {
    result.fault = "nothing is said to be lost, where without accept_loss: " + whole.what();
  }
  if (!salvaged.refusal && salvaged.assessed != salvaged.report.damage.size()) {
    result.fault = fmt::format("{} losses were told of before, and {} afterwards",
                               salvaged.assessed, salvaged.report.damage.size());
  }
  if (salvaged.report.dropped != salvaged.report.dropped_records.size()) {
    result.fault = fmt::format("{} records are dropped, and {} are named", salvaged.report.dropped,
                               salvaged.report.dropped_records.size());
  }
  if (!result.fault.empty() || salvaged.refusal) return result;
  result.fault = fault_of(salvaged);
  return result;
}

RecoveredPools::Result RecoveredPools::try_out(std::span<const std::uint8_t> bytes) const {
  Choices choices(bytes);
  const Forger& forger = sources_[choices.below(sources_.size())];
  return recover(forger.forge(choices));
}

}  // namespace sp3::test

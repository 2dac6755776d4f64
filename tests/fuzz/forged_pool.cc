#include "tests/fuzz/forged_pool.h"

#include <optional>

#include "pool/pool_file.h"
#include "recovery/inspect_log.h"

namespace sp3::test {
namespace {

// Why it does not open, if it does not; closed again at once.
std::optional<Error> open_and_close(const std::filesystem::path& path, const Options& options) {
  return error_of([&] { Pool::open(path, options).close(); });
}

// Empty, or the first thing that is wrong with the file.
std::string damage_of(const std::filesystem::path& path) {
  try {
    const CheckReport report = Pool::check(path);
    return report.sound() ? "" : report.damage.front().what;
  } catch (const Error& error) {
    return error.what();
  }
}

// Empty, or why those who only read the file do not get through it.
std::string read_only(const std::filesystem::path& path) {
  try {
    static_cast<void>(Pool::inspect(path));
    const auto file =
        pool::PoolFile::open(path, FuzzedPool::options(), pool::PoolFile::Access::read_only);
    recovery::list_log(*file, [](const recovery::LoggedRecord&) {});
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

ForgedPools::Source::Source(FuzzedPool::State state, std::uint64_t seed)
    : pool(state, seed), forger(pool.image()) {}

ForgedPools::ForgedPools() {
  using State = FuzzedPool::State;
  for (const State state : {State::clean, State::crashed, State::mixed}) {
    sources_.push_back(std::make_unique<Source>(state, 5));
  }
}

ForgedPools::Result ForgedPools::try_out(std::span<const std::uint8_t> bytes) const {
  Choices choices(bytes);
  const Source& source = *sources_[choices.below(sources_.size())];
  const auto strategy = choices.below(2) == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag;
  const bool accept_loss = choices.below(4) == 3;
  const std::size_t first_change = choices.below(8);
  const bool is_closed_before = choices.below(2) == 1;
  std::vector<char> forged = source.forger.forge(choices);
  const Options options = FuzzedPool::options(strategy, accept_loss);

  Result result;
  write_bytes(path_.path(), forged);
  const std::string damage = damage_of(path_.path());
  const std::string unread = read_only(path_.path());
  if (damage.empty() && !unread.empty()) result.fault = "it is sound and not read: " + unread;
  const auto refusal = open_and_close(path_.path(), options);
  result.opened = !refusal;
  if (refusal) {
    result.refusal = refusal->what();
    // A sound pool may want a library that knows more.
    if (damage.empty() && refusal->code() != ErrorCode::wrong_version) {
      result.fault = "it is sound and does not open: " + result.refusal;
    }
    return result;
  }
  if (is_closed_before) forged = read_bytes(path_.path());
  static_cast<void>(source.pool.examine(forged, options, &result.refusal, first_change));
  if (const auto later = open_and_close(source.pool.path(), FuzzedPool::options())) {
    result.fault = std::string("it opened, and does not any more: ") + later->what();
  }
  const std::string left = damage_of(source.pool.path());
  if (damage.empty() && !left.empty()) result.fault = "it was sound, and is not any more: " + left;
  return result;
}

}  // namespace sp3::test

// Objects at home have no checksum, so a forged pool opens. What then uses the container returns or
// throws an error; where the container's own check finds nothing to object to, it only returns, and
// its answers go with each other.
#include "tests/fuzz/forged_containers.h"

#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

#include "tests/fuzz/fuzzed_pool.h"

namespace sp3::test {
namespace {

int build(const std::filesystem::path& path, const ContainerUser& user, bool is_killed) {
  Options options = FuzzedPool::options();
  options.geometry = {std::uint64_t{32} * 1024, 4096, 4096, 1};
  Pool pool = Pool::create(path, std::uint64_t{128} * 1024, options);
  Session session = pool.session();
  for (std::uint64_t step = 0; step < kBuildSteps; ++step) {
    if (is_killed && step == kBuildSteps / 2) pool.checkpoint();
    session.run([&](Transaction& tx) { user.build(tx, step); });
  }
  if (is_killed) ::_exit(1);
  session.close();
  pool.close();
  return 1;
}

std::vector<char> built(const ContainerUser& user, bool is_killed) {
  const TempPath path;
  if (in_child([&] { return build(path.path(), user, is_killed); }) != 1) {
    throw std::runtime_error(std::string("cannot be built: ") + user.name);
  }
  return read_bytes(path.path());
}

// What may end a transaction: damage, or that there is no room.
bool is_expected(ErrorCode code, bool is_sound) {
  switch (code) {
    case ErrorCode::pool_full:
    case ErrorCode::transaction_too_large:
      return true;
    case ErrorCode::invalid_pointer:
    case ErrorCode::destroyed_object:
    case ErrorCode::wrong_type:
    case ErrorCode::damaged_metadata:
      return !is_sound;
    default:
      return false;
  }
}

// What `ask`, one of a user's questions, answers in a transaction of its own.
std::string answer_in(Session& session, std::string (*ask)(Transaction& tx)) {
  try {
    return session.run(ask);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

// An open pool that nothing ever changes but who writes to its file, which is its memory.
struct ForgedContainers::Opened {
  explicit Opened(const std::vector<char>& image)
      : file(::open(write(image), O_RDWR | O_CLOEXEC)) {}
  ~Opened() { ::close(file); }

  // The file's name, once `image` is there.
  const char* write(const std::vector<char>& image) const {
    write_bytes(path.path(), image);
    return path.path().c_str();
  }

  TempPath path;
  int file;
  Pool pool = Pool::open(path.path(), FuzzedPool::options());
};

ForgedContainers::ForgedContainers() {
  for (const ContainerUser& user : container_users()) {
    sources_.push_back({&user, Forger(built(user, false)), Forger(built(user, true)), nullptr});
  }
  // Behind the last child: it would have none of their threads.
  for (Source& source : sources_) source.opened = std::make_unique<Opened>(source.closed.image());
}

ForgedContainers::~ForgedContainers() = default;

ForgedContainers::Result ForgedContainers::try_out(std::span<const std::uint8_t> bytes) const {
  Choices choices(bytes);
  const Source& source = sources_[choices.below(sources_.size())];
  Result result;
  try {
    if (choices.below(8) == 0) {
      reopen(source, choices, result);
    } else {
      change_opened(source, choices, result);
    }
  } catch (const std::exception& other) {
    result.fault = other.what();
  }
  if (!result.fault.empty()) result.fault = source.user->name + (": " + result.fault);
  return result;
}

void ForgedContainers::reopen(const Source& source, Choices& choices, Result& result) const {
  const Forger& forger = choices.below(2) == 0 ? source.closed : source.killed;
  write_bytes(path_.path(), forger.forge_objects(choices));
  Options options =
      FuzzedPool::options(choices.below(2) == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag);
  // Under the other a lock that an error left behind would end the next transaction.
  options.locks = choices.below(2) == 0 ? LockTiming::commit : LockTiming::encounter;
  Pool pool = Pool::open(path_.path(), options);
  Session session = pool.session();
  use(session, *source.user, true, choices, result);
  session.close();
  pool.close();
  if (!result.fault.empty() || choices.below(8) != 0) return;
  Pool::open(path_.path(), FuzzedPool::options()).close();
  const CheckReport report = Pool::check(path_.path());
  if (!report.sound()) result.fault = "not sound any more: " + report.damage.front().what;
}

// As a pool that was opened with the objects so, but for those that are gone. Far quicker.
void ForgedContainers::change_opened(const Source& source, Choices& choices, Result& result) {
  const auto write = [&](std::uint64_t offset, std::span<const char> bytes) {
    const auto at = static_cast<off_t>(offset);
    if (::pwrite(source.opened->file, bytes.data(), bytes.size(), at) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("a pool's file cannot be written");
    }
  };
  const std::vector<char>& image = source.closed.image();
  const std::vector<char> forged = source.closed.forge_objects(choices);
  source.closed.for_each_changed(image, forged, write);
  Session session = source.opened->pool.session();  // which remembers no ranged object
  use(session, *source.user, false, choices, result);
  source.closed.for_each_changed(forged, image, write);
}

void ForgedContainers::use(Session& session, const ContainerUser& user, bool may_commit,
                           Choices& choices, Result& result) {
  // Who looks first has what was found in DRAM; who does not meets it while it changes things.
  if (choices.below(2) == 0) {
    result.is_sound = answer_in(session, user.violation).empty();
    if (result.is_sound) result.fault = answer_in(session, user.disagreement);
  }
  constexpr int kMostTransactions = 16;
  for (int i = 0; i < kMostTransactions && !choices.is_empty() && result.fault.empty(); ++i) {
    const Choices before = choices;
    try {
      session.run([&](Transaction& tx) {
        choices = before;  // the body may be run again
        const bool commits = choices.below(4) != 0 && may_commit;
        // Who goes on after an error meets half of a change.
        const bool is_stubborn = choices.below(4) == 0 && !result.is_sound;
        for (std::uint64_t uses = 1 + choices.below(8); uses > 0; --uses) {
          try {
            user.use(tx, choices, !result.is_sound);
          } catch (const Error&) {
            if (!is_stubborn) throw;
          }
        }
        if (result.is_sound) result.fault = user.violation(tx);
        if (result.is_sound && result.fault.empty()) result.fault = user.disagreement(tx);
        if (!commits) tx.cancel();
      });
      ++result.returned;
    } catch (const Cancelled&) {
      ++result.returned;
    } catch (const Error& error) {
      ++result.refused;
      if (!is_expected(error.code(), result.is_sound)) result.fault = error.what();
    }
  }
  if (!result.is_sound || !result.fault.empty()) return;
  result.fault = answer_in(session, user.violation);
  if (result.fault.empty()) result.fault = answer_in(session, user.disagreement);
}

}  // namespace sp3::test

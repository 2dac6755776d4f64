// Bad input and misuse: typed, clear errors, and a lock that still works afterwards.
#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <memory>
#include <span>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;

namespace {

template <class Action>
ErrorCode code_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(std::string(error.what()).size() > 10);
    return error.code();
  }
  FAIL("no error was thrown");
  return ErrorCode::not_found;
}

// Whether the action ends the process by abort().
template <class Action>
bool aborts(Action&& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    ::close(STDERR_FILENO);
    action();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEMPLATE_TEST_CASE("empty and reversed ranges are refused", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  for (const Range& range :
       {Range{5, 5}, Range{0, 0}, Range{9, 3}, Range{kRangeMax, kRangeMax}, Range{kRangeMax, 0}}) {
    const std::uint64_t begin = range.begin;
    const std::uint64_t end = range.end;
    const auto is_refused = [](auto&& action) {
      CHECK(code_of(action) == ErrorCode::invalid_range);
    };
    is_refused([&] { (void)lock->try_lock(begin, end); });
    is_refused([&] { (void)lock->try_lock_shared(begin, end); });
    is_refused([&] { (void)lock->lock(begin, end); });
    is_refused([&] { (void)lock->lock_shared(begin, end); });
    is_refused([&] { (void)lock->try_lock_until(begin, end, BlockingRangeLock::Clock::now()); });
    const std::array ranges{Range{1, 2}, range};
    is_refused([&] { (void)lock->try_lock_all(owner, ranges); });
    is_refused([&] { (void)lock->lock_all(owner, ranges); });
    is_refused([&] { (void)lock->try_lock_all_until(owner, ranges, {}); });
  }
  CHECK(lock->holders().empty());
}

// Else an error of the caller's would show when others are out of the way, or be a deadlock.
TEMPLATE_TEST_CASE("a batch that cannot be is refused before anything is waited for", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  RangeHandle held = lock->lock(0, 10);
  const auto at_once = BlockingRangeLock::Clock::now();
  for (const Range& bad : {Range{70, 70}, Range{70, 60}, Range{kRangeMax, kRangeMax}}) {
    const std::array ranges{Range{5, 15}, bad};
    CHECK(code_of([&] { (void)lock->try_lock_all(owner, ranges); }) == ErrorCode::invalid_range);
    CHECK(code_of([&] { (void)lock->try_lock_all_until(owner, ranges, at_once); }) ==
          ErrorCode::invalid_range);
  }
  const std::array overlapping{Range{5, 15}, Range{70, 80}, Range{79, 90}};
  CHECK(code_of([&] { (void)lock->try_lock_all_until(owner, overlapping, at_once); }) ==
        ErrorCode::invalid_range);
  CHECK(owner.counters().contended == 0);
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("a handle is good for one unlock, of its own lock", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  const auto other = make_lock<TestType>();
  RangeHandle handle = lock->lock(1, 2);
  CHECK(code_of([&] { other->unlock(handle); }) == ErrorCode::range_not_held);
  CHECK(handle);
  RangeHandle moved = std::move(handle);
  CHECK(code_of([&] { lock->unlock(handle); }) == ErrorCode::range_not_held);
  lock->unlock(moved);
  CHECK_FALSE(moved);
  CHECK(code_of([&] { lock->unlock(moved); }) == ErrorCode::range_not_held);
  CHECK(code_of([&] { lock->unlock(RangeHandle()); }) == ErrorCode::range_not_held);
  CHECK(is_free(*lock, 1, 2));
}

TEMPLATE_TEST_CASE("a batch wants an empty handle for each range", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  const std::array ranges{Range{1, 2}, Range{3, 4}};
  std::array<RangeHandle, 2> handles;
  const auto code_for = [&](std::span<RangeHandle> given) {
    return code_of([&] { (void)lock->try_lock_all(owner, ranges, given); });
  };
  CHECK(code_for(std::span(handles).first(1)) == ErrorCode::invalid_argument);
  handles[1] = lock->lock(owner, 8, 9);
  CHECK(code_for(handles) == ErrorCode::invalid_argument);
  CHECK(handles[1].range() == Range{8, 9});
  CHECK(owner.held() == 1);
  lock->unlock(handles[1]);
  CHECK(is_free(*lock, 0, 10));
  const std::array bad{Range{1, 2}, Range{4, 3}};
  CHECK(code_of([&] { (void)lock->try_lock_all(owner, bad, handles); }) ==
        ErrorCode::invalid_range);
  const std::array overlapping{Range{1, 5}, Range{4, 6}};
  CHECK(code_of([&] { (void)lock->try_lock_all(owner, overlapping, handles); }) ==
        ErrorCode::invalid_range);
  RangeLockDomain another(1);
  RangeOwner stranger(2, another);
  CHECK(code_of([&] { (void)lock->try_lock_all(stranger, ranges, handles); }) ==
        ErrorCode::invalid_argument);
  CHECK(is_free(*lock, 0, 10));
}

TEMPLATE_TEST_CASE(
    "a shared batch whose ranges overlap is refused by what is held, and is no error", "",
    SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  RangeHandle held = lock->lock(10, 20);
  const std::array ranges{Range{0, 8}, Range{5, 15}};
  std::array<RangeHandle, 2> handles;
  CHECK_FALSE(lock->try_lock_all(owner, ranges, handles, RangeMode::shared));
  CHECK(lock->try_lock_all(owner, ranges, RangeMode::shared).empty());
  CHECK(owner.held() == 0);
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("a lock in use is not closed, and not destroyed", "", SP3_OUR_RANGE_LOCKS) {
  auto lock = make_lock<TestType>();
  for (const Range& range : {Range{1, 2}, Range{0, kRangeMax}}) {
    RangeHandle handle = lock->lock(range.begin, range.end);
    CHECK(code_of([&] { lock->close(); }) == ErrorCode::range_lock_busy);
    CHECK(aborts([&] { lock.reset(); }));
    lock->unlock(handle);
    lock->close();
  }
}

TEMPLATE_TEST_CASE("an owner that holds ranges is not destroyed", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  auto owner = std::make_unique<RangeOwner>(1);
  RangeHandle handle = lock->lock(*owner, 1, 2);
  CHECK(aborts([&] { owner.reset(); }));
  lock->unlock(handle);
}

TEST_CASE("a domain that has owners is not destroyed") {
  auto domain = std::make_unique<RangeLockDomain>(4);
  const RangeOwner owner(1, *domain);
  CHECK(aborts([&] { domain.reset(); }));
}

TEMPLATE_TEST_CASE("an owner of another domain is refused", "", SP3_OUR_RANGE_LOCKS) {
  RangeLockDomain domain(4);
  const auto lock = make_lock<TestType>({.domain = &domain});
  RangeOwner stranger(2);
  const std::array ranges{Range{1, 2}, Range{3, 4}};
  const auto at_once = BlockingRangeLock::Clock::now();
  const auto is_refused = [](auto&& action) {
    CHECK(code_of(action) == ErrorCode::invalid_argument);
  };
  is_refused([&] { (void)lock->try_lock(1, 2); });
  is_refused([&] { (void)lock->lock_shared(stranger, 1, 2); });
  is_refused([&] { (void)lock->try_lock_all(stranger, ranges); });
  is_refused([&] { (void)lock->lock_all(stranger, ranges); });
  is_refused([&] { (void)lock->try_lock_all_until(stranger, ranges, at_once); });
  is_refused([&] { (void)lock->try_lock_all(stranger, {}); });
  is_refused([&] { (void)lock->try_lock_all(stranger, {}, {}); });
  CHECK(stranger.held() == 0);
  CHECK(lock->holders().empty());
  RangeOwner owner(1, domain);
  lock->unlock(lock->try_lock(owner, 1, 2));
}

TEMPLATE_TEST_CASE("a lock is looked at, closed and destroyed when no other owner fits", "",
                   SP3_OUR_RANGE_LOCKS) {
  RangeLockDomain domain(1);
  RangeOwner only(7, domain);
  const auto look = [&] {
    auto lock = make_lock<TestType>({.domain = &domain});
    RangeHandle handle = lock->try_lock(only, 1, 2);
    RangeHandle wide = lock->try_lock(only, 100, 200);
    REQUIRE(handle);
    REQUIRE(wide);
    CHECK(lock->holders().size() == 2);
    CHECK(lock->holders().front().token == 7);
    CHECK(code_of([&] { lock->close(); }) == ErrorCode::range_lock_busy);
    lock->unlock(handle);
    lock->unlock(wide);
    lock->close();
  };
  look();
  CHECK_FALSE(aborts(look));
  CHECK(domain.statistics().owners == 1);
}

TEMPLATE_TEST_CASE("all of several handles are unlocked whether or not some are empty", "",
                   SP3_OUR_RANGE_LOCKS) {
  RangeLockDomain domain;
  const auto lock = make_lock<TestType>({.domain = &domain});
  const auto other = make_lock<TestType>({.domain = &domain});
  RangeOwner owner(1, domain);
  const Range ranges[] = {{1, 2}, {3, 4}, {5, 6}};
  std::vector<RangeHandle> handles = lock->lock_all(owner, ranges);
  lock->unlock(handles[0]);
  lock->unlock_all(handles);
  CHECK(handles.empty());
  CHECK(lock->holders().empty());

  handles = lock->lock_all(owner, ranges);
  handles.push_back(other->lock(owner, 7, 8));
  CHECK(code_of([&] { lock->unlock_all(handles); }) == ErrorCode::range_not_held);
  CHECK(lock->holders().size() == 3);
  CHECK(handles.size() == 4);
  other->unlock(handles.back());
  lock->unlock_all(handles);
  CHECK(lock->holders().empty());
}

TEST_CASE("sizes that cannot be are refused") {
  const auto is_refused = [](auto&& action) {
    CHECK(code_of(action) == ErrorCode::invalid_argument);
  };
  is_refused([] { GridRangeLock({.granule = 1000}); });
  is_refused([] { GridRangeLock({.granule = 0}); });
  is_refused([] { GridRangeLock({.granule = std::uint64_t{1} << 31}); });
  is_refused([] { GridRangeLock({.buckets = 100}); });
  is_refused([] { GridRangeLock({.buckets = 1}); });
  is_refused([] { SkiplistRangeLock({.max_height = 0}); });
  is_refused([] { SkiplistRangeLock({.max_height = 17}); });
  is_refused([] { SkiplistRangeLock({.fairness = static_cast<Fairness>(2)}); });
  is_refused([] { GridRangeLock({.fairness = static_cast<Fairness>(9)}); });
  is_refused([] { GridRangeLock({.nested_wait = std::chrono::nanoseconds(-1)}); });
  is_refused([] { SkiplistRangeLock({.nested_wait = std::chrono::nanoseconds::min()}); });
  is_refused([] { RangeLockDomain(0); });
  is_refused([] { RangeLockDomain(1 << 16); });
  is_refused([] { RangeLockDomain(std::size_t{1} << 40); });
  is_refused([] { RangeLockDomain(~std::size_t{0}); });
  // The last that can be.
  static_cast<void>(RangeLockDomain(32767));
  static_cast<void>(SkiplistRangeLock({.max_height = 1}));
  static_cast<void>(SkiplistRangeLock({.max_height = 16}));
  static_cast<void>(GridRangeLock({.granule = 1}));
  static_cast<void>(GridRangeLock({.granule = std::uint64_t{1} << 30, .buckets = 64}));
  static_cast<void>(GridRangeLock({.nested_wait = std::chrono::nanoseconds(0)}));
  RangeLockDomain domain(1);
  const RangeOwner only(1, domain);
  is_refused([&] { RangeOwner(2, domain); });
}

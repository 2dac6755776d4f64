#include <sp3/error.h>
#include <sp3/options.h>
#include <sp3/report.h>

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace sp3;

TEST_CASE("every error code has a name of its own") {
  std::set<std::string> names;
  const auto last = static_cast<int>(ErrorCode::outcome_unknown);
  for (int code = 0; code <= last; ++code) names.insert(to_string(static_cast<ErrorCode>(code)));
  CHECK(names.size() == static_cast<std::size_t>(last) + 1);
  CHECK(names.count("?") == 0);
  CHECK(std::string(to_string(ErrorCode::not_found)) == "not_found");
  CHECK(std::string(to_string(ErrorCode::outcome_unknown)) == "outcome_unknown");
  CHECK(std::string(to_string(static_cast<ErrorCode>(255))) == "?");
}

TEST_CASE("an error tells its message and every known fact in one line") {
  ErrorFacts facts;
  facts.path = "a.pool";
  facts.offset = 4096;
  facts.wanted = "magic 1";
  facts.found = "magic 2";
  const Error error(ErrorCode::not_a_pool, "not a pool", facts);
  CHECK(std::string(error.what()) ==
        "not a pool: a.pool, at byte 4096, wanted magic 1, found magic 2");
  CHECK(error.code() == ErrorCode::not_a_pool);
  CHECK(error.facts().path == "a.pool");
}

TEST_CASE("an error stays one line whatever the path holds") {
  const Error error(ErrorCode::not_found, "no file", {.path = "a\nb\x7f\tc\xc3\xa4"});
  CHECK(std::string(error.what()) == "no file: a\\x0ab\\x7f\\x09c\xc3\xa4");
  CHECK(error.facts().path == "a\nb\x7f\tc\xc3\xa4");
}

TEST_CASE("an error leaves out what is not known") {
  CHECK(std::string(Error(ErrorCode::session_busy, "busy").what()) == "busy");
  ErrorFacts facts;
  facts.found = "nothing";
  CHECK(std::string(Error(ErrorCode::not_found, "no file", facts).what()) ==
        "no file: found nothing");
}

TEST_CASE("an UUID is written as 8-4-4-4-12 hexadecimal digits") {
  CHECK(format_uuid({0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76,
                     0x54, 0x32, 0x10}) == "01234567-89ab-cdef-fedc-ba9876543210");
}

TEST_CASE("options are named as they are written") {
  CHECK(std::string(to_string(MemoryKind::emulated)) == "emulated");
  CHECK(std::string(to_string(LatencyModel::yield)) == "yield");
  CHECK(std::string(to_string(FlushInstruction::non_temporal)) == "non_temporal");
  CHECK(std::string(to_string(CommitPolicy::volatile_only)) == "volatile_only");
  CHECK(std::string(to_string(LockTiming::encounter)) == "encounter");
  CHECK(std::string(to_string(RangeLockKind::grid)) == "grid");
  CHECK(std::string(to_string(RecoveryStrategy::dag)) == "dag");
}

#include <sp3/error.h>
#include <sp3/options.h>
#include <sp3/report.h>

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <type_traits>

using namespace sp3;

// A code and its name, as its declaration spells it.
#define SP3_CODE(name) \
  { ErrorCode::name, #name }

// Logs and scripts go by the names.
TEST_CASE("every error code is named as it is written") {
  const std::map<ErrorCode, std::string> names{SP3_CODE(not_found),
                                               SP3_CODE(already_exists),
                                               SP3_CODE(is_a_directory),
                                               SP3_CODE(permission_denied),
                                               SP3_CODE(no_space),
                                               SP3_CODE(io_error),
                                               SP3_CODE(pool_in_use),
                                               SP3_CODE(unsupported),
                                               SP3_CODE(not_a_pool),
                                               SP3_CODE(wrong_version),
                                               SP3_CODE(wrong_size),
                                               SP3_CODE(damaged_superblock),
                                               SP3_CODE(damaged_metadata),
                                               SP3_CODE(damaged_log),
                                               SP3_CODE(wrong_uuid),
                                               SP3_CODE(invalid_argument),
                                               SP3_CODE(pool_full),
                                               SP3_CODE(too_many_sessions),
                                               SP3_CODE(object_too_large),
                                               SP3_CODE(transaction_too_large),
                                               SP3_CODE(invalid_pointer),
                                               SP3_CODE(destroyed_object),
                                               SP3_CODE(wrong_type),
                                               SP3_CODE(transaction_over),
                                               SP3_CODE(nested_transaction),
                                               SP3_CODE(session_busy),
                                               SP3_CODE(session_closed),
                                               SP3_CODE(pool_closed),
                                               SP3_CODE(sessions_open),
                                               SP3_CODE(ticket_spent),
                                               SP3_CODE(forked),
                                               SP3_CODE(invalid_range),
                                               SP3_CODE(range_not_held),
                                               SP3_CODE(range_lock_busy),
                                               SP3_CODE(nested_wait),
                                               SP3_CODE(beyond_end),
                                               SP3_CODE(view_open),
                                               SP3_CODE(view_expired),
                                               SP3_CODE(outcome_unknown)};
  CHECK(names.size() == static_cast<std::size_t>(ErrorCode::outcome_unknown) + 1);
  for (const auto& [code, name] : names) CHECK(to_string(code) == name);
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

// The command line takes them by these names, and results and errors tell them.
TEST_CASE("options are named as they are written") {
  const auto check = [](const auto& names) {
    for (const auto& [value, name] : names) CHECK(std::string(to_string(value)) == name);
    using Value = std::decay_t<decltype(names.begin()->first)>;
    CHECK(std::string(to_string(static_cast<Value>(names.size()))) == "?");
  };
#define SP3_NAME(type, name) {type::name, #name}
  check(std::map<MemoryKind, std::string>{SP3_NAME(MemoryKind, automatic),
                                          SP3_NAME(MemoryKind, dax), SP3_NAME(MemoryKind, file),
                                          SP3_NAME(MemoryKind, emulated)});
  check(std::map<LatencyModel, std::string>{
      SP3_NAME(LatencyModel, line), SP3_NAME(LatencyModel, fence), SP3_NAME(LatencyModel, yield)});
  check(std::map<FlushInstruction, std::string>{
      SP3_NAME(FlushInstruction, automatic), SP3_NAME(FlushInstruction, clflush),
      SP3_NAME(FlushInstruction, clflushopt), SP3_NAME(FlushInstruction, clwb),
      SP3_NAME(FlushInstruction, non_temporal), SP3_NAME(FlushInstruction, none)});
  check(std::map<CommitPolicy, std::string>{
      SP3_NAME(CommitPolicy, speculative), SP3_NAME(CommitPolicy, conservative),
      SP3_NAME(CommitPolicy, ideal), SP3_NAME(CommitPolicy, volatile_only)});
  check(std::map<LockTiming, std::string>{SP3_NAME(LockTiming, commit),
                                          SP3_NAME(LockTiming, encounter)});
  check(std::map<RangeLockKind, std::string>{SP3_NAME(RangeLockKind, skiplist),
                                             SP3_NAME(RangeLockKind, grid)});
  check(std::map<RecoveryStrategy, std::string>{SP3_NAME(RecoveryStrategy, stamp),
                                                SP3_NAME(RecoveryStrategy, dag)});
#undef SP3_NAME
}

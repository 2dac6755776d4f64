#include "tools/compare/members.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sp3::tools {

namespace {

using nlohmann::json;

struct Member {
  const char* name;
  bool (*holds)(const json&);
  bool may_be_null = false;
};
using Members = std::span<const Member>;

bool is_text(const json& value) { return value.is_string(); }
bool is_number(const json& value) { return value.is_number(); }
bool is_whole(const json& value) { return value.is_number_unsigned(); }
bool is_flag(const json& value) { return value.is_boolean(); }
bool is_object(const json& value) { return value.is_object(); }
// A number, or one of several. Nothing that is measured here is.
bool is_below_0(const json& value) {
  if (value.is_array()) return std::ranges::any_of(value, is_below_0);
  return value.is_number() && value.get<double>() < 0;
}
bool are_numbers(const json& value) {
  return value.is_array() && std::ranges::all_of(value, is_number);
}
bool are_numbers_or_null(const json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const json& each) {
           return each.is_null() || is_number(each);
         });
}

constexpr Member kOfAll[] = {{"section", is_text},
                             {"workload", is_text},
                             {"threads", is_whole},
                             {"durability", is_text},
                             {"entries", is_whole},
                             {"entry_size", is_whole},
                             {"zipf", is_number},
                             {"insert_ratio", is_number},
                             {"fill", is_number},
                             {"seed", is_whole},
                             {"memory", is_text},
                             {"latency_ns", is_whole},
                             {"latency_line_ns", is_whole},
                             {"latency_model", is_text},
                             {"flush", is_text},
                             {"file_system", is_text, true},
                             {"locks", is_text},
                             {"range_lock", is_text},
                             {"group", is_whole},
                             {"checkpoint_ms", is_whole},
                             {"checkpoint_threads", is_whole}};
constexpr Member kOfTransactions[] = {{"system", is_text},
                                      {"pool_size", is_whole},
                                      {"warmup_seconds", is_number, true},
                                      {"seconds", is_number},
                                      {"operations", is_whole},
                                      {"misses", is_whole},
                                      {"throughput_tx_per_s", is_number},
                                      {"commits", is_whole},
                                      {"writing_commits", is_whole},
                                      {"aborts", is_whole},
                                      {"abort_ratio", is_number},
                                      {"fences_per_tx", is_number},
                                      {"lines_per_tx", is_number},
                                      {"helped_fences", is_whole},
                                      {"helped_lines", is_whole},
                                      {"waits", is_whole},
                                      {"log_bytes", is_whole},
                                      {"checkpoints", is_whole},
                                      {"checkpoint_lines", is_whole},
                                      {"checkpoint_fences", is_whole},
                                      {"flusher_lines", is_whole},
                                      {"flusher_fences", is_whole},
                                      {"flush_cost_ns", is_number},
                                      {"line_transfer_ns", is_number, true},
                                      {"clocks_agree", is_flag},
                                      {"simulated", is_flag}};
// All, or none of them if nothing was timed.
constexpr Member kLatencies[] = {{"latency_p50_ns", is_number, true},
                                 {"latency_p99_ns", is_number, true},
                                 {"latency_p999_ns", is_number, true},
                                 {"latency_max_ns", is_number, true},
                                 {"latency_undisturbed_mean_ns", is_number, true}};
constexpr Member kOfRecoveries[] = {
    {"strategy", is_text},        {"writers", is_whole},           {"log_limit_bytes", is_whole},
    {"write_seconds", is_number}, {"pool_bytes", is_whole},        {"log_bytes", is_whole},
    {"bytes_replayed", is_whole}, {"recovery_seconds", is_number}, {"recoveries", are_numbers},
    {"cpu_seconds", is_number},   {"scan_seconds", is_number},     {"cut_seconds", is_number},
    {"order_seconds", is_number}, {"replay_seconds", is_number},   {"flush_seconds", is_number},
    {"flush_cost_ns", is_number}, {"bytes_per_s", is_number},      {"records", is_whole},
    {"replayed", is_whole},       {"dropped", is_whole},           {"torn", is_whole},
    {"sessions", is_whole},       {"dependencies", is_whole},      {"memory_peak_bytes", is_whole}};
// Of a row, which tells of several repetitions.
constexpr Member kOfRows[] = {
    {"repeat", is_whole}, {"spread", is_number}, {"commit", is_text}, {"machine", is_object}};
constexpr Member kOfTransactionRows[] = {{"throughputs", are_numbers},
                                         {"line_transfers_ns", are_numbers_or_null}};
constexpr Member kOfSimulatedRows[] = {
    {"cores", is_whole}, {"trace_hash", is_text}, {"costs_ns", is_object}};
// Of what another command measured, in place of a run.
constexpr Member kOfPrograms[] = {{"rows", is_whole}};

std::string what_is_wrong(const json& found, std::initializer_list<Members> wanted) {
  if (!found.is_object()) return "is no object";
  for (const Members members : wanted) {
    for (const Member& member : members) {
      const auto value = found.find(member.name);
      if (value == found.end()) return fmt::format("has no {}", member.name);
      if (member.may_be_null && value->is_null()) continue;
      if (is_below_0(*value)) return fmt::format("has {} below 0", member.name);
      if (!member.holds(*value)) return fmt::format("has {} of another type", member.name);
    }
  }
  return {};
}

std::string what_is_wrong_with_transactions(const json& found,
                                            std::initializer_list<Members> more) {
  std::string wrong = what_is_wrong(found, {kOfAll, kOfTransactions, kLatencies});
  if (wrong.empty()) wrong = what_is_wrong(found, more);
  if (!wrong.empty()) return wrong;
  const auto is_null = [&](const Member& latency) { return found.at(latency.name).is_null(); };
  const auto* const lost = std::ranges::find_if(kLatencies, is_null);
  const auto* const kept = std::ranges::find_if_not(kLatencies, is_null);
  if (lost == std::end(kLatencies) || kept == std::end(kLatencies)) return {};
  return fmt::format("has {}, but no {}", kept->name, lost->name);
}

}  // namespace

std::string what_is_wrong_with_row(const json& row) {
  if (row.is_object() && row.contains("recovery_seconds")) {
    return what_is_wrong(row, {kOfAll, kOfRecoveries, kOfRows});
  }
  const bool simulated = row.is_object() && row.contains("trace_hash");
  const Members of_simulated = simulated ? Members(kOfSimulatedRows) : Members();
  return what_is_wrong_with_transactions(row, {kOfRows, kOfTransactionRows, of_simulated});
}

// Runs of cells have a repetition.
std::string what_is_wrong_with_run(const std::string& name, const json& run) {
  const bool of_cell = name.find('#') != std::string::npos;
  return of_cell ? what_is_wrong_with_transactions(run, {}) : what_is_wrong(run, {kOfPrograms});
}

}  // namespace sp3::tools

#include <sp3/error.h>

#include <cstdint>
#include <utility>

#include <sp3/report.h>

namespace sp3 {
namespace {

// Two digits.
void append_hex(std::string& text, std::uint8_t byte) {
  constexpr const char* kDigits = "0123456789abcdef";
  text += kDigits[byte >> 4];
  text += kDigits[byte & 15];
}

// Names of files may hold anything.
std::string on_one_line(const std::string& text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line += c;
    } else {
      line += "\\x";
      append_hex(line, byte);
    }
  }
  return line;
}

// "cannot open: path, at byte 4096, wanted x, found y", without what is not known.
std::string describe(const std::string& message, const ErrorFacts& facts) {
  std::string text = message;
  const char* separator = ": ";
  const auto add = [&](const std::string& fact) {
    text += separator;
    text += fact;
    separator = ", ";
  };
  if (!facts.path.empty()) add(facts.path);
  if (facts.offset) add("at byte " + std::to_string(*facts.offset));
  if (!facts.wanted.empty()) add("wanted " + facts.wanted);
  if (!facts.found.empty()) add("found " + facts.found);
  return on_one_line(text);
}

}  // namespace

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::is_a_directory:
      return "is_a_directory";
    case ErrorCode::permission_denied:
      return "permission_denied";
    case ErrorCode::no_space:
      return "no_space";
    case ErrorCode::io_error:
      return "io_error";
    case ErrorCode::pool_in_use:
      return "pool_in_use";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::not_a_pool:
      return "not_a_pool";
    case ErrorCode::wrong_version:
      return "wrong_version";
    case ErrorCode::wrong_size:
      return "wrong_size";
    case ErrorCode::damaged_superblock:
      return "damaged_superblock";
    case ErrorCode::damaged_metadata:
      return "damaged_metadata";
    case ErrorCode::damaged_log:
      return "damaged_log";
    case ErrorCode::wrong_uuid:
      return "wrong_uuid";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::pool_full:
      return "pool_full";
    case ErrorCode::too_many_sessions:
      return "too_many_sessions";
    case ErrorCode::object_too_large:
      return "object_too_large";
    case ErrorCode::transaction_too_large:
      return "transaction_too_large";
    case ErrorCode::invalid_pointer:
      return "invalid_pointer";
    case ErrorCode::destroyed_object:
      return "destroyed_object";
    case ErrorCode::wrong_type:
      return "wrong_type";
    case ErrorCode::transaction_over:
      return "transaction_over";
    case ErrorCode::nested_transaction:
      return "nested_transaction";
    case ErrorCode::session_busy:
      return "session_busy";
    case ErrorCode::session_closed:
      return "session_closed";
    case ErrorCode::pool_closed:
      return "pool_closed";
    case ErrorCode::sessions_open:
      return "sessions_open";
    case ErrorCode::ticket_spent:
      return "ticket_spent";
    case ErrorCode::forked:
      return "forked";
    case ErrorCode::invalid_range:
      return "invalid_range";
    case ErrorCode::range_not_held:
      return "range_not_held";
    case ErrorCode::range_lock_busy:
      return "range_lock_busy";
    case ErrorCode::nested_wait:
      return "nested_wait";
    case ErrorCode::beyond_end:
      return "beyond_end";
    case ErrorCode::view_open:
      return "view_open";
    case ErrorCode::view_expired:
      return "view_expired";
    case ErrorCode::outcome_unknown:
      return "outcome_unknown";
  }
  return "?";
}

Error::Error(ErrorCode code, const std::string& message, ErrorFacts facts)
    : std::runtime_error(describe(message, facts)), code_(code), facts_(std::move(facts)) {}

std::string format_uuid(const std::array<std::uint8_t, 16>& uuid) {
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    append_hex(text, uuid[i]);
  }
  return text;
}

}  // namespace sp3

#include "tools/probe/pcm_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace sp3::tools {

namespace {

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \r\n\t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \r\n\t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = text.find(',');
    fields.push_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    text.remove_prefix(comma + 1);
  }
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  if (!std::isfinite(value) || value < 0) return {};
  return value;
}

}  // namespace

void PcmCsv::find_columns(const std::vector<std::string_view>& names) {
  // Where there is no persistent memory, all traffic is DRAM's and goes by another name.
  constexpr std::string_view kWanted[][2] = {{"PMMREAD", "PMMREAD"},
                                             {"PMMWrite", "PMMWrite"},
                                             {"DRAMRead", "Read"},
                                             {"DRAMWrite", "Write"}};
  const auto column_of = [&](std::string_view name) {
    for (std::size_t i = 0; i < std::min(names.size(), system_.size()); ++i) {
      if (system_[i] && names[i] == name) return i;
    }
    return kNone;
  };
  for (std::size_t i = 0; i < std::size(kWanted); ++i) {
    columns_[i] = column_of(kWanted[i][0]);
    if (columns_[i] == kNone) columns_[i] = column_of(kWanted[i][1]);
  }
  width_ = names.size();
}

std::optional<PcmSample> PcmCsv::line(std::string_view text) {
  const std::vector<std::string_view> fields = split(text);
  if (std::ranges::find(fields, "System") != fields.end()) {
    system_.clear();
    for (const std::string_view field : fields) system_.push_back(field == "System");
    width_ = 0;
    return {};
  }
  if (!system_.empty() && width_ == 0) {
    if (std::ranges::find(fields, "Memory") != fields.end()) find_columns(fields);
    return {};
  }
  // Lines may end in a comma, or not.
  if (width_ == 0 || fields.size() + 1 < width_ || fields.size() > width_ + 1) return {};
  std::array<std::optional<double>, 4> values;
  bool found = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (columns_[i] >= fields.size()) continue;
    const std::optional<double> millions = number(fields[columns_[i]]);
    if (millions) values[i] = *millions * 1e6;
    found = found || millions;
  }
  if (!found) return {};
  return PcmSample{values[0], values[1], values[2], values[3]};
}

}  // namespace sp3::tools

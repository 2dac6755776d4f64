#include "tools/sim/orders.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "emu/sim/weak_memory.h"
#include "tools/command.h"

namespace sp3::tools {
namespace {

constexpr std::pair<std::string_view, std::memory_order> kOrders[] = {
    {"relaxed", std::memory_order_relaxed},
    {"acquire", std::memory_order_acquire},
    {"release", std::memory_order_release},
    {"acq_rel", std::memory_order_acq_rel},
};

std::string_view name_of(std::memory_order order) {
  const auto named = std::find_if(std::begin(kOrders), std::end(kOrders),
                                  [&](const auto& known) { return known.second == order; });
  return named == std::end(kOrders) ? "seq_cst" : named->first;
}

std::string_view name_of(base::AtomicAccess access) {
  constexpr std::string_view kNames[] = {"load", "store", "exchange", "fence"};
  return kNames[static_cast<std::size_t>(access)];
}

// File, line, access and order; how often.
using Orders =
    std::map<std::tuple<std::string_view, std::uint32_t, base::AtomicAccess, std::memory_order>,
             std::uint64_t>;

Orders& orders() {
  static Orders all;
  return all;
}

}  // namespace

void weaken_order(const std::string& place) {
  if (place.empty()) return;
  emu::sim::Weakening weakening;
  const std::size_t equals = place.find('=');
  const std::string order = equals == std::string::npos ? "" : place.substr(equals + 1);
  const auto named = std::find_if(std::begin(kOrders), std::end(kOrders),
                                  [&](const auto& known) { return known.first == order; });
  std::string& file = weakening.file;
  file = place.substr(0, equals);
  const std::size_t colon = file.find(':');
  bool is_number = true;
  if (colon != std::string::npos) {
    const char* const end = file.data() + file.size();
    const auto [at, error] = std::from_chars(file.data() + colon + 1, end, weakening.line);
    is_number = error == std::errc() && at == end && weakening.line != 0;
    file.resize(colon);
  }
  if (named == std::end(kOrders) || file.empty() || !is_number) {
    throw UsageError(
        fmt::format("--weaken: wanted FILE:LINE=ORDER or FILE=ORDER, with relaxed, acquire, "
                    "release or acq_rel, "
                    "found '{}'",
                    place));
  }
  weakening.to = named->second;
  emu::sim::weakening = weakening;
}

bool missed_weakened_order(const std::string& place) {
  return !place.empty() && emu::sim::weakening->met == 0;
}

void remember_orders() {
  emu::sim::site_visitor = [](base::AtomicAccess access, std::memory_order stated,
                              const base::Site& site) {
    ++orders()[{site.short_file(), site.line, access, stated}];
  };
}

std::string list_orders() {
  std::string text;
  for (const auto& [site, count] : orders()) {
    const auto& [file, line, access, order] = site;
    text += fmt::format("{}:{} {} {} {}\n", file, line, name_of(order), name_of(access), count);
  }
  return text;
}

}  // namespace sp3::tools

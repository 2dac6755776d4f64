#include "workloads/mix.h"

#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

namespace sp3::workloads {

namespace {

constexpr Mix kMixes[] = {Mix::paper,  Mix::ycsb_a, Mix::ycsb_b, Mix::ycsb_c,
                          Mix::ycsb_d, Mix::ycsb_e, Mix::ycsb_f};

}  // namespace

MixShares shares_of(Mix mix) noexcept {
  switch (mix) {
    case Mix::paper:
    case Mix::ycsb_c:
      break;
    case Mix::ycsb_a:
      return {.insert = 50};
    case Mix::ycsb_b:
      return {.insert = 5};
    case Mix::ycsb_d:
      return {.add = 5, .searches_newest = true};
    case Mix::ycsb_e:
      return {.add = 5, .scan = 95};
    case Mix::ycsb_f:
      return {.modify = 50};
  }
  return {};
}

const char* to_string(Mix mix) noexcept {
  switch (mix) {
    case Mix::paper:
      return "paper";
    case Mix::ycsb_a:
      return "ycsb-a";
    case Mix::ycsb_b:
      return "ycsb-b";
    case Mix::ycsb_c:
      return "ycsb-c";
    case Mix::ycsb_d:
      return "ycsb-d";
    case Mix::ycsb_e:
      return "ycsb-e";
    case Mix::ycsb_f:
      return "ycsb-f";
  }
  return "?";
}

std::string mix_names() {
  std::string names;
  for (const Mix mix : kMixes)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(mix));
  return names;
}

std::vector<Mix> mixes_from_name(std::string_view name) {
  if (name == "ycsb") return {std::begin(kMixes) + 1, std::end(kMixes)};
  for (const Mix mix : kMixes) {
    if (name == to_string(mix)) return {mix};
  }
  throw std::invalid_argument(fmt::format("mix: wanted {} or ycsb, found '{}'", mix_names(), name));
}

}  // namespace sp3::workloads

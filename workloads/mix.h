// Mixes: what share of a map's operations does what. `paper` is half inserts, or whatever the spec
// says; the others are the core workloads of YCSB:
//
//   ycsb-a   50 search, 50 insert          ycsb-d   95 search among the newest, 5 new keys
//   ycsb-b   95 search,  5 insert          ycsb-e   95 scan, 5 new keys
//   ycsb-c  100 search                     ycsb-f   50 search, 50 read and write one
//
// An insert gives a present key another value. YCSB's update writes one field of ten; here a value
// has no fields, and all of it is written.
//
// Source: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sp3::workloads {

enum class Mix : std::uint8_t { paper, ycsb_a, ycsb_b, ycsb_c, ycsb_d, ycsb_e, ycsb_f };

// Percent of the operations; the rest are searches.
struct MixShares {
  std::uint32_t insert = 0;  // of a key that may be there
  std::uint32_t add = 0;     // of a new key
  std::uint32_t modify = 0;  // read, then write
  std::uint32_t scan = 0;
  bool searches_newest = false;
};

// REQUIRES: not paper, whose shares a spec has.
MixShares shares_of(Mix mix) noexcept;

inline constexpr std::uint64_t kMostScanned = 100;  // entries; from 1 on all as often

constexpr bool adds_keys(Mix mix) { return mix == Mix::ycsb_d || mix == Mix::ycsb_e; }
constexpr bool scans(Mix mix) { return mix == Mix::ycsb_e; }

const char* to_string(Mix mix) noexcept;
// "paper, ycsb-a" and so on.
std::string mix_names();
// One of those names, or "ycsb" for its six. Throws std::invalid_argument, with the names there
// are, for any other.
std::vector<Mix> mixes_from_name(std::string_view name);

}  // namespace sp3::workloads

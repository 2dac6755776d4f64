// Reads what Intel's pcm-memory prints with -csv.
//
// Two lines of headings, then one line for each interval. The first heading says whose a column is
// (SKT0, ..., System), the second what it is; which columns there are depends on the machine, and only
// machines with persistent memory have PMM ones:
//
//   ,,SKT0,SKT0,SKT0,SKT0,SKT0,System,System,System,System,System,System,System
//   Date,Time,Mem Read (MB/s),...,DRAMRead,DRAMWrite,PMMREAD,PMMWrite,Read,Write,Memory
//   2026-01-31,12:00:00.123,  812.50,...
//
// Its unit is a million bytes a second.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace sp3::tools {

// Bytes per second of the whole machine; empty if there is no such column.
struct PcmSample {
  std::optional<double> media_read;  // of persistent memory
  std::optional<double> media_write;
  std::optional<double> dram_read;
  std::optional<double> dram_write;
};

class PcmCsv {
 public:
  // The sample that a line holds; nothing for headings, and for lines that are none of either.
  std::optional<PcmSample> line(std::string_view text);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  void find_columns(const std::vector<std::string_view>& names);

  std::vector<bool> system_;  // by the first heading: whether a column is the whole machine's
  std::size_t width_ = 0;     // columns; 0 until both headings were there
  std::array<std::size_t, 4> columns_{kNone, kNone, kNone, kNone};  // in PcmSample's order
};

}  // namespace sp3::tools

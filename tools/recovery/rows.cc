#include "tools/recovery/rows.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/print_to.h"

namespace sp3::tools {

void print_recoveries(std::FILE* out, const nlohmann::json& rows) {
  print_to(out,
           "{:<10} {:>10} {:>12} {:<8} {:>7} {:>9} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} "
           "{:>11}\n",
           "workload", "log", "transactions", "strategy", "threads", "seconds", "spread", "scan",
           "cut", "order", "replay", "flush", "CPU s", "GB/s", "memory");
  for (const nlohmann::json& row : rows) {
    const auto text = [&](const char* name) { return row.at(name).get<std::string>(); };
    const auto real = [&](const char* name) { return row.at(name).get<double>(); };
    const auto whole = [&](const char* name) { return row.at(name).get<std::uint64_t>(); };
    print_to(out,
             "{:<10} {:>10} {:>12} {:<8} {:>7} {:>9.3f} {:>6.1f}% {:>8.3f} {:>8.3f} {:>8.3f} "
             "{:>8.3f} {:>8.3f} {:>8.3f} {:>7.2f} {:>11}\n",
             text("workload"), format_size(whole("log_bytes")), whole("replayed"), text("strategy"),
             whole("threads"), real("recovery_seconds"), 100 * real("spread"), real("scan_seconds"),
             real("cut_seconds"), real("order_seconds"), real("replay_seconds"),
             real("flush_seconds"), real("cpu_seconds"), real("bytes_per_s") * 1e-9,
             format_size(whole("memory_peak_bytes")));
  }
}

}  // namespace sp3::tools

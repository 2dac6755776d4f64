// sp3 pool create | info | check | recover
#include <memory>

#include <fmt/format.h>
#include <sp3/error.h>
#include <sp3/pool.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "pool/check.h"
#include "tools/command.h"
#include "tools/progress_bar.h"

namespace sp3::tools {

namespace {

struct PoolArguments {
  std::string path;
  std::string size;
  std::string memory = "automatic";
  std::string strategy = "stamp";
  std::string log_size, segment_size, slab_size;
  unsigned max_sessions = 0;
  unsigned threads = 0;
  bool accept_loss = false;
  bool json = false;
};

std::uint64_t size_or_zero(const std::string& text) { return text.empty() ? 0 : parse_size(text); }

std::uint32_t size32_or_zero(const char* option, const std::string& text) {
  const std::uint64_t size = size_or_zero(text);
  if (size > UINT32_MAX)
    throw UsageError(fmt::format("{}: wanted less than 4G, found {}", option, text));
  return static_cast<std::uint32_t>(size);
}

int create(const PoolArguments& a) {
  Options options;
  options.memory = parse_memory(a.memory);
  options.geometry.log_size = size_or_zero(a.log_size);
  options.geometry.segment_size = size32_or_zero("--segment-size", a.segment_size);
  options.geometry.slab_size = size32_or_zero("--slab-size", a.slab_size);
  options.geometry.max_sessions = a.max_sessions;
  Pool pool = Pool::create(a.path, parse_size(a.size), options);
  const PoolInfo info = pool.info();
  pool.close();
  fmt::print("{}: created, {}, {} of log, {} slabs, UUID {}\n", a.path, format_size(info.size),
             format_size(info.geometry.log_size), info.slabs_total, format_uuid(info.uuid));
  return kOk;
}

nlohmann::json info_json(const PoolInfo& info) {
  return {{"path", info.path},
          {"uuid", format_uuid(info.uuid)},
          {"format_version", info.format_version},
          {"compat_features", info.compat_features},
          {"ro_compat_features", info.ro_compat_features},
          {"incompat_features", info.incompat_features},
          {"size", info.size},
          {"log_size", info.geometry.log_size},
          {"segment_size", info.geometry.segment_size},
          {"slab_size", info.geometry.slab_size},
          {"max_sessions", info.geometry.max_sessions},
          {"generation", info.generation},
          {"checkpoint_number", info.checkpoint_number},
          {"checkpoint_floor", info.checkpoint_floor},
          {"clean", info.clean},
          {"slabs_total", info.slabs_total},
          {"slabs_carved", info.slabs_carved},
          {"objects", info.objects}};
}

int info(const PoolArguments& a) {
  const PoolInfo info = Pool::inspect(a.path);
  if (a.json) {
    fmt::print("{}\n", to_text(info_json(info)));
    return kOk;
  }
  fmt::print("path               {}\n", info.path);
  fmt::print("UUID               {}\n", format_uuid(info.uuid));
  fmt::print("format             {} (features: compat {:#x}, ro-compat {:#x}, incompat {:#x})\n",
             info.format_version, info.compat_features, info.ro_compat_features,
             info.incompat_features);
  fmt::print("size               {} ({} bytes)\n", format_size(info.size), info.size);
  fmt::print("log                {} in segments of {}\n", format_size(info.geometry.log_size),
             format_size(info.geometry.segment_size));
  fmt::print("sessions           at most {}\n", info.geometry.max_sessions);
  fmt::print("slabs              {} of {} in use, {} each\n", info.slabs_carved, info.slabs_total,
             format_size(info.geometry.slab_size));
  fmt::print("objects            {} as of the last checkpoint\n", info.objects);
  fmt::print("generation         {}\n", info.generation);
  fmt::print("checkpoint         number {}, floor {}\n", info.checkpoint_number,
             info.checkpoint_floor);
  fmt::print("state              {}\n",
             info.clean ? "closed cleanly" : "not closed: the next opening recovers");
  return kOk;
}

nlohmann::json check_json(const std::string& path, const CheckReport& report) {
  nlohmann::json damage = nlohmann::json::array();
  for (const Damage& d : report.damage) damage.push_back({{"offset", d.offset}, {"what", d.what}});
  return {{"path", path},          {"sound", report.sound()},          {"clean", report.clean},
          {"slabs", report.slabs}, {"objects", report.objects},        {"records", report.records},
          {"damage", damage},      {"more_damage", report.more_damage}};
}

// Of a pool that is too damaged to be looked into: what else there is nobody knows.
nlohmann::json check_json(const std::string& path, const Error& error) {
  nlohmann::json result = check_json(path, CheckReport{});
  for (const char* unknown : {"clean", "slabs", "objects", "records"}) result[unknown] = nullptr;
  result["sound"] = false;
  const auto& offset = error.facts().offset;
  result["damage"].push_back(
      {{"offset", offset ? nlohmann::json(*offset) : nlohmann::json()}, {"what", error.what()}});
  return result;
}

int check(const PoolArguments& a) {
  CheckReport report;
  try {
    report = Pool::check(a.path);
  } catch (const Error& error) {
    if (!a.json || !is_damage(error.code())) throw;
    fmt::print("{}\n", to_text(check_json(a.path, error)));
    return kFound;
  }
  if (a.json) {
    fmt::print("{}\n", to_text(check_json(a.path, report)));
  } else {
    print_damage(stdout, a.path + ": ", report.damage, report.more_damage);
    fmt::print("{}: {}, {}; {} slabs, {} objects, {} log records\n", a.path,
               report.sound()
                   ? "sound"
                   : fmt::format("{} places damaged", report.damage.size() + report.more_damage),
               report.clean ? "closed cleanly" : "not closed", report.slabs, report.objects,
               report.records);
  }
  return report.sound() ? kOk : kFound;
}

void print_report(const RecoveryReport& report) {
  if (report.was_clean) {
    fmt::print("the pool had been closed cleanly: there was nothing to recover{}\n",
               report.damage.empty() ? ""
                                     : fmt::format(", and {} places are given up",
                                                   report.damage.size() + report.more_damage));
    return;
  }
  fmt::print("records            {} found, {} replayed, {} dropped\n", report.records,
             report.replayed, report.dropped);
  fmt::print("logs               {} with records, {} with a torn end\n", report.sessions,
             report.torn);
  fmt::print("bytes              {} scanned, {} replayed\n", format_size(report.bytes_scanned),
             format_size(report.bytes_replayed));
  fmt::print("dependencies       {} between sessions\n", report.dependencies);
  fmt::print("strategy           {}, {} threads\n", to_string(report.strategy), report.threads);
  fmt::print(
      "seconds            {:.4f}: scan {:.4f}, cut {:.4f}, order {:.4f}, replay {:.4f}, flush "
      "{:.4f}\n",
      report.total_seconds, report.scan_seconds, report.cut_seconds, report.order_seconds,
      report.replay_seconds, report.flush_seconds);
}

void print_losses(const RecoveryReport& report) {
  for (const DroppedRecord& r : report.dropped_records) {
    fmt::print("dropped            session {}, record {}, stamp {}: {}\n", r.session, r.lsn,
               r.stamp, r.reason);
  }
  if (report.dropped > report.dropped_records.size()) {
    fmt::print("dropped            ... and {} more\n",
               report.dropped - report.dropped_records.size());
  }
  print_damage(stdout, "lost               ", report.damage, report.more_damage);
}

int recover(const PoolArguments& a) {
  Options options;
  options.memory = parse_memory(a.memory);
  options.recovery.strategy = parse_strategy(a.strategy);
  options.recovery.threads = a.threads;
  options.recovery.accept_loss = a.accept_loss;
  // A recovery verifies what it goes by; of a closed pool, opening leaves bitmaps to whoever needs
  // them.
  bool sound = true;
  if (auto file = pool::PoolFile::open(a.path, Options{}, pool::PoolFile::Access::read_only);
      file->is_clean()) {
    if (a.accept_loss) {
      file = nullptr;
      const CheckReport found = Pool::check(a.path);
      print_damage(stdout, "damaged            ", found.damage, found.more_damage);
      sound = found.sound();
    } else {
      pool::require_metadata(*file);
    }
  }
  auto bar = std::make_unique<ProgressBar>();
  options.recovery.progress = [&bar](const Progress& p) {
    if (bar) bar->show(p.phase, p.done, p.total);
  };
  // What is lost must have been told before it is: nothing tells it a second time.
  options.recovery.assessed = [&bar](const RecoveryReport& report) {
    bar->clear();
    if (!report.was_clean) print_losses(report);  // else it has been told
    require_output();
  };
  Pool pool = Pool::open(a.path, options);
  bar.reset();
  const RecoveryReport report = pool.recovery_report();
  print_report(report);
  pool.close();
  return sound && report.damage.empty() ? kOk : kFound;
}

}  // namespace

void add_pool_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<PoolArguments>();
  CLI::App* pool = app.add_subcommand("pool", "make, describe, check and recover pool files");
  pool->require_subcommand(1);

  CLI::App* c = pool->add_subcommand("create", "make a new, empty pool");
  c->add_option("path", a->path, "the file to make")->required();
  c->add_option("--size", a->size, "bytes, with K, M, G or T")->required();
  c->add_option("--memory", a->memory, "automatic, dax, file or emulated")->capture_default_str();
  c->add_option("--log-size", a->log_size, "bytes for all logs together");
  c->add_option("--segment-size", a->segment_size, "a log grows by this; a power of two");
  c->add_option("--slab-size", a->slab_size, "objects of a type share slabs; a power of two");
  c->add_option("--max-sessions", a->max_sessions, "sessions open at once");
  c->callback([a, &exit_code] { exit_code = create(*a); });

  CLI::App* i = pool->add_subcommand("info", "describe a pool without opening it");
  i->add_option("path", a->path, "the pool")->required();
  i->add_flag("--json", a->json, "as JSON");
  i->callback([a, &exit_code] { exit_code = info(*a); });

  CLI::App* k = pool->add_subcommand("check", "read everything that can be verified; 1 if damaged");
  k->add_option("path", a->path, "the pool")->required();
  k->add_flag("--json", a->json, "as JSON");
  k->callback([a, &exit_code] { exit_code = check(*a); });

  CLI::App* r = pool->add_subcommand(
      "recover", "recover a pool and close it; 1 if damaged or something was lost");
  r->add_option("path", a->path, "the pool")->required();
  r->add_flag("--accept-loss", a->accept_loss, "recover what damage to log or metadata has left");
  r->add_option("--strategy", a->strategy, "stamp or dag")->capture_default_str();
  r->add_option("--threads", a->threads, "0: one for each core")->capture_default_str();
  r->add_option("--memory", a->memory, "automatic, dax, file or emulated")->capture_default_str();
  r->callback([a, &exit_code] { exit_code = recover(*a); });
}

}  // namespace sp3::tools

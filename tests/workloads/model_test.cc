// Every system against containers of the standard library: the same operations, the same answers,
// the same contents at the end, and again after closing and opening.
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/workloads/support.h"
#include "workloads/system.h"

using namespace sp3::workloads;
using sp3::test::items_of;
using sp3::test::small_options;
using sp3::test::TempPath;

namespace {

using Contents = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // key, tag; by key

class Model {
 public:
  explicit Model(const WorkloadSpec& spec) : kind_(spec.kind) {
    for (std::uint64_t i = 0; i < spec.entries; ++i) {
      if (kind_ == WorkloadKind::sps) array_.push_back(i);
      if (kind_ == WorkloadKind::queue) queue_.push_back(i);
      if (is_map() && spec.present_at_start(i)) map_[i] = i;
    }
  }

  // What it read last, of a map.
  [[nodiscard]] std::uint64_t last_tag() const { return last_tag_; }

  bool execute(const Operation& operation) {
    switch (operation.kind) {
      case OperationKind::swap:
        std::swap(array_.at(operation.key), array_.at(operation.value));
        return true;
      case OperationKind::enqueue:
        queue_.push_back(operation.value);
        return true;
      case OperationKind::dequeue:
        if (queue_.empty()) return false;
        queue_.pop_front();
        return true;
      case OperationKind::insert:
        map_[operation.key] = operation.value;
        return true;
      case OperationKind::modify: {
        const bool is_there = read(operation.key);
        map_[operation.key] = operation.value;
        return is_there;
      }
      case OperationKind::scan: {
        std::uint64_t left = operation.count;
        for (auto at = map_.lower_bound(operation.key); at != map_.end() && left > 0;
             ++at, --left) {
          last_tag_ = at->second;
        }
        return left < operation.count;
      }
      case OperationKind::search:
        break;
      case OperationKind::read_range:
      case OperationKind::write_range:
      case OperationKind::transfer:
      case OperationKind::audit:
      case OperationKind::new_order:
      case OperationKind::payment:
        FAIL("ranges and applications have tests of their own");
    }
    return read(operation.key);
  }

  [[nodiscard]] Contents contents() const {
    if (is_map()) return {map_.begin(), map_.end()};
    Contents all;
    for (const std::uint64_t tag : array_) all.emplace_back(all.size(), tag);
    for (const std::uint64_t tag : queue_) all.emplace_back(all.size(), tag);
    return all;
  }

 private:
  bool read(std::uint64_t key) {
    const auto at = map_.find(key);
    if (at != map_.end()) last_tag_ = at->second;
    return at != map_.end();
  }
  [[nodiscard]] bool is_map() const {
    return kind_ != WorkloadKind::sps && kind_ != WorkloadKind::queue;
  }

  WorkloadKind kind_;
  std::vector<std::uint64_t> array_;
  std::deque<std::uint64_t> queue_;
  std::map<std::uint64_t, std::uint64_t> map_;
  std::uint64_t last_tag_ = 0;
};

Contents contents_of(System& system) {
  Contents found;
  for (const Item& item : items_of(system)) found.emplace_back(item.key, item.tag);
  std::ranges::sort(found);
  return found;
}

// Executes `operations` of thread `thread` on both and compares every answer.
void run_beside_model(System& system, const WorkloadSpec& spec, unsigned thread, int operations,
                      Model& model) {
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream stream(spec, zipf, thread, 2000);
  const std::unique_ptr<Client> client = system.connect();
  const ClientCounters before = client->counters();
  for (int i = 0; i < operations; ++i) {
    const Operation operation = stream.next();
    const bool found = client->execute(operation);
    if (found != model.execute(operation)) FAIL("operation " << i << " of thread " << thread);
    const bool reads = operation.kind == OperationKind::search ||
                       operation.kind == OperationKind::modify ||
                       operation.kind == OperationKind::scan;
    if (reads && found && client->last_tag() != model.last_tag()) {
      FAIL("what operation " << i << " of thread " << thread << " has read");
    }
  }
  client->drain();
  CHECK(client->counters().commits - before.commits == static_cast<std::uint64_t>(operations));
}

void compare_with_model(std::string_view name, const WorkloadSpec& spec, bool asynchronous) {
  CAPTURE(name, name_of(spec), spec.entry_size, asynchronous);
  const TempPath path("model");
  SystemOptions options = small_options(name, path);
  options.asynchronous = asynchronous;
  if (!why_unsupported(name, spec, options).empty()) return;
  const bool durable = system_info(name).durable;

  Model model(spec);
  auto system = make_system(name);
  system->create(spec, options);
  system->populate();
  REQUIRE(contents_of(*system) == model.contents());
  run_beside_model(*system, spec, 0, 600, model);
  REQUIRE(check(*system, spec) == "");
  REQUIRE(contents_of(*system) == model.contents());
  system->close();
  if (!durable) return;

  system = make_system(name);
  system->open(spec, options);
  REQUIRE(check(*system, spec) == "");
  REQUIRE(contents_of(*system) == model.contents());
  run_beside_model(*system, spec, 1, 100, model);
  REQUIRE(contents_of(*system) == model.contents());
  system->close();
}

}  // namespace

TEST_CASE("Every system answers as a standard container does, also after it was reopened") {
  WorkloadSpec spec;
  spec.entries = 300;
  spec.zipf = 0.5;
  for (const SystemInfo& info : systems()) {
    for (const WorkloadKind kind : kAllWorkloads) {
      spec.kind = kind;
      spec.fill = info.name == "nvm-ideal" ? 1.0 : 0.4;
      compare_with_model(info.name, spec, false);
      if (info.has_async) compare_with_model(info.name, spec, true);
    }
  }
}

TEST_CASE("Every system answers as a standard container does in the mixes of YCSB") {
  WorkloadSpec spec;
  spec.entries = 300;
  int compared = 0;
  for (const SystemInfo& info : systems()) {
    for (const WorkloadKind kind : {WorkloadKind::hashtable, WorkloadKind::bptree}) {
      for (const Mix mix : mixes_from_name("ycsb")) {
        spec.kind = kind;
        spec.mix = mix;
        const TempPath path("mix");
        if (why_unsupported(info.name, spec, small_options(info.name, path)).empty()) ++compared;
        compare_with_model(info.name, spec, false);
      }
    }
  }
  // sp3, sp3-async, nvm-tx, dram-tx, mnemosyne and quadra are in every build.
  CHECK(compared >= 6 * 11);
}

TEST_CASE("A scan ends with the greatest key") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::bptree;
  spec.entries = 300;
  spec.mix = Mix::ycsb_e;
  for (const SystemInfo& info : systems()) {
    CAPTURE(info.name);
    const TempPath path("scan");
    const SystemOptions options = small_options(info.name, path);
    if (!why_unsupported(info.name, spec, options).empty()) continue;
    const auto system = make_system(info.name);
    system->create(spec, options);
    system->populate();
    {
      const auto client = system->connect();
      CHECK(client->execute({OperationKind::scan, 0, 0, 1}));
      CHECK(client->execute({OperationKind::scan, 299, 0, 100}));
      CHECK_FALSE(client->execute({OperationKind::scan, 300, 0, 100}));
      CHECK(client->counters().writing_commits == 0);
    }
    system->close();
  }
}

TEST_CASE("A queue that runs empty answers so, and takes values again") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::queue;
  spec.entries = 2;
  spec.insert_ratio = 0.45;
  for (const SystemInfo& info : systems()) compare_with_model(info.name, spec, false);
}

TEST_CASE("Entries of other sizes are stored whole") {
  WorkloadSpec spec;
  spec.entries = 50;
  spec.fill = 0.5;
  for (const SystemInfo& info : systems()) {
    for (const std::uint32_t size : {16U, 4096U}) {
      spec.entry_size = size;
      for (const WorkloadKind kind : kAllWorkloads) {
        spec.kind = kind;
        compare_with_model(info.name, spec, false);
      }
    }
  }
}

#include "workloads/systems/pmdk/pmdk_system.h"

#include <stdexcept>

#include <fmt/format.h>

#include "emu/interposed/libpmem.h"
#include "workloads/systems/pmdk/heap.h"
#include "workloads/systems/pmdk/structure.h"

namespace sp3::workloads {

namespace {

std::unique_ptr<pmdk::Structure> make_structure(const pmdk::Heap& heap, const WorkloadSpec& spec) {
  switch (spec.kind) {
    case WorkloadKind::sps:
      return pmdk::make_sps(heap, spec);
    case WorkloadKind::queue:
      return pmdk::make_queue(heap, spec);
    case WorkloadKind::hashtable:
      return pmdk::make_hashtable(heap, spec);
    case WorkloadKind::rbtree:
      return pmdk::make_rbtree(heap, spec);
    case WorkloadKind::bptree:
      return pmdk::make_bptree(heap, spec);
    case WorkloadKind::ranges:
    case WorkloadKind::bank:
    case WorkloadKind::tpcc:
      break;
  }
  throw std::logic_error("pmdk: no such workload");
}

class PmdkSystem final : public System {
 public:
  void create(const WorkloadSpec& spec, const SystemOptions& options) override {
    configure(spec, options);
    std::filesystem::remove(options.path);
    const std::uint64_t size = options.pool_size != 0 ? options.pool_size : default_pool_size(spec);
    heap_.create(options.path, layout(spec), size, emulated_);
    structure_ = make_structure(heap_, spec);
    structure_->create();
  }

  void open(const WorkloadSpec& spec, const SystemOptions& options) override {
    configure(spec, options);
    heap_.open(options.path, layout(spec), emulated_);
    structure_ = make_structure(heap_, spec);
    structure_->attach();
  }

  void populate() override { structure_->populate(); }

  // What comes before is not measured, and need not be slow.
  std::unique_ptr<Client> connect() override {
    emu::set_libpmem_latency(latency_);
    return structure_->connect();
  }

  [[nodiscard]] BackgroundCounters background() const override { return {}; }
  std::string check_structure() override { return structure_->check_structure(); }
  void visit(const ItemVisitor& visitor) override { structure_->visit(visitor); }

  void close() override {
    structure_.reset();
    heap_.close();
    emu::set_libpmem_latency({});
  }

 private:
  void configure(const WorkloadSpec& spec, const SystemOptions& options) {
    spec.validate();
    const std::string reason = why_not_pmdk(spec, options);
    if (!reason.empty()) throw std::invalid_argument(reason);
    emulated_ = options.pool.memory == MemoryKind::emulated;
    latency_ = options.pool.latency;
    emu::set_libpmem_latency({});
  }

  static std::string layout(const WorkloadSpec& spec) {
    return fmt::format("sp3 {} of {} bytes", to_string(spec.kind), spec.entry_size);
  }

  bool emulated_ = false;
  Latency latency_;
  pmdk::Heap heap_;
  std::unique_ptr<pmdk::Structure> structure_;
};

}  // namespace

std::unique_ptr<System> make_pmdk() { return std::make_unique<PmdkSystem>(); }

std::string why_not_pmdk(const WorkloadSpec& spec, const SystemOptions& options) {
  if (is_application(spec.kind)) return why_no_application("pmdk", spec.kind);
  if (options.pool.flush != FlushInstruction::automatic) {
    return "pmdk flushes by the instruction that libpmem chooses (--flush automatic)";
  }
  return {};
}

}  // namespace sp3::workloads

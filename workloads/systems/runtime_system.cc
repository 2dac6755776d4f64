#include "workloads/systems/runtime_system.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>

namespace sp3::workloads {

namespace {

std::unique_ptr<Structure> make_structure(const WorkloadSpec& spec) {
  switch (spec.kind) {
    case WorkloadKind::sps:
      return make_sps(spec);
    case WorkloadKind::queue:
      return make_queue(spec);
    case WorkloadKind::hashtable:
      return make_hashtable(spec);
    case WorkloadKind::rbtree:
      return make_rbtree(spec);
    case WorkloadKind::bptree:
      return make_bptree(spec);
    case WorkloadKind::ranges:
      return make_ranges(spec);
    case WorkloadKind::bank:
      return make_bank(spec);
    case WorkloadKind::tpcc:
      return make_tpcc(spec);
  }
  throw std::logic_error("make_structure: no such workload");
}

constexpr std::uint64_t kMostLog = std::uint64_t{1} << 30;

class RuntimeSystem final : public System {
 public:
  explicit RuntimeSystem(RuntimeVariant variant) : variant_(variant) {}

  void create(const WorkloadSpec& spec, const SystemOptions& options) override {
    configure(spec, options);
    // The ideal policy refuses to make objects, so its pool is filled under another.
    if (variant_.policy == CommitPolicy::ideal) options_.policy = CommitPolicy::speculative;

    std::filesystem::remove(path_);
    std::uint64_t size = options.pool_size;
    if (size == 0) {
      // Up to twice the log that a pool has by itself: there is room, and fewer checkpoints.
      size = default_pool_size(spec);
      options_.geometry.log_size = std::min(size / 2, kMostLog);
    }
    pool_ = Pool::create(path_, size, options_);
    structure_ = make_structure(spec);
    Session session = pool_->session();
    structure_->create(session);
    session.close();
  }

  void open(const WorkloadSpec& spec, const SystemOptions& options) override {
    configure(spec, options);
    attach();
  }

  void populate() override {
    Session session = pool_->session();
    structure_->populate(session);
    session.close();
    if (variant_.policy == CommitPolicy::ideal) {
      pool_->close();
      options_.policy = CommitPolicy::ideal;
      attach();
    } else if (variant_.policy != CommitPolicy::volatile_only) {
      // Every run starts with all objects at home and an empty log.
      pool_->checkpoint();
    }
  }

  std::unique_ptr<Client> connect() override {
    return structure_->connect(pool_->session(), asynchronous_);
  }

  [[nodiscard]] BackgroundCounters background() const override {
    const PoolStatistics s = pool_->statistics();
    return {s.checkpoints,           s.checkpoint_lines, s.checkpoint_fences,
            s.checkpoint_longest_ns, s.flusher_lines,    s.flusher_fences};
  }

  std::string check_structure() override {
    Session session = pool_->session();
    std::string violation = structure_->check_structure(session);
    session.close();
    return violation;
  }

  void visit(const ItemVisitor& visitor) override {
    Session session = pool_->session();
    structure_->visit(session, visitor);
    session.close();
  }

  void close() override {
    structure_.reset();
    pool_->close();
    pool_.reset();
  }

 private:
  void configure(const WorkloadSpec& spec, const SystemOptions& options) {
    spec.validate();
    spec_ = spec;
    path_ = options.path;
    asynchronous_ = variant_.asynchronous || options.asynchronous;
    options_ = options.pool;
    options_.policy = variant_.policy;
  }

  void attach() {
    pool_ = Pool::open(path_, options_);
    structure_ = make_structure(spec_);
    Session session = pool_->session();
    structure_->attach(session);
    session.close();
  }

  RuntimeVariant variant_;
  WorkloadSpec spec_;
  std::filesystem::path path_;
  Options options_;
  bool asynchronous_ = false;
  std::optional<Pool> pool_;
  std::unique_ptr<Structure> structure_;
};

}  // namespace

std::unique_ptr<System> make_runtime_system(RuntimeVariant variant) {
  return std::make_unique<RuntimeSystem>(variant);
}

}  // namespace sp3::workloads

// The systems that are this repository's runtime under one of its commit policies.
#pragma once

#include <memory>
#include <string>

#include <sp3/options.h>
#include <sp3/pool.h>
#include <sp3/session.h>

#include "workloads/system.h"
#include "workloads/workload.h"

namespace sp3::workloads {

struct RuntimeVariant {
  CommitPolicy policy = CommitPolicy::speculative;
  bool asynchronous = false;  // whether or not the options ask for it
};

std::unique_ptr<System> make_runtime_system(RuntimeVariant variant);

// One workload's data in a pool, with the entry size fixed at compile time behind it.
class Structure {
 public:
  Structure() = default;
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;
  virtual ~Structure() = default;

  virtual void create(Session& session) = 0;    // empty, bound to a root
  virtual void populate(Session& session) = 0;  // in transactions of moderate size
  virtual void attach(Session& session) = 0;    // found again by its root
  virtual std::string check_structure(Session& session) = 0;
  virtual void visit(Session& session, const ItemVisitor& visitor) = 0;
  virtual std::unique_ptr<Client> connect(Session session, bool asynchronous) = 0;
};

// One source file each, so that they compile in parallel. REQUIRES: spec.validate() passed.
std::unique_ptr<Structure> make_sps(const WorkloadSpec& spec);
std::unique_ptr<Structure> make_queue(const WorkloadSpec& spec);
std::unique_ptr<Structure> make_hashtable(const WorkloadSpec& spec);
std::unique_ptr<Structure> make_rbtree(const WorkloadSpec& spec);
std::unique_ptr<Structure> make_bptree(const WorkloadSpec& spec);
std::unique_ptr<Structure> make_ranges(const WorkloadSpec& spec);
std::unique_ptr<Structure> make_bank(const WorkloadSpec& spec);
std::unique_ptr<Structure> make_tpcc(const WorkloadSpec& spec);

}  // namespace sp3::workloads

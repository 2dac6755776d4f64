// StructureOf<W>: wraps a workload W (workloads/sps.h and so on) for RuntimeSystem.
//
// W is a small copyable value with
//   explicit W(const WorkloadSpec&);
//   void create(Session&);     void populate(Session&);     void attach(Session&);
//   bool execute(Transaction&, const Operation&);   // the body of one transaction; may cancel it
//   std::string check_structure(Transaction&) const;          // empty if its invariants hold
//   void visit(Transaction&, const ItemVisitor&) const;       // in the container's order
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sp3/sp3.h>

#include "workloads/entry.h"
#include "workloads/systems/runtime_system.h"

namespace sp3::workloads {

template <class W>
class RuntimeClient final : public Client {
 public:
  RuntimeClient(const W& workload, Session session, bool asynchronous)
      : workload_(workload), session_(std::move(session)), asynchronous_(asynchronous) {}

  bool execute(const Operation& operation) override {
    bool found = false;
    const auto body = [&](Transaction& tx) { found = workload_.execute(tx, operation); };
    try {
      if (asynchronous_) {
        // Durability is awaited by drain(), for all at once, so the ticket may go.
        static_cast<void>(session_.run_async(body));
      } else {
        session_.run(body);
      }
    } catch (const Cancelled&) {
      return false;
    }
    return found;
  }

  [[nodiscard]] std::uint64_t last_tag() const override {
    if constexpr (requires { workload_.last_tag(); }) return workload_.last_tag();
    return 0;
  }

  void drain() override {
    if (asynchronous_) session_.flush();
  }

  [[nodiscard]] ClientCounters counters() const override {
    const SessionStatistics s = session_.statistics();
    return {s.commits,      s.writing_commits, s.aborts, s.lines,    s.fences,
            s.helped_lines, s.helped_fences,   s.waits,  s.log_bytes};
  }

 private:
  W workload_;
  Session session_;
  bool asynchronous_;
};

template <class W>
class StructureOf final : public Structure {
 public:
  explicit StructureOf(const WorkloadSpec& spec) : workload_(spec) {}

  void create(Session& session) override { workload_.create(session); }
  void populate(Session& session) override { workload_.populate(session); }
  void attach(Session& session) override { workload_.attach(session); }
  std::string check_structure(Session& session) override {
    return session.run([&](Transaction& tx) { return workload_.check_structure(tx); });
  }
  void visit(Session& session, const ItemVisitor& visitor) override {
    // Collected first: a body may run again, and a visitor should see every item once.
    std::vector<Item> items;
    session.run([&](Transaction& tx) {
      items.clear();
      workload_.visit(tx, [&](const Item& item) {
        items.push_back(item);
        return true;
      });
    });
    for (const Item& item : items) {
      if (!visitor(item)) return;
    }
  }
  std::unique_ptr<Client> connect(Session session, bool asynchronous) override {
    return std::make_unique<RuntimeClient<W>>(workload_, std::move(session), asynchronous);
  }

 private:
  W workload_;
};

// The instantiation for the spec's entry size. REQUIRES: it is one of kEntrySizes.
template <template <std::size_t> class W>
std::unique_ptr<Structure> structure_for(const WorkloadSpec& spec) {
  return with_entry_size(spec.entry_size, [&]<std::size_t Size>() -> std::unique_ptr<Structure> {
    return std::make_unique<StructureOf<W<Size>>>(spec);
  });
}

}  // namespace sp3::workloads

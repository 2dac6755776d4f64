// StoreClient: what the clients of a key-value store share: a session, its syncs and its groups.
//
// The fences of a client are the syncs that its own thread called for. A store may let one thread
// sync for several: all clients' fences together are right, one client's alone are not.
#pragma once

#include <cstdint>
#include <memory>

#include "emu/interposed/syncs.h"
#include "workloads/system.h"
#include "workloads/systems/keyvalue/group_sync.h"
#include "workloads/systems/keyvalue/store.h"

namespace sp3::workloads::keyvalue {

class StoreClient : public Client {
 public:
  // `group` is null if every put is durable by itself.
  StoreClient(Store& store, GroupSync* group)
      : session_(store.connect()),
        group_(group),
        hidden_syncs_per_put_(group == nullptr ? store.hidden_syncs_per_put() : 0) {}

  void drain() override {
    const std::uint64_t before = emu::sync_calls();
    if (group_ != nullptr) group_->flush(pending_);
    counters_.fences += emu::sync_calls() - before;
  }

  [[nodiscard]] ClientCounters counters() const override { return counters_; }

 protected:
  Session& session() noexcept { return *session_; }
  ClientCounters& counted() noexcept { return counters_; }

  // Counts a transaction that has put so many bytes, when there had been `syncs_before`.
  void count_written(std::uint64_t bytes, std::uint64_t syncs_before) {
    if (group_ != nullptr) group_->committed(pending_, bytes);
    ++counters_.writing_commits;
    counters_.fences += emu::sync_calls() - syncs_before + hidden_syncs_per_put_;
  }

 private:
  std::unique_ptr<Session> session_;
  GroupSync* group_;
  std::uint64_t hidden_syncs_per_put_;
  GroupSync::Pending pending_;
  ClientCounters counters_;
};

}  // namespace sp3::workloads::keyvalue

// The workloads of several rows a transaction, bank and tpcc, on a key-value store: rows are
// values, found by their packed keys (workloads/rows.h), all tables in the store's one.
#pragma once

#include <cstdint>
#include <memory>

#include "workloads/system.h"
#include "workloads/systems/keyvalue/group_sync.h"
#include "workloads/systems/keyvalue/store.h"

namespace sp3::workloads::keyvalue {

// All of these REQUIRE is_application(spec.kind).

void populate_application(Session& session, const WorkloadSpec& spec);
// `group` is null if every transaction is durable by itself.
std::unique_ptr<Client> connect_application(Store& store, GroupSync* group,
                                            const WorkloadSpec& spec);
// What a value of the store is to a check.
Item application_item(const WorkloadSpec& spec, std::uint64_t key, Value value);

}  // namespace sp3::workloads::keyvalue

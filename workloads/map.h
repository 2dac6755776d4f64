// What the three map workloads share: insert (update if present), search, read and write, or scan
// by an 8-byte key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sp3/sp3.h>

#include "workloads/batches.h"
#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/workload.h"

namespace sp3::workloads {

// `Map` is one of the containers from std::uint64_t to Entry<Size>.
template <class Map, std::size_t Size>
class MapWorkload {
 public:
  explicit MapWorkload(const WorkloadSpec& spec) : spec_(spec) {}

  void create(Session& session) {
    session.run([&](Transaction& tx) {
      map_ = Map::create(tx);
      tx.set_root(root(), map_.header());
    });
  }

  void populate(Session& session) {
    const std::vector<std::uint64_t> keys = spec_.initial_keys();
    for_each_batched(session, keys.size(), Size, [&](Transaction& tx, std::uint64_t i) {
      map_.insert_or_assign(tx, keys[i], Entry<Size>::of(keys[i]));
    });
    attach(session);
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      map_ = Map::open(tx, tx.root<typename Map::Header>(root()));
      if constexpr (requires { map_.cached(tx); }) map_ = map_.cached(tx);
    });
  }

  bool execute(Transaction& tx, const Operation& operation) {
    if (operation.kind == OperationKind::insert) {
      map_.insert_or_assign(tx, operation.key, Entry<Size>::of(operation.value));
      return true;
    }
    if constexpr (kScans) {
      if (operation.kind == OperationKind::scan) return scan(tx, operation);
    }
    const Entry<Size>* found = map_.lookup(tx, operation.key);
    const bool is_there = found != nullptr;
    // The caller of a search wants the value, so its bytes are read.
    if (is_there) result_ = *found;
    if (operation.kind == OperationKind::modify) {
      map_.insert_or_assign(tx, operation.key, Entry<Size>::of(operation.value));
    }
    return is_there;
  }

  // As Client has it.
  [[nodiscard]] std::uint64_t last_tag() const { return result_.tag(); }

  std::string check_structure(Transaction& tx) const { return map_.check_invariants(tx); }

  void visit(Transaction& tx, const ItemVisitor& visitor) const {
    map_.for_each(tx, [&](std::uint64_t key, const Entry<Size>& entry) {
      return visitor({key, entry.tag(), entry.intact()});
    });
  }

 private:
  static constexpr bool kScans = requires(const Map& map, Transaction& tx) {
    map.range(tx, std::uint64_t{0}, std::uint64_t{0},
              [](std::uint64_t, const Entry<Size>&) { return true; });
  };

  bool scan(Transaction& tx, const Operation& operation) requires kScans {
    std::uint64_t left = operation.count;
    map_.range(tx, operation.key, ~std::uint64_t{0}, [&](std::uint64_t, const Entry<Size>& entry) {
      result_ = entry;
      return --left != 0;
    });
    return left < operation.count;
  }

  [[nodiscard]] std::string_view root() const { return to_string(spec_.kind); }

  WorkloadSpec spec_;
  Map map_;
  Entry<Size> result_{};
};

}  // namespace sp3::workloads

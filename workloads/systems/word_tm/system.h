// WordSystem<Engine>: the five workloads on a word-based transactional memory.
//
// Engine is the memory:
//   Engine(path, size, options)   makes a store      Engine(path, options)   opens and recovers one
//   class Tx;                     a WordTransaction
//   class Client { counters(); }  one thread's way in, made from the Engine; not copied
//   bool update(Client&, Body<Tx>)    runs the body as one durable transaction
//   bool read(Client&, Body<Tx>)      likewise a body without stores
//   BackgroundCounters background()
//   void close()
// A body may run more than once; the last run counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/system.h"
#include "workloads/systems/word_tm/body.h"
#include "workloads/systems/word_tm/bptree.h"
#include "workloads/systems/word_tm/hashtable.h"
#include "workloads/systems/word_tm/map.h"
#include "workloads/systems/word_tm/queue.h"
#include "workloads/systems/word_tm/rbtree.h"
#include "workloads/systems/word_tm/sps.h"

namespace sp3::workloads::word_tm {

// Runs `callable`, which takes a Tx, as a transaction that may write.
template <class Engine, class F>
bool update(Engine& engine, typename Engine::Client& client, F callable) {
  return engine.update(client, Body<typename Engine::Tx>(callable));
}
template <class Engine, class F>
bool read(Engine& engine, typename Engine::Client& client, F callable) {
  return engine.read(client, Body<typename Engine::Tx>(callable));
}

template <class Engine, class W>
class WordClient final : public workloads::Client {
 public:
  WordClient(Engine& engine, const W& structure)
      : engine_(engine), client_(engine), structure_(structure) {}

  bool execute(const Operation& operation) override {
    const auto body = [&](typename Engine::Tx& tx) {
      if constexpr (requires { structure_.execute(tx, operation, last_tag_); }) {
        return structure_.execute(tx, operation, last_tag_);
      } else {
        return structure_.execute(tx, operation);
      }
    };
    const bool reads =
        operation.kind == OperationKind::search || operation.kind == OperationKind::scan;
    if (reads) return read(engine_, client_, body);
    return update(engine_, client_, body);
  }
  [[nodiscard]] std::uint64_t last_tag() const override { return last_tag_; }
  [[nodiscard]] ClientCounters counters() const override { return client_.counters(); }

 private:
  Engine& engine_;
  typename Engine::Client client_;
  const W& structure_;
  std::uint64_t last_tag_ = 0;
};

// One workload's data, with its type behind it.
template <class Engine>
class Structure {
 public:
  Structure() = default;
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;
  virtual ~Structure() = default;

  virtual void create(Engine& engine) = 0;
  virtual void attach(Engine& engine) = 0;
  virtual void populate(Engine& engine) = 0;
  virtual std::string check_structure(Engine& engine) = 0;
  virtual void visit(Engine& engine, const ItemVisitor& visitor) = 0;
  virtual std::unique_ptr<workloads::Client> connect(Engine& engine) = 0;
};

template <class Engine, class W>
class StructureOf final : public Structure<Engine> {
  using Tx = typename Engine::Tx;

 public:
  explicit StructureOf(const WorkloadSpec& spec) : spec_(spec), structure_(spec) {}

  void create(Engine& engine) override {
    typename Engine::Client client(engine);
    update(engine, client, [&](Tx& tx) {
      structure_.create(tx);
      return true;
    });
  }
  void attach(Engine& engine) override {
    typename Engine::Client client(engine);
    read(engine, client, [&](Tx& tx) {
      structure_.attach(tx);
      return true;
    });
  }
  void populate(Engine& engine) override {
    typename Engine::Client client(engine);
    // So many that a log of moderate size holds the transaction.
    const std::uint64_t batch = std::clamp<std::uint64_t>(4096 / spec_.entry_size, 1, 32);
    for (std::uint64_t next = 0; next < spec_.entries; next += batch) {
      update(engine, client, [&](Tx& tx) {
        structure_.populate(tx, next, std::min(spec_.entries, next + batch));
        return true;
      });
    }
  }
  std::string check_structure(Engine& engine) override {
    typename Engine::Client client(engine);
    std::string violation;
    read(engine, client, [&](Tx& tx) {
      violation = structure_.check_structure(tx);
      return true;
    });
    return violation;
  }
  void visit(Engine& engine, const ItemVisitor& visitor) override {
    typename Engine::Client client(engine);
    // Collected first: a body may run again, and a visitor should see every item once.
    std::vector<Item> items;
    read(engine, client, [&](Tx& tx) {
      items.clear();
      structure_.visit(tx, [&](const Item& item) {
        items.push_back(item);
        return true;
      });
      return true;
    });
    for (const Item& item : items) {
      if (!visitor(item)) return;
    }
  }
  std::unique_ptr<workloads::Client> connect(Engine& engine) override {
    return std::make_unique<WordClient<Engine, W>>(engine, structure_);
  }

 private:
  WorkloadSpec spec_;
  W structure_;
};

template <class Engine>
std::unique_ptr<Structure<Engine>> make_structure(const WorkloadSpec& spec) {
  switch (spec.kind) {
    case WorkloadKind::sps:
      return std::make_unique<StructureOf<Engine, Sps>>(spec);
    case WorkloadKind::queue:
      return std::make_unique<StructureOf<Engine, Queue>>(spec);
    case WorkloadKind::hashtable:
      return std::make_unique<StructureOf<Engine, Map<HashTable>>>(spec);
    case WorkloadKind::rbtree:
      return std::make_unique<StructureOf<Engine, Map<RbTree>>>(spec);
    case WorkloadKind::bptree:
    case WorkloadKind::ranges:  // refused by why_unsupported(), as the next
    case WorkloadKind::bank:
    case WorkloadKind::tpcc:
      break;
  }
  return std::make_unique<StructureOf<Engine, Map<BpTree>>>(spec);
}

template <class Engine>
class WordSystem final : public System {
 public:
  void create(const WorkloadSpec& spec, const SystemOptions& options) override {
    spec.validate();
    const std::uint64_t size = options.pool_size != 0 ? options.pool_size : default_pool_size(spec);
    engine_ = std::make_unique<Engine>(options.path, size, options.pool);
    structure_ = make_structure<Engine>(spec);
    structure_->create(*engine_);
  }
  void open(const WorkloadSpec& spec, const SystemOptions& options) override {
    spec.validate();
    engine_ = std::make_unique<Engine>(options.path, options.pool);
    structure_ = make_structure<Engine>(spec);
    structure_->attach(*engine_);
  }
  void populate() override { structure_->populate(*engine_); }
  std::unique_ptr<workloads::Client> connect() override { return structure_->connect(*engine_); }
  [[nodiscard]] BackgroundCounters background() const override { return engine_->background(); }
  std::string check_structure() override { return structure_->check_structure(*engine_); }
  void visit(const ItemVisitor& visitor) override { structure_->visit(*engine_, visitor); }
  void close() override {
    structure_.reset();
    engine_->close();
    engine_.reset();
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Structure<Engine>> structure_;
};

}  // namespace sp3::workloads::word_tm

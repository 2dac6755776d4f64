#include "workloads/systems/keyvalue/system.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "emu/interposed/syncs.h"
#include "workloads/entry.h"
#include "workloads/systems/keyvalue/applications.h"
#include "workloads/systems/keyvalue/client.h"
#include "workloads/systems/keyvalue/group_sync.h"

namespace sp3::workloads::keyvalue {

namespace {

template <std::size_t Size>
Value bytes_of(const Entry<Size>& entry) {
  return std::as_bytes(std::span(entry.words));
}

template <std::size_t Size>
class KeyValueClient final : public StoreClient {
 public:
  using StoreClient::StoreClient;

  bool execute(const Operation& operation) override {
    ++counted().commits;
    const auto result = std::as_writable_bytes(std::span(result_.words));
    if (operation.kind == OperationKind::search) return session().get(operation.key, result);
    if (operation.kind == OperationKind::scan) {
      return session().scan(operation.key, operation.count, [&](Value value) {
        std::copy_n(value.begin(), std::min(value.size(), result.size()), result.begin());
      }) != 0;
    }
    const Entry<Size> entry = Entry<Size>::of(operation.value);
    const std::uint64_t before = emu::sync_calls();
    bool found = true;
    if (operation.kind == OperationKind::modify) {
      counted().aborts += session().transact([&](Transaction& tx) {
        found = tx.get(operation.key, result, Use::change);
        tx.put(operation.key, bytes_of(entry));
      });
    } else {
      session().put(operation.key, bytes_of(entry));
    }
    count_written(Size, before);
    return found;
  }

  [[nodiscard]] std::uint64_t last_tag() const override { return result_.tag(); }

 private:
  Entry<Size> result_{};
};

class KeyValueSystem final : public System {
 public:
  explicit KeyValueSystem(OpenStore* open_store) : open_store_(open_store) {}

  void create(const WorkloadSpec& spec, const SystemOptions& options) override {
    std::filesystem::remove_all(options.path);
    std::filesystem::create_directories(options.path);
    open(spec, options);
  }

  void open(const WorkloadSpec& spec, const SystemOptions& options) override {
    spec.validate();
    const std::string reason = why_not(spec, options);
    if (!reason.empty()) throw std::invalid_argument(reason);
    spec_ = spec;
    store_ = open_store_(
        {.directory = options.path,
         .capacity = options.pool_size != 0 ? options.pool_size : default_pool_size(spec),
         .value_size = spec.entry_size,
         .synchronous = !options.asynchronous});
    if (options.asynchronous) group_.emplace(options.pool.async, [this] { store_->sync(); });
  }

  void populate() override {
    const std::unique_ptr<Session> session = store_->connect();
    if (is_application(spec_.kind)) {
      populate_application(*session, spec_);
      store_->sync();
      return;
    }
    constexpr std::size_t kBatch = 1000;
    const std::vector<std::uint64_t> keys = spec_.initial_keys();
    with_entry_size(spec_.entry_size, [&]<std::size_t Size>() {
      Entry<Size> entry{};
      const auto value_of = [&](std::uint64_t key) {
        entry = Entry<Size>::of(key);
        return bytes_of(entry);
      };
      for (std::size_t next = 0; next < keys.size(); next += kBatch) {
        const std::size_t count = std::min(kBatch, keys.size() - next);
        session->put_all(std::span(keys).subspan(next, count), value_of);
      }
    });
    store_->sync();
  }

  std::unique_ptr<Client> connect() override {
    if (is_application(spec_.kind)) {
      return connect_application(*store_, group_ ? &*group_ : nullptr, spec_);
    }
    return with_entry_size(spec_.entry_size, [&]<std::size_t Size>() -> std::unique_ptr<Client> {
      return std::make_unique<KeyValueClient<Size>>(*store_, group_ ? &*group_ : nullptr);
    });
  }

  [[nodiscard]] BackgroundCounters background() const override {
    BackgroundCounters counters;
    if (group_) counters.flusher_fences = group_->timed_syncs();
    return counters;
  }

  std::string check_structure() override { return store_->check(); }

  void visit(const ItemVisitor& visitor) override {
    if (is_application(spec_.kind)) {
      store_->visit([&](std::uint64_t key, Value value) {
        return visitor(application_item(spec_, key, value));
      });
      return;
    }
    with_entry_size(spec_.entry_size, [&]<std::size_t Size>() {
      store_->visit([&](std::uint64_t key, Value value) {
        Entry<Size> entry{};
        const bool whole = value.size() == sizeof entry;
        std::memcpy(&entry, value.data(), std::min(value.size(), sizeof entry));
        return visitor({key, entry.tag(), whole && entry.intact()});
      });
    });
  }

  void close() override {
    group_.reset();
    store_->sync();
    store_.reset();
  }

 private:
  OpenStore* open_store_;
  WorkloadSpec spec_;
  std::unique_ptr<Store> store_;
  std::optional<GroupSync> group_;
};

}  // namespace

std::unique_ptr<System> make_system(OpenStore* open) {
  return std::make_unique<KeyValueSystem>(open);
}

std::string why_not(const WorkloadSpec& spec, const SystemOptions& options) {
  if (spec.kind != WorkloadKind::hashtable && spec.kind != WorkloadKind::bptree &&
      !is_application(spec.kind)) {
    return fmt::format("a key-value store runs hashtable, bptree, bank and tpcc, not {}",
                       to_string(spec.kind));
  }
  if (options.pool.memory != MemoryKind::file) {
    return fmt::format("a key-value store writes and syncs files: --memory file, not {}",
                       to_string(options.pool.memory));
  }
  return {};
}

}  // namespace sp3::workloads::keyvalue

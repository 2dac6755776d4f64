// WeakMemory: what loads of simulated cores may find, where cores do not see one order of all
// stores.
//
// Each atomic has the messages of its last stores, in the order in which they were done. Each core
// knows of some of them: those it made or read, and those it learned of by synchronisation. It may
// read any message but what it knows to be overwritten. A message of a release store carries what
// its core knew; an acquire load takes that over. Fences do the same for the relaxed accesses
// before or behind them.
//
// That is the memory model of C++ as far as loads are concerned (stores are done in the order of
// their core, and an exchange reads the last message), but stronger in three ways:
//   - a store, an exchange or a fence that is seq_cst is a full fence, as the instructions for them
//     are on x86; so are locks, and whatever makes a core sleep or wakes one;
//   - what a core stored is known to all once so many further stores have been done (the window);
//   - a load that precedes a store in its core never reads what comes of that store.
// Memory that is not atomic has one content, and accesses to it that nothing orders are races
// (plain_memory.h). What orders them is what the standard says, handed on with what is known of
// atomics, but for full fences, which order nothing unless an atomic is read: only locks, and
// whatever makes a core sleep or wakes one, do without.
//
// After Kang, Hur, Lahav, Vafeiadis, Dreyer: A promising semantics for relaxed-memory concurrency,
// POPL 2017, without its promises.
//
// Thread safety: as Machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/memory_model.h"
#include "emu/sim/plain_memory.h"
#include "emu/sim/random.h"

namespace sp3::emu::sim {

class Machine;

// Accesses at a place of the source that have a weaker order than they state, to show that it is
// needed there.
struct Weakening {
  std::string file;        // how its path ends
  std::uint32_t line = 0;  // 0: all
  std::memory_order to = std::memory_order_relaxed;
  std::uint64_t met = 0;  // accesses there that state an order
};
// Of all machines; set between runs.
inline std::optional<Weakening> weakening;

// Called for each access whose stated order is not relaxed.
using SiteVisitor = void (*)(base::AtomicAccess access, std::memory_order stated,
                             const base::Site& site);
inline SiteVisitor site_visitor = nullptr;

class WeakMemory final : public base::MemoryModel {
 public:
  WeakMemory(Machine& machine, std::uint64_t seed);

  // Core `child` knows what the running one does. Cores are numbered from 0 on.
  void spawned(std::uint32_t child);
  // The running core executes a full fence, behind what all did who have said so of this place.
  void synchronise(const void* on) noexcept;
  // What others did before their full fences is known to the running core.
  void see_fenced() noexcept;
  // Loads that gave something else than the newest.
  [[nodiscard]] std::uint64_t stale_loads() const noexcept { return stale_loads_; }
  // The first race in words; empty if there was none.
  [[nodiscard]] const std::string& race() const noexcept { return plain_.race(); }

  std::memory_order before_access(base::AtomicAccess access, std::memory_order stated,
                                  const base::Site& site) noexcept override;
  std::uint64_t load(const void* at, std::uint64_t newest,
                     std::memory_order order) noexcept override;
  void store(const void* at, std::uint64_t before, std::uint64_t value,
             std::memory_order order) noexcept override;
  void exchange(const void* at, std::uint64_t before, std::uint64_t value,
                std::memory_order order) noexcept override;
  void fail_to_exchange(const void* at, std::uint64_t found,
                        std::memory_order order) noexcept override;
  void fence(std::memory_order order) noexcept override;
  void fence_everywhere(std::memory_order order) noexcept override;
  void begin_step() noexcept override { ++steps_; }
  void end_step() noexcept override { --steps_; }
  void forget(const void* at) noexcept override;
  void read_plainly(const void* at, std::size_t bytes, const base::Site& site) noexcept override;
  void read_for_long(const void* at, std::size_t bytes, const base::Site& site) noexcept override;
  void end_long_reads() noexcept override;
  void write_plainly(const void* at, std::size_t bytes, const base::Site& site) noexcept override;
  void forget_plainly(const void* at, std::size_t bytes) noexcept override;

 private:
  using Moment = std::uint64_t;  // stores are counted
  // Of each atomic the store up to which all are known.
  struct Known {
    std::uint32_t atomic;
    Moment when;
  };
  using Stores = std::vector<Known>;  // by number; who is missing has nothing that not all know
  struct View {
    Stores stores;
    PlainMemory::Clock accesses;
  };
  using SharedView = std::shared_ptr<const View>;
  struct Message {
    Moment when;
    std::uint64_t held_up_until;  // in events; before that nobody reads it who need not
    std::uint64_t value;
    SharedView released;
  };
  struct Atomic {
    std::uint32_t number;
    std::vector<Message> messages;  // the first is the last that all know
  };
  struct CoreViews {
    View now;
    View read;            // by relaxed loads; an acquire fence takes it over
    SharedView released;  // by the last release fence
  };

  CoreViews& running() noexcept;
  Atomic* find(const void* at, std::uint64_t newest) noexcept;
  Atomic& find_or_make(const void* at, std::uint64_t before);
  const Message* last_message(const Atomic* atomic, const void* at, std::uint64_t newest) noexcept;
  void drop_old_messages(Atomic& atomic) const noexcept;
  void drop_old() noexcept;
  void take_over(CoreViews& core, const Message& message, bool acquires) const;
  void put(const void* at, std::uint64_t before, std::uint64_t value, bool releases,
           const SharedView& earlier);
  void fence(CoreViews& core, std::memory_order order) noexcept;
  void fence_fully(CoreViews& core) noexcept;
  [[nodiscard]] std::uint64_t choose_hold_up() noexcept;
  [[nodiscard]] Moment oldest() const noexcept { return moment_ > window_ ? moment_ - window_ : 0; }
  [[nodiscard]] static Moment known(const Stores& stores, std::uint32_t atomic) noexcept;
  static void learn(Stores& stores, std::uint32_t atomic, Moment when);
  void join(Stores& stores, const Stores& more) const;
  void join(View& view, const View& more) const;

  Machine& machine_;
  PlainMemory plain_;
  Random random_;
  const std::uint64_t stale_one_in_;  // of the loads that have a choice
  const std::uint64_t held_up_one_in_;
  const std::uint64_t longest_hold_up_;
  const std::uint64_t window_;
  std::unordered_map<const void*, Atomic> atomics_;  // that somebody may not know all of
  // Of others the last message, if what it released orders accesses to plain memory.
  std::unordered_map<const void*, Message> known_to_all_;
  std::uint32_t atomics_made_ = 0;
  std::vector<CoreViews> cores_;
  Stores fenced_;  // what all full fences know
  std::unordered_map<const void*, PlainMemory::Clock> synchronised_;
  Moment moment_ = 0;
  Moment next_drop_ = 0;
  std::uint64_t stale_loads_ = 0;
  std::uint32_t steps_ = 0;  // that the running core is inside of
};

}  // namespace sp3::emu::sim

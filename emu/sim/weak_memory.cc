#include "emu/sim/weak_memory.h"

#include <algorithm>
#include <utility>

#include "emu/sim/machine.h"

namespace sp3::emu::sim {
namespace {

bool acquires(std::memory_order order) noexcept {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

// What is left of a stated order, of a wanted one that may not fit the access.
std::memory_order weaker(base::AtomicAccess access, std::memory_order stated,
                         std::memory_order wanted) noexcept {
  using base::AtomicAccess;
  const bool acquire = acquires(stated) && acquires(wanted) && access != AtomicAccess::store;
  const bool release = releases(stated) && releases(wanted) && access != AtomicAccess::load;
  if (stated == std::memory_order_seq_cst && wanted == std::memory_order_seq_cst) return stated;
  if (acquire && release) return std::memory_order_acq_rel;
  if (acquire) return std::memory_order_acquire;
  return release ? std::memory_order_release : std::memory_order_relaxed;
}

// Where the atomic is among those that are known, or would be.
template <class Stores>
auto position_of(Stores& stores, std::uint32_t atomic) {
  return std::lower_bound(
      stores.begin(), stores.end(), atomic,
      [](const auto& known, std::uint32_t number) { return known.atomic < number; });
}

}  // namespace

WeakMemory::WeakMemory(Machine& machine, std::uint64_t seed)
    : machine_(machine),
      plain_(machine),
      random_(seed ^ 0x3ea4),
      stale_one_in_(std::uint64_t{2} << random_.below(4)),
      held_up_one_in_(std::uint64_t{4} << random_.below(4)),
      longest_hold_up_(std::uint64_t{16} << (2 * random_.below(5))),
      window_(std::uint64_t{16} << (2 * random_.below(4))) {}

WeakMemory::CoreViews& WeakMemory::running() noexcept { return cores_[machine_.core()]; }

WeakMemory::Moment WeakMemory::known(const Stores& stores, std::uint32_t atomic) noexcept {
  const auto at = position_of(stores, atomic);
  return at == stores.end() || at->atomic != atomic ? 0 : at->when;
}

void WeakMemory::learn(Stores& stores, std::uint32_t atomic, Moment when) {
  const auto at = position_of(stores, atomic);
  if (at == stores.end() || at->atomic != atomic) {
    stores.insert(at, {atomic, when});
  } else {
    at->when = std::max(at->when, when);
  }
}

void WeakMemory::join(Stores& stores, const Stores& more) const {
  const Moment oldest = this->oldest();
  Stores joined;
  joined.reserve(stores.size() + more.size());
  const auto add = [&](const Known& known) {
    if (known.when > oldest) joined.push_back(known);
  };
  auto a = stores.begin();
  auto b = more.begin();
  while (a != stores.end() && b != more.end()) {
    if (a->atomic < b->atomic) {
      add(*a++);
    } else if (b->atomic < a->atomic) {
      add(*b++);
    } else {
      add({a->atomic, std::max(a->when, b->when)});
      ++a, ++b;
    }
  }
  std::for_each(a, stores.end(), add);
  std::for_each(b, more.end(), add);
  stores = std::move(joined);
}

void WeakMemory::join(View& view, const View& more) const {
  join(view.stores, more.stores);
  PlainMemory::join(view.accesses, more.accesses);
}

// Memory that was written without telling, or is another's by now, has no history.
WeakMemory::Atomic* WeakMemory::find(const void* at, std::uint64_t newest) noexcept {
  const auto found = atomics_.find(at);
  if (found == atomics_.end()) return nullptr;
  if (found->second.messages.back().value != newest) {
    atomics_.erase(found);
    return nullptr;
  }
  drop_old_messages(found->second);
  return &found->second;
}

WeakMemory::Atomic& WeakMemory::find_or_make(const void* at, std::uint64_t before) {
  if (Atomic* const found = find(at, before)) return *found;
  const Message* const last = last_message(nullptr, at, before);
  const SharedView released = last == nullptr ? nullptr : last->released;
  known_to_all_.erase(at);
  Atomic& made = atomics_[at];
  made.number = atomics_made_++;
  made.messages.push_back({0, 0, before, released});
  return made;
}

// The one that a core reads or exchanges that has no choice; null if nothing comes with it.
// `atomic`: what find() has found.
const WeakMemory::Message* WeakMemory::last_message(const Atomic* atomic, const void* at,
                                                    std::uint64_t newest) noexcept {
  if (atomic != nullptr) return &atomic->messages.back();
  const auto found = known_to_all_.find(at);
  if (found == known_to_all_.end()) return nullptr;
  if (found->second.value == newest) return &found->second;
  known_to_all_.erase(found);
  return nullptr;
}

void WeakMemory::drop_old_messages(Atomic& atomic) const noexcept {
  std::vector<Message>& messages = atomic.messages;
  const auto first_new =
      std::find_if(messages.begin() + 1, messages.end(),
                   [&](const Message& message) { return message.when > oldest(); });
  messages.erase(messages.begin(), first_new - 1);
}

void WeakMemory::drop_old() noexcept {
  if (moment_ < next_drop_) return;
  next_drop_ = moment_ + window_;
  std::erase_if(atomics_, [&](const auto& one) {
    const Message& last = one.second.messages.back();
    if (last.when > oldest()) return false;
    if (last.released != nullptr && !last.released->accesses.empty()) {
      known_to_all_[one.first] = {
          last.when, 0, last.value,
          std::make_shared<const View>(View{.stores = {}, .accesses = last.released->accesses})};
    }
    return true;
  });
}

void WeakMemory::spawned(std::uint32_t child) {
  if (cores_.size() <= child) cores_.resize(child + 1);
  if (child == 0) return;
  fence_fully(running());
  cores_[child] = {running().now, {}, nullptr};
}

std::memory_order WeakMemory::before_access(base::AtomicAccess access, std::memory_order stated,
                                            const base::Site& site) noexcept {
  if (steps_ == 0) machine_.event(Event::access);
  if (stated == std::memory_order_relaxed) return stated;
  if (site_visitor != nullptr) site_visitor(access, stated, site);
  if (!weakening || (weakening->line != 0 && weakening->line != site.line) ||
      !std::string_view(site.file).ends_with(weakening->file)) {
    return stated;
  }
  ++weakening->met;
  return weaker(access, stated, weakening->to);
}

void WeakMemory::take_over(CoreViews& core, const Message& message, bool acquires) const {
  if (message.released != nullptr) join(acquires ? core.now : core.read, *message.released);
}

std::uint64_t WeakMemory::load(const void* at, std::uint64_t newest,
                               std::memory_order order) noexcept {
  Atomic* const atomic = find(at, newest);
  CoreViews& core = running();
  if (atomic == nullptr) {
    if (const Message* const last = last_message(nullptr, at, newest)) {
      take_over(core, *last, acquires(order));
    }
    return newest;
  }
  const std::vector<Message>& messages = atomic->messages;
  Moment least = known(core.now.stores, atomic->number);
  if (order == std::memory_order_seq_cst) least = std::max(least, known(fenced_, atomic->number));
  std::size_t chosen = messages.size() - 1;
  const auto may_be_older = [&] {
    return steps_ == 0 && chosen > 0 && messages[chosen].when > least;
  };
  while (may_be_older() && messages[chosen].held_up_until > machine_.events()) --chosen;
  if (random_.one_in(stale_one_in_)) {
    for (auto more = random_.below(messages.size()); more > 0 && may_be_older(); --more) --chosen;
  }
  if (chosen + 1 != messages.size()) ++stale_loads_;
  learn(core.now.stores, atomic->number, messages[chosen].when);
  take_over(core, messages[chosen], acquires(order));
  return messages[chosen].value;
}

std::uint64_t WeakMemory::choose_hold_up() noexcept {
  if (!random_.one_in(held_up_one_in_)) return 0;
  return machine_.events() + random_.below(longest_hold_up_);
}

void WeakMemory::put(const void* at, std::uint64_t before, std::uint64_t value, bool releases,
                     const SharedView& earlier) {
  Atomic& atomic = find_or_make(at, before);
  CoreViews& core = running();
  learn(core.now.stores, atomic.number, ++moment_);
  View released;
  if (releases) {
    released = core.now;
  } else {
    if (core.released != nullptr) released = *core.released;
    learn(released.stores, atomic.number, moment_);
  }
  // An exchange goes on with what the store before it released.
  if (earlier != nullptr) join(released, *earlier);
  atomic.messages.push_back(
      {moment_, choose_hold_up(), value, std::make_shared<const View>(std::move(released))});
  drop_old();
}

void WeakMemory::store(const void* at, std::uint64_t before, std::uint64_t value,
                       std::memory_order order) noexcept {
  if (order == std::memory_order_seq_cst) fence_fully(running());
  put(at, before, value, releases(order), nullptr);
  if (order == std::memory_order_seq_cst) fence_fully(running());
}

void WeakMemory::exchange(const void* at, std::uint64_t before, std::uint64_t value,
                          std::memory_order order) noexcept {
  if (order == std::memory_order_seq_cst) fence_fully(running());
  SharedView earlier;
  if (const Message* const last = last_message(find(at, before), at, before)) {
    take_over(running(), *last, acquires(order));
    earlier = last->released;
  }
  put(at, before, value, releases(order), earlier);
  if (order == std::memory_order_seq_cst) fence_fully(running());
}

void WeakMemory::fail_to_exchange(const void* at, std::uint64_t found,
                                  std::memory_order order) noexcept {
  if (order == std::memory_order_seq_cst) fence_fully(running());
  const Atomic* const atomic = find(at, found);
  if (atomic != nullptr) {
    learn(running().now.stores, atomic->number, atomic->messages.back().when);
  }
  if (const Message* const last = last_message(atomic, at, found)) {
    take_over(running(), *last, acquires(order));
  }
}

void WeakMemory::fence(std::memory_order order) noexcept { fence(running(), order); }

// Also what an access does that is seq_cst, which orders no others that are not atomic.
void WeakMemory::fence_fully(CoreViews& core) noexcept {
  join(core.now.stores, core.read.stores);
  join(core.now.stores, fenced_);
  core.read.stores.clear();
  fenced_ = core.now.stores;
  View released{.stores = core.now.stores, .accesses = {}};
  if (core.released != nullptr) released.accesses = core.released->accesses;
  core.released = std::make_shared<const View>(std::move(released));
}

void WeakMemory::fence(CoreViews& core, std::memory_order order) noexcept {
  if (acquires(order)) {
    join(core.now, core.read);
    core.read = {};
  }
  if (order == std::memory_order_seq_cst) fence_fully(core);
  if (releases(order)) core.released = std::make_shared<const View>(core.now);
}

void WeakMemory::synchronise(const void* on) noexcept {
  CoreViews& core = running();
  PlainMemory::Clock& others = synchronised_[on];
  PlainMemory::join(core.now.accesses, others);
  fence(core, std::memory_order_seq_cst);
  others = core.now.accesses;
}

void WeakMemory::see_fenced() noexcept { join(running().now.stores, fenced_); }

// What cores have done before the fence they have done before whatever its caller does next.
void WeakMemory::fence_everywhere(std::memory_order order) noexcept {
  if (order != std::memory_order_seq_cst) return;
  CoreViews& caller = running();
  fence(caller, order);
  for (CoreViews& core : cores_) {
    PlainMemory::join(core.now.accesses, caller.now.accesses);
    fence(core, order);
  }
  for (CoreViews& core : cores_) PlainMemory::join(caller.now.accesses, core.now.accesses);
  fence(caller, order);  // what they knew is known to the one who asked
}

void WeakMemory::forget(const void* at) noexcept {
  atomics_.erase(at);
  known_to_all_.erase(at);
}

void WeakMemory::read_plainly(const void* at, std::size_t bytes, const base::Site& site) noexcept {
  plain_.read(machine_.core(), running().now.accesses, at, bytes, site);
}

void WeakMemory::read_for_long(const void* at, std::size_t bytes, const base::Site& site) noexcept {
  plain_.read_for_long(machine_.core(), running().now.accesses, at, bytes, site);
}

void WeakMemory::end_long_reads() noexcept {
  plain_.end_long_reads(machine_.core(), running().now.accesses);
}

void WeakMemory::write_plainly(const void* at, std::size_t bytes, const base::Site& site) noexcept {
  plain_.write(machine_.core(), running().now.accesses, at, bytes, site);
}

void WeakMemory::forget_plainly(const void* at, std::size_t bytes) noexcept {
  plain_.forget(at, bytes);
}

}  // namespace sp3::emu::sim

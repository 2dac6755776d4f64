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

// Where a view has the atomic, or would have it.
template <class View>
auto position_of(View& view, std::uint32_t atomic) {
  return std::lower_bound(
      view.begin(), view.end(), atomic,
      [](const auto& known, std::uint32_t number) { return known.atomic < number; });
}

}  // namespace

WeakMemory::WeakMemory(Machine& machine, std::uint64_t seed)
    : machine_(machine),
      random_(seed ^ 0x3ea4),
      stale_one_in_(std::uint64_t{2} << random_.below(4)),
      held_up_one_in_(std::uint64_t{4} << random_.below(4)),
      longest_hold_up_(std::uint64_t{16} << (2 * random_.below(5))),
      window_(std::uint64_t{16} << (2 * random_.below(4))) {}

WeakMemory::CoreViews& WeakMemory::running() noexcept { return cores_[machine_.core()]; }

WeakMemory::Moment WeakMemory::known(const View& view, std::uint32_t atomic) noexcept {
  const auto at = position_of(view, atomic);
  return at == view.end() || at->atomic != atomic ? 0 : at->when;
}

void WeakMemory::learn(View& view, std::uint32_t atomic, Moment when) {
  const auto at = position_of(view, atomic);
  if (at == view.end() || at->atomic != atomic) {
    view.insert(at, {atomic, when});
  } else {
    at->when = std::max(at->when, when);
  }
}

void WeakMemory::join(View& view, const View& more) const {
  const Moment oldest = this->oldest();
  View joined;
  joined.reserve(view.size() + more.size());
  const auto add = [&](const Known& known) {
    if (known.when > oldest) joined.push_back(known);
  };
  auto a = view.begin();
  auto b = more.begin();
  while (a != view.end() && b != more.end()) {
    if (a->atomic < b->atomic) {
      add(*a++);
    } else if (b->atomic < a->atomic) {
      add(*b++);
    } else {
      add({a->atomic, std::max(a->when, b->when)});
      ++a, ++b;
    }
  }
  std::for_each(a, view.end(), add);
  std::for_each(b, more.end(), add);
  view = std::move(joined);
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
  Atomic& made = atomics_[at];
  made.number = atomics_made_++;
  made.messages.push_back({0, 0, before, nullptr});
  return made;
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
  std::erase_if(atomics_,
                [&](const auto& one) { return one.second.messages.back().when <= oldest(); });
}

void WeakMemory::spawned(std::uint32_t child) {
  if (cores_.size() <= child) cores_.resize(child + 1);
  if (child == 0) return;
  fence_fully();
  cores_[child] = {running().now, {}, nullptr};
}

std::memory_order WeakMemory::before_access(base::AtomicAccess access, std::memory_order stated,
                                            const base::Site& site) noexcept {
  machine_.event(Event::access);
  if (stated == std::memory_order_relaxed) return stated;
  if (site_visitor != nullptr) site_visitor(access, stated, site);
  if (!weakening || (weakening->line != 0 && weakening->line != site.line) ||
      !std::string_view(site.file).ends_with(weakening->file)) {
    return stated;
  }
  return weaker(access, stated, weakening->to);
}

void WeakMemory::take_over(CoreViews& core, const Message& message, bool acquires) const {
  if (message.released != nullptr) join(acquires ? core.now : core.read, *message.released);
}

std::uint64_t WeakMemory::load(const void* at, std::uint64_t newest,
                               std::memory_order order) noexcept {
  Atomic* const atomic = find(at, newest);
  if (atomic == nullptr) return newest;
  CoreViews& core = running();
  const std::vector<Message>& messages = atomic->messages;
  Moment least = known(core.now, atomic->number);
  if (order == std::memory_order_seq_cst) least = std::max(least, known(fenced_, atomic->number));
  std::size_t chosen = messages.size() - 1;
  const auto may_be_older = [&] { return chosen > 0 && messages[chosen].when > least; };
  while (may_be_older() && messages[chosen].held_up_until > machine_.events()) --chosen;
  if (random_.one_in(stale_one_in_)) {
    for (auto more = random_.below(messages.size()); more > 0 && may_be_older(); --more) --chosen;
  }
  if (chosen + 1 != messages.size()) ++stale_loads_;
  learn(core.now, atomic->number, messages[chosen].when);
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
  learn(core.now, atomic.number, ++moment_);
  View released;
  if (releases) {
    released = core.now;
  } else {
    if (core.released != nullptr) released = *core.released;
    learn(released, atomic.number, moment_);
  }
  // An exchange goes on with what the store before it released.
  if (earlier != nullptr) join(released, *earlier);
  atomic.messages.push_back(
      {moment_, choose_hold_up(), value, std::make_shared<const View>(std::move(released))});
  drop_old();
}

void WeakMemory::store(const void* at, std::uint64_t before, std::uint64_t value,
                       std::memory_order order) noexcept {
  if (order == std::memory_order_seq_cst) fence_fully();
  put(at, before, value, releases(order), nullptr);
  if (order == std::memory_order_seq_cst) fence_fully();
}

void WeakMemory::exchange(const void* at, std::uint64_t before, std::uint64_t value,
                          std::memory_order order) noexcept {
  if (order == std::memory_order_seq_cst) fence_fully();
  SharedView earlier;
  if (const Atomic* const atomic = find(at, before)) {
    take_over(running(), atomic->messages.back(), acquires(order));
    earlier = atomic->messages.back().released;
  }
  put(at, before, value, releases(order), earlier);
  if (order == std::memory_order_seq_cst) fence_fully();
}

void WeakMemory::fail_to_exchange(const void* at, std::memory_order order) noexcept {
  if (order == std::memory_order_seq_cst) fence_fully();
  const auto found = atomics_.find(at);
  if (found == atomics_.end()) return;
  const Atomic& atomic = found->second;
  learn(running().now, atomic.number, atomic.messages.back().when);
  take_over(running(), atomic.messages.back(), acquires(order));
}

void WeakMemory::fence(std::memory_order order) noexcept { fence(running(), order); }

void WeakMemory::fence_fully() noexcept { fence(std::memory_order_seq_cst); }

void WeakMemory::fence(CoreViews& core, std::memory_order order) noexcept {
  if (acquires(order)) {
    join(core.now, core.read);
    core.read.clear();
  }
  if (order == std::memory_order_seq_cst) {
    join(core.now, fenced_);
    fenced_ = core.now;
  }
  if (releases(order)) core.released = std::make_shared<const View>(core.now);
}

void WeakMemory::see_fenced() noexcept { join(running().now, fenced_); }

void WeakMemory::fence_everywhere(std::memory_order order) noexcept {
  if (order != std::memory_order_seq_cst) return;
  fence_fully();
  for (CoreViews& core : cores_) fence(core, order);
  fence_fully();  // what they knew is known to the one who asked
}

void WeakMemory::forget(const void* at) noexcept { atomics_.erase(at); }

}  // namespace sp3::emu::sim

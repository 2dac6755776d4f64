// The oracle's rules for the queue.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/crash/oracle.h"

namespace sp3::tools::crash {

namespace {
std::string value_name(Tag tag) {
  return fmt::format("the value of {}.{}", thread_of(tag), sequence_of(tag));
}
}  // namespace

void Oracle::check_queue(const Dump& dump) {
  std::map<Tag, int> balance;        // 1: in the queue, 0: taken out
  std::map<Tag, std::size_t> taken;  // value -> who took it
  bool met_empty = false;
  for (const Tag tag : queue_) balance[tag] = 1;
  for (const Survivor& x : survivors_) {
    if (x.step.action == Action::enqueue) balance[make_tag(x.thread, x.outcome.sequence)] = 1;
  }
  for (std::size_t i = 0; i < survivors_.size(); ++i) {
    const Survivor& x = survivors_[i];
    if (x.step.action != Action::dequeue) continue;
    if (x.outcome.a == kNothing) {
      met_empty = true;
      continue;
    }
    const auto value = balance.find(x.outcome.a);
    if (value == balance.end()) {
      violation(fmt::format("Transaction {}.{} took {}, whose enqueue did not survive.", x.thread,
                            x.outcome.sequence, value_name(x.outcome.a)));
    } else if (!taken.try_emplace(x.outcome.a, i).second) {
      violation(fmt::format("{} was taken twice.", value_name(x.outcome.a)));
    } else {
      value->second = 0;
    }
  }
  for (const Tag tag : dump.queue) {
    const auto value = balance.find(tag);
    if (value == balance.end() || value->second == 0) {
      violation(fmt::format("{} is in the queue but was {}.", value_name(tag),
                            value == balance.end() ? "never there" : "taken or is there twice"));
    } else {
      value->second = 0;
    }
  }
  for (const auto& [tag, left] : balance) {
    if (left != 0) violation(fmt::format("{} is lost.", value_name(tag)));
  }
  const bool some_stayed = !queue_.empty() && !taken.contains(queue_.back());
  if (met_empty && some_stayed) {
    violation(
        fmt::format("A dequeue met an empty queue while {} was in it.", value_name(queue_.back())));
  }
  check_queue_order(dump, taken);
}

// First in, first out, as far as it can be told without a clock: what was there at the start leaves
// first and in order; each producer's values leave and stay in the order they came; each consumer
// meets them in that order.
void Oracle::check_queue_order(const Dump& dump, const std::map<Tag, std::size_t>& taken) {
  std::vector<Tag> old_left;
  bool gap = false;
  for (const Tag tag : queue_) {
    const bool left = !taken.contains(tag);
    if (left) old_left.push_back(tag);
    if (!left && gap) violation(fmt::format("{} overtook an older value.", value_name(tag)));
    gap = gap || left;
  }
  if (!std::equal(old_left.begin(), old_left.end(), dump.queue.begin(),
                  dump.queue.begin() +
                      static_cast<std::ptrdiff_t>(std::min(old_left.size(), dump.queue.size())))) {
    violation("The oldest values of the queue are no longer at its front in their order.");
  }

  std::map<unsigned, Tag> last_kept;
  for (std::size_t i = old_left.size(); i < dump.queue.size(); ++i) {
    const Tag tag = dump.queue[i];
    Tag& last = last_kept[thread_of(tag)];
    if (tag <= last) violation(fmt::format("{} stands behind a newer one.", value_name(tag)));
    last = std::max(last, tag);
  }
  std::map<unsigned, Tag> first_left_of;
  for (const Survivor& x : survivors_) {  // program order of the producer
    if (x.step.action != Action::enqueue) continue;
    const Tag tag = make_tag(x.thread, x.outcome.sequence);
    const bool left = !taken.contains(tag);
    Tag& first_left = first_left_of[x.thread];
    if (left && first_left == 0) first_left = tag;
    if (!left && (first_left != 0 || !old_left.empty())) {
      violation(fmt::format("{} overtook an older value.", value_name(tag)));
    }
  }
  std::map<std::pair<unsigned, unsigned>, Tag> last_met;  // consumer, producer
  for (const Survivor& x : survivors_) {
    if (x.step.action != Action::dequeue || x.outcome.a == kNothing) continue;
    Tag& last = last_met[{x.thread, thread_of(x.outcome.a)}];
    if (x.outcome.a <= last) {
      violation(
          fmt::format("Thread {} met {} after a newer one.", x.thread, value_name(x.outcome.a)));
    }
    last = std::max(last, x.outcome.a);
  }
}

}  // namespace sp3::tools::crash

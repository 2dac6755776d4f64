// Queue<T>: a first-in first-out queue of values in a pool.
//
// Thread safety: a Queue is a small value; its const members may be called by several threads, each
//   with its own transaction. Pushes conflict with pushes and pops with pops; a push and a pop
//   conflict only while the queue holds at most one value.
// Ownership and lifetime: the pool owns the queue until destroy(). A handle made by create() is
//   good once that transaction has committed; no handle may be used after destroy().
// Invariants:
//   1. The two ends are both null (empty) or both set.
//   2. Following `next` from the first node meets every node once and ends at the last, whose
//      `next` is null.
//   3. The ends are two objects of two types. A slab holds objects of one type, so neither the ends
//      nor their index entries share a cache line.
// Durable: with the transaction, as everything done through it.
// Complexity: push makes one node and writes two objects; pop reads one node, writes one object and
//   destroys one; size and for_each walk.
// Source: the queue of the paper's Table I. A lock-free queue (Michael and Scott, PODC 1996) needs
//   a dummy node to keep both ends apart; a transaction may write both when the last value goes, so
//   a pop here touches one node instead of two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include <sp3/containers/detail/damaged.h>
#include <sp3/containers/detail/violation.h>
#include <sp3/containers/detail/visit.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3 {

template <Storable T>
class Queue {
 public:
  struct Node {
    using Holds = detail::Holds<T>;
    Ptr<Node> next;  // towards the last
    T value;
  };
  struct First {
    Ptr<Node> node;
  };
  struct Last {
    Ptr<Node> node;
  };

  // What names the queue in the pool. Never changes.
  struct Header {
    Ptr<First> first;
    Ptr<Last> last;
  };

  Queue() noexcept = default;

  // A new, empty queue.
  static Queue create(Transaction& tx) {
    const Ptr<First> first = tx.make<First>();
    const Ptr<Last> last = tx.make<Last>();
    return Queue(tx.make<Header>(first, last), first, last);
  }

  // The queue that `header` names.
  static Queue open(Transaction& tx, Ptr<Header> header) {
    const Header& contents = tx.read(header);
    return Queue(header, contents.first, contents.last);
  }

  // Appends `value` at the end.
  void push(Transaction& tx, const T& value) const {
    // First what may not be there any more: who catches that leaves no node behind.
    Ptr<Node>& last = tx.write(last_).node;
    const Ptr<Node> node = tx.make<Node>(Ptr<Node>(), value);
    if (last) {
      tx.write(last).next = node;
    } else {
      tx.write(first_).node = node;
    }
    last = node;
  }

  // Removes the value at the front and returns it; nothing if the queue is empty.
  std::optional<T> pop(Transaction& tx) const {
    const Ptr<Node> node = tx.read(first_).node;
    if (!node) return std::nullopt;
    const Node& contents = tx.read(node);
    const std::optional<T> value = contents.value;
    const Ptr<Node> next = contents.next;
    tx.write(first_).node = next;
    tx.prefetch(next);  // for the next pop: it comes from memory while this one is made durable
    if (!next) tx.write(last_).node = nullptr;
    tx.destroy(node);
    return value;
  }

  // A copy of the value at the front; nothing if the queue is empty.
  [[nodiscard]] std::optional<T> front(Transaction& tx) const {
    const Ptr<Node> node = tx.read(first_).node;
    if (!node) return std::nullopt;
    return tx.read(node).value;
  }

  [[nodiscard]] bool empty(Transaction& tx) const { return !tx.read(first_).node; }

  // The number of values, by walking: a counter would make pushes and pops conflict.
  [[nodiscard]] std::uint64_t size(Transaction& tx) const {
    std::uint64_t count = 0;
    for_each(tx, [&](const T&) { ++count; });
    return count;
  }

  // Calls visit(value) from front to end; a visitor that returns false ends the walk. It must not
  // change the queue.
  template <class F>
  void for_each(Transaction& tx, F&& visit) const {
    detail::CircleCheck circle;
    for (Ptr<Node> at = tx.read(first_).node; at;) {
      const Node& node = tx.read(at);
      if (!detail::visit_goes_on(visit, node.value)) return;
      at = detail::next_in_list(tx, circle, node.next);
    }
  }

  // Pops up to `limit` values: emptying a large queue in several transactions.
  // Returns whether the queue is empty.
  bool drain(Transaction& tx, std::uint64_t limit) const {
    for (std::uint64_t i = 0; i < limit && pop(tx); ++i) {
    }
    return empty(tx);
  }

  // Frees everything, the header included.
  void destroy(Transaction& tx) const {
    for (Ptr<Node> at = tx.read(first_).node; at;) {
      const Ptr<Node> next = tx.read(at).next;  // throws where a circle closes
      tx.destroy(at);
      at = next;
    }
    tx.destroy(first_);
    tx.destroy(last_);
    tx.destroy(header_);
  }

  // Empty if the invariants hold; else a sentence that names the violation.
  [[nodiscard]] std::string check_invariants(Transaction& tx) const {
    return detail::violation_in([&] { return violation(tx); });
  }

  [[nodiscard]] Ptr<Header> header() const noexcept { return header_; }

 private:
  Queue(Ptr<Header> header, Ptr<First> first, Ptr<Last> last) noexcept
      : header_(header), first_(first), last_(last) {}

  [[nodiscard]] std::string violation(Transaction& tx) const {
    const Header& header = tx.read(header_);
    if (header.first != first_ || header.last != last_) {
      return "The header names the ends " + std::to_string(header.first.offset()) + " and " +
             std::to_string(header.last.offset()) + ", the handle " +
             std::to_string(first_.offset()) + " and " + std::to_string(last_.offset()) + ".";
    }
    const Ptr<Node> last = tx.read(last_).node;
    Ptr<Node> reached;
    std::unordered_set<std::uint64_t> seen;
    for (Ptr<Node> at = tx.read(first_).node; at; at = tx.read(at).next) {
      if (!seen.insert(at.offset()).second) {
        return "The list of " + std::to_string(seen.size()) + " nodes runs in a circle through " +
               std::to_string(at.offset()) + ".";
      }
      reached = at;
    }
    if (reached != last) {
      return "After " + std::to_string(seen.size()) + " nodes the list ends at " +
             std::to_string(reached.offset()) + ", but the last node is " +
             std::to_string(last.offset()) + ".";
    }
    return {};
  }

  Ptr<Header> header_;
  Ptr<First> first_;  // both ends' names are immutable: copied here to save the header read
  Ptr<Last> last_;
};

}  // namespace sp3

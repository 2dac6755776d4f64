#include "tests/runtime/bank.h"

#include <algorithm>
#include <deque>

namespace sp3::test {
namespace {

constexpr std::size_t kTypes = 4;

std::size_t type_of(std::uint64_t sequence) { return sequence / kSameType % kTypes; }

// Calls call(Ptr<BankNode<n>>) with the type that nodes of this sequence have.
template <class Call>
auto with_node(std::uint64_t sequence, std::uint64_t offset, Call&& call) {
  switch (type_of(sequence)) {
    case 0:
      return call(Ptr<BankNode<8>>::from_offset(offset));
    case 1:
      return call(Ptr<BankNode<88>>::from_offset(offset));
    case 2:
      return call(Ptr<BankNode<480>>::from_offset(offset));
    default:
      return call(Ptr<BankNode<1400>>::from_offset(offset));
  }
}

template <std::size_t kBytes>
std::uint64_t make_node(Transaction& tx, Ptr<BankNode<kBytes>>, std::uint64_t thread,
                        std::uint64_t sequence) {
  const auto node = tx.make<BankNode<kBytes>>();
  BankNode<kBytes>& copy = tx.write(node);
  copy.thread = thread;
  copy.sequence = sequence;
  copy.filler.fill(sequence);
  return node.offset();
}

template <std::size_t kBytes>
bool node_is_good(Transaction& tx, Ptr<BankNode<kBytes>> at, std::uint64_t thread,
                  std::uint64_t sequence) {
  const BankNode<kBytes>& node = tx.read(at);
  return node.thread == thread && node.sequence == sequence &&
         std::all_of(node.filler.begin(), node.filler.end(),
                     [&](std::uint64_t word) { return word == sequence; });
}

// One transaction of `thread`; its sequence number.
std::uint64_t transact(Transaction& tx, std::size_t thread, std::uint64_t seed) {
  Random random(seed);
  const BankDirectory& directory = tx.read(tx.root<BankDirectory>("bank"));
  const std::size_t other = random.below(kBankThreads);
  const std::uint64_t seen = tx.read(directory.witnesses[other]).sequence;
  const auto amount = static_cast<std::int64_t>(random.below(1000));
  tx.write(directory.accounts[random.below(kAccounts)]).balance -= amount;
  tx.write(directory.accounts[random.below(kAccounts)]).balance += amount;

  BankWitness& witness = tx.write(directory.witnesses[thread]);
  const std::uint64_t sequence = ++witness.sequence;
  if (other != thread) witness.seen[other] = seen;
  std::uint64_t& node = witness.nodes[sequence % kQueue];
  if (node != 0) {
    with_node(sequence - kQueue, node, [&](auto old) { tx.destroy(old); });
  }
  node = with_node(sequence, 0, [&](auto type) { return make_node(tx, type, thread, sequence); });
  return sequence;
}

class BankThread {
 public:
  BankThread(Pool& pool, std::size_t thread, bool async, std::uint64_t seed,
             const std::function<void(std::size_t, std::uint64_t)>& acknowledged)
      : session_(pool.session()),
        thread_(thread),
        async_(async),
        random_(seed * 7 + thread),
        acknowledged_(acknowledged) {}

  void run(std::uint64_t transactions) {
    for (std::uint64_t i = 0; i < transactions; ++i) {
      const std::uint64_t seed = random_();
      std::uint64_t sequence = 0;
      const auto body = [&](Transaction& tx) { sequence = transact(tx, thread_, seed); };
      if (async_) {
        waiting_.emplace_back(session_.run_async(body), sequence);
        if (waiting_.size() >= most_in_flight(true)) acknowledge_oldest();
      } else {
        session_.run(body);
        acknowledged_(thread_, sequence);
      }
    }
    while (!waiting_.empty()) acknowledge_oldest();
    session_.close();
  }

 private:
  void acknowledge_oldest() {
    waiting_.front().first.wait();
    acknowledged_(thread_, waiting_.front().second);
    waiting_.pop_front();
  }

  Session session_;
  const std::size_t thread_;
  const bool async_;
  Random random_;
  const std::function<void(std::size_t, std::uint64_t)>& acknowledged_;
  std::deque<std::pair<Ticket, std::uint64_t>> waiting_;
};

std::string find_fault_in(Transaction& tx, const BankDirectory& directory, std::size_t thread) {
  const BankWitness& witness = tx.read(directory.witnesses[thread]);
  const std::string who = "thread " + std::to_string(thread);
  for (std::size_t other = 0; other < kBankThreads; ++other) {
    if (witness.seen[other] > tx.read(directory.witnesses[other]).sequence) {
      return who + " depends on transaction " + std::to_string(witness.seen[other]) +
             " of thread " + std::to_string(other) + ", which is not there";
    }
  }
  for (std::uint64_t i = 0; i < kQueue && i < witness.sequence; ++i) {
    const std::uint64_t sequence = witness.sequence - i;
    const std::uint64_t at = witness.nodes[sequence % kQueue];
    if (!with_node(sequence, at,
                   [&](auto node) { return node_is_good(tx, node, thread, sequence); })) {
      return who + "'s node of transaction " + std::to_string(sequence) +
             " is not what was written";
    }
  }
  return {};
}

}  // namespace

void make_bank(Pool& pool) {
  Session session = pool.session();
  session.run([](Transaction& tx) {
    BankDirectory directory;
    for (auto& account : directory.accounts) account = tx.make<BankAccount>();
    for (auto& witness : directory.witnesses) witness = tx.make<BankWitness>();
    tx.set_root("bank", tx.make<BankDirectory>(directory));
  });
  session.close();
}

void run_bank(Pool& pool, int threads, std::uint64_t transactions, bool async, std::uint64_t seed,
              const std::function<void(std::size_t, std::uint64_t)>& acknowledged) {
  on_threads(threads, [&](int number) {
    BankThread(pool, static_cast<std::size_t>(number), async, seed, acknowledged).run(transactions);
  });
}

std::uint64_t most_in_flight(bool async) { return async ? 40 : 1; }

std::string find_bank_fault(Pool& pool, BankProgress& progress, std::uint64_t in_flight) {
  Session session = pool.session();
  std::string fault;
  try {
    session.run([&](Transaction& tx) {
      const BankDirectory& directory = tx.read(tx.root<BankDirectory>("bank"));
      std::int64_t sum = 0;
      for (const auto account : directory.accounts) sum += tx.read(account).balance;
      if (sum != 0) fault += "money appeared: " + std::to_string(sum) + "; ";
      for (std::size_t t = 0; t < kBankThreads; ++t) {
        const std::uint64_t there = tx.read(directory.witnesses[t]).sequence;
        const std::uint64_t told = progress.acknowledged[t];
        if (there < told || there > told + in_flight) {
          fault += "thread " + std::to_string(t) + ": acknowledged " + std::to_string(told) +
                   ", there " + std::to_string(there) + "; ";
        }
        fault += find_fault_in(tx, directory, t);
        progress.acknowledged[t] = there;
      }
    });
  } catch (const Error& error) {
    fault += error.what();
  }
  session.close();
  return fault;
}

std::uint64_t count_bank_objects(Pool& pool) {
  Session session = pool.session();
  const std::uint64_t nodes = session.run([](Transaction& tx) {
    const BankDirectory& directory = tx.read(tx.root<BankDirectory>("bank"));
    std::uint64_t count = 0;
    for (const auto witness : directory.witnesses) {
      count += std::min(tx.read(witness).sequence, kQueue);
    }
    return count;
  });
  session.close();
  return nodes + kAccounts + kBankThreads + 1 + 2;  // the directory and two nodes of the root's
}

}  // namespace sp3::test

// A program outside this repository: it knows the installed headers and nothing else. It uses a
// part of everything that the library holds, so that nothing it needs is missing from there.
#include <cstdint>
#include <filesystem>
#include <iostream>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>
#include <sp3/range_lock.h>
#include <sp3/sp3.h>

namespace {

struct Counter {
  std::uint64_t value;
};

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "not so: " << what << '\n';
  ++failures;
}

template <class Map>
void use_map(sp3::Transaction& tx, const char* name) {
  const Map map = Map::create(tx);
  for (std::uint64_t key = 0; key < 300; ++key) map.insert_or_assign(tx, key, key + 1);
  map.erase(tx, 7);
  check(map.find(tx, 8) == 9 && !map.contains(tx, 7), name);
  check(map.check_invariants(tx).empty(), name);
}

void use_containers(sp3::Session& session) {
  session.run([](sp3::Transaction& tx) {
    const auto array = sp3::Array<std::uint64_t>::create(tx, 200, 5);
    array.set(tx, 150, 6);
    check(array.get(tx, 149) == 5 && array.get(tx, 150) == 6, "array");
    const auto queue = sp3::Queue<std::uint64_t>::create(tx);
    queue.push(tx, 1);
    queue.push(tx, 2);
    check(queue.pop(tx) == 1 && queue.front(tx) == 2, "queue");
    use_map<sp3::HashTable<std::uint64_t, std::uint64_t>>(tx, "hash table");
    use_map<sp3::RbTree<std::uint64_t, std::uint64_t>>(tx, "red-black tree");
    use_map<sp3::BpTree<std::uint64_t, std::uint64_t>>(tx, "B+ tree");
    const auto ranged = sp3::Ranged<std::uint64_t>::create(tx, 1000);
    ranged.set(tx, 999, 3);
    check(ranged.get(tx, 999) == 3 && ranged.get(tx, 0) == 0, "ranged object");
  });
}

template <class Lock>
void use_lock(const char* name) {
  Lock lock;
  sp3::RangeOwner other;
  const sp3::RangeGuard<Lock> guard(lock, 10, 20);
  check(!lock.try_lock(other, 15, 16), name);
  lock.unlock(lock.lock_shared(other, 20, 30));
  check(lock.holders().size() == 1, name);
}

// What the library throws is caught here by its type, and what is thrown here comes through it.
void use_errors(const std::filesystem::path& path, sp3::Session& session) {
  try {
    static_cast<void>(sp3::Pool::open(path / "nowhere"));
    check(false, "an error for a pool that is not there");
  } catch (const sp3::Error& error) {
    check(!error.facts().path.empty(), "an error's facts");
    std::cout << to_string(error.code()) << ": " << error.what() << '\n';
  }
  try {
    session.run([](sp3::Transaction& tx) { tx.cancel(); });
    check(false, "a transaction that is cancelled");
  } catch (const sp3::Cancelled&) {
  }
  sp3::SkiplistRangeLock lock;
  try {
    static_cast<void>(lock.try_lock(2, 1));
    check(false, "an error for a range that ends before it begins");
  } catch (const sp3::Error& error) {
    check(error.code() == sp3::ErrorCode::invalid_range, "an error's code");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path path = argc > 1 ? argv[1] : "consumer.pool";
  const sp3::Options options{.memory = sp3::MemoryKind::emulated, .recovery = {.threads = 1}};
  auto pool = sp3::Pool::create(path, 4 << 20, options);
  auto session = pool.session();
  session.run([](sp3::Transaction& tx) { tx.set_root("counter", tx.make<Counter>(1u)); });
  session.run([](sp3::Transaction& tx) { tx.assign(tx.root<Counter>("counter"), {41u}); });
  session.run_async([](sp3::Transaction& tx) { ++tx.write(tx.root<Counter>("counter")).value; })
      .wait();
  use_containers(session);
  use_lock<sp3::SkiplistRangeLock>("skip list");
  use_lock<sp3::GridRangeLock>("grid");
  use_errors(path, session);
  session.close();
  pool.close();
  check(sp3::Pool::check(path).sound(), "a closed pool is sound");

  auto again = sp3::Pool::open(path, options);
  auto value = again.session().run(
      [](sp3::Transaction& tx) { return tx.read(tx.root<Counter>("counter")).value; });
  std::cout << "counter = " << value << '\n';
  return value == 42 && failures == 0 ? 0 : 1;
}

// What a body catches in the midst of a change to several objects: half of it must not be
// committed.
#include <array>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>

#include "pool/pool_file.h"
#include "pool/slab_directory.h"
#include "runtime/ranged.h"
#include "tests/runtime/one_object.h"

namespace sp3::test {
namespace {

// Damages both copies of the bitmap of one of the slabs that hold objects of the type, counted from
// 0. REQUIRES: the pool is closed.
void damage_slab(const TempPath& path, const detail::TypeInfo& type, int number) {
  std::uint64_t begin = 0;
  pool::SlabShape shape;
  {
    const auto file =
        pool::PoolFile::open(path.path(), Options{}, pool::PoolFile::Access::read_only);
    const pool::Layout& layout = file->layout();
    const pool::SlabDirectory directory = file->directory();
    for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
      const pool::SlabRecord& record = directory.record(slab);
      if (record.live == 0 || record.type != type.fingerprint || number-- != 0) continue;
      begin = layout.slab_offset(slab);
      shape = pool::slab_shape(layout.slab_size, record.slot_size);
    }
  }
  REQUIRE(begin != 0);
  std::fstream file(path.path(), std::ios::in | std::ios::out | std::ios::binary);
  for (const int copy : {0, 1}) {
    file.seekp(static_cast<std::streamoff>(begin + shape.bitmap(copy)));
    file.put(static_cast<char>(0x5a));
  }
}

struct Wide {
  std::array<std::uint64_t, 64> words{};
};

}  // namespace

TEST_CASE("a ranged object that cannot be cut to the end stays as it was, whatever is caught") {
  constexpr std::uint64_t kLength = 60 * kChunk;
  OneObject one(kLength);
  one.session.run([&](Transaction& tx) { one.object.write(tx, 0, bytes_of(kLength, 7)); });
  one.session.close();
  one.pool.close();
  damage_slab(one.path, *runtime::ranged_chunk_type(kChunk), 2);
  one.pool = Pool::open(one.path.path(), quiet_options());
  one.session = one.pool.session();
  for (const bool destroys : {false, true}) {
    bool caught = false;
    CHECK(one.code([&](Transaction& tx) {
      try {
        if (destroys) one.object.destroy(tx);
        if (!destroys) one.object.resize(tx, 2 * kChunk);
      } catch (const Error&) {
        caught = true;
      }
      return 0;
    }) == "damaged_metadata");
    CHECK(caught);
  }
  // Nothing of it is somebody else's.
  const RangedObject other = one.session.run([](Transaction& tx) {
    const auto made = RangedObject::create(tx, 40 * kChunk, kChunk);
    made.write(tx, 0, bytes_of(40 * kChunk, 9));
    return made;
  });
  one.session.run([&](Transaction& tx) {
    CHECK(one.object.size(tx) == kLength);
    int sound = 0;
    for (std::uint64_t chunk = 0; chunk < 60; ++chunk) {
      try {
        const Bytes found = read(tx, one.object, chunk * kChunk, kChunk);
        CHECK(found == bytes_of(kChunk, 7));
        ++sound;
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::damaged_metadata);
      }
    }
    CHECK(sound > 30);
    CHECK(sound < 60);
    CHECK(read(tx, other, 0, 40 * kChunk) == bytes_of(40 * kChunk, 9));
  });
}

TEST_CASE("a view that could not be made is none") {
  constexpr std::uint64_t kLength = 60 * kChunk;
  OneObject one(kLength);
  one.session.close();
  one.pool.close();
  damage_slab(one.path, *runtime::ranged_chunk_type(kChunk), 2);
  one.pool = Pool::open(one.path.path(), quiet_options());
  one.session = one.pool.session();
  one.session.run([&](Transaction& tx) {
    CHECK(code_of([&] { return one.object.view(tx, 0, kLength).size(); }) == "damaged_metadata");
    one.object.resize(tx, kLength + 1);
  });
  CHECK(one.session.run([&](Transaction& tx) { return one.object.size(tx); }) == kLength + 1);
}

TEST_CASE("a ranged object keeps its shape where objects can be neither made nor destroyed") {
  OneObject one(4 * kChunk - 24);
  const RangedObject empty =
      one.session.run([](Transaction& tx) { return RangedObject::create(tx, 1000, kChunk); });
  one.session.run([&](Transaction& tx) { one.object.write(tx, 0, bytes_of(1000, 7)); });
  Options ideal = quiet_options();
  ideal.policy = CommitPolicy::ideal;
  one.reopen(ideal);
  const auto code = [&](const auto& change) {
    return one.code([&](Transaction& tx) {
      return code_of([&] {
        change(tx);
        return 0;
      });
    });
  };
  CHECK(code([&](Transaction& tx) { one.object.resize(tx, 100'000); }) == "unsupported");
  CHECK(code([&](Transaction& tx) { one.object.resize(tx, 300); }) == "unsupported");
  code([&](Transaction& tx) { empty.destroy(tx); });
  one.reopen();
  CHECK(one.contents() == bytes_of(1000, 7));
  CHECK(one.session.run([&](Transaction& tx) { return empty.size(tx); }) == 1000);
}

TEST_CASE("containers keep what they have where objects cannot be destroyed, whatever is caught") {
  using Tree = RbTree<std::uint64_t, std::uint64_t>;
  using Table = HashTable<std::uint64_t, std::uint64_t>;
  using Line = Queue<std::uint64_t>;
  constexpr std::uint64_t kKeys = 10;
  OnePool p;
  p.session.run([&](Transaction& tx) {
    const Tree tree = Tree::create(tx);
    const Table table = Table::create(tx);
    const Line line = Line::create(tx);
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      tree.insert_or_assign(tx, i, i);
      table.insert_or_assign(tx, i, i);
      line.push(tx, i);
    }
    tx.set_root("tree", tree.header());
    tx.set_root("table", table.header());
    tx.set_root("line", line.header());
  });
  Options ideal = quiet_options();
  ideal.policy = CommitPolicy::ideal;
  p.reopen(ideal);
  const auto tree = [](Transaction& tx) { return Tree::open(tx, tx.root<Tree::Header>("tree")); };
  const auto table = [](Transaction& tx) {
    return Table::open(tx, tx.root<Table::Header>("table"));
  };
  const auto line = [](Transaction& tx) { return Line::open(tx, tx.root<Line::Header>("line")); };
  const auto code = [&](const auto& change) {
    return p.code([&](Transaction& tx) {
      return code_of([&] {
        change(tx);
        return 0;
      });
    });
  };
  CHECK(code([&](Transaction& tx) { tree(tx).erase(tx, 5); }) == "unsupported");
  CHECK(code([&](Transaction& tx) { table(tx).erase(tx, 5); }) == "unsupported");
  CHECK(code([&](Transaction& tx) { line(tx).pop(tx); }) == "unsupported");
  p.reopen();
  p.session.run([&](Transaction& tx) {
    CHECK(tree(tx).check_invariants(tx) == "");
    CHECK(tree(tx).size(tx) == kKeys);
    CHECK(table(tx).check_invariants(tx) == "");
    CHECK(table(tx).size(tx) == kKeys);
    CHECK(line(tx).size(tx) == kKeys);
    CHECK(line(tx).pop(tx) == 0U);
  });
}

TEST_CASE("a tree whose value cannot be freed keeps the key, whatever is caught") {
  using Tree = RbTree<std::uint64_t, Wide>;
  OnePool p;
  const auto header = p.session.run([](Transaction& tx) { return Tree::create(tx).header(); });
  for (std::uint64_t key = 0; key < 14; ++key) {
    p.session.run([&](Transaction& tx) { Tree::open(tx, header).insert_or_assign(tx, key, {}); });
  }
  p.session.close();
  p.pool.close();
  damage_slab(p.path, detail::type_info<Wide>, 0);
  p.pool = Pool::open(p.path.path(), quiet_options());
  p.session = p.pool.session();
  int refused = 0;
  for (std::uint64_t key = 0; key < 14; ++key) {
    const std::string code = p.code([&](Transaction& tx) {
      return code_of([&] { return Tree::open(tx, header).erase(tx, key); });
    });
    if (code == "damaged_metadata") ++refused;
    p.session.run([&](Transaction& tx) {
      CHECK(Tree::open(tx, header).contains(tx, key) == (code == "damaged_metadata"));
    });
  }
  CHECK(refused > 0);
}

TEST_CASE("a container without room for all of its objects leaves none, whatever is caught") {
  struct Key {
    std::array<std::uint64_t, 496>
        words{};  // fits into a slab, but not beside a node's other words
    bool operator<(const Key& other) const { return words[0] < other.words[0]; }
  };
  using Tree = RbTree<Key, Wide>;
  OnePool p;
  const auto header = p.session.run([](Transaction& tx) { return Tree::create(tx).header(); });
  for (int i = 0; i < 100; ++i) {
    CHECK(p.code([&](Transaction& tx) {
      return code_of([&] { return Tree::open(tx, header).insert_or_assign(tx, {}, {}); });
    }) == "object_too_large");
  }
  CHECK(p.pool.statistics().slabs_used < 6);  // seven values would fill one
}

}  // namespace sp3::test

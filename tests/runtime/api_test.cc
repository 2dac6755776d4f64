// What a transaction does for one thread: every operation, its result and its effect.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <sp3/detail/circle_check.h>

#include "pool/layout.h"
#include "runtime/roots.h"
#include "tests/runtime/one_pool.h"
#include "tests/runtime/padded.h"

namespace sp3::test {
namespace {

using runtime::RootNode;

struct Account {
  std::int64_t balance = 0;
  std::uint64_t owner = 0;
};

template <std::size_t kBytes>
struct Blob {
  std::array<unsigned char, kBytes> bytes{};
};

struct alignas(64) Aligned {
  std::uint64_t number = 0;
};

struct Empty {};

// GNU C++ gives it the size 0.
struct Nothing {
  __extension__ int numbers[0];
};

template <std::size_t kBytes>
void check_blob(Options options, std::uint64_t size) {
  OnePool p(options, size);
  using T = Blob<kBytes>;
  const Ptr<T> made = p.session.run([](Transaction& tx) {
    const Ptr<T> blob = tx.make<T>();
    for (std::size_t i = 0; i < kBytes; ++i) {
      tx.write(blob).bytes[i] = static_cast<unsigned char>(i * 7 + 1);
    }
    tx.set_root("blob", blob);
    return blob;
  });
  p.session.run([&](Transaction& tx) { tx.write(made).bytes[kBytes - 1] = 200; });
  p.reopen(options);
  p.session.run([&](Transaction& tx) {
    REQUIRE(tx.root<T>("blob") == made);
    const T& blob = tx.read(made);
    for (std::size_t i = 0; i + 1 < kBytes; ++i) {
      if (blob.bytes[i] != static_cast<unsigned char>(i * 7 + 1)) FAIL("byte " << i);
    }
    REQUIRE(blob.bytes[kBytes - 1] == 200);
  });
}

}  // namespace

TEST_CASE("what a transaction made and wrote is there in the next one and after reopening") {
  for (const Mode& mode : all_modes()) {
    INFO(mode.name());
    Options options = quiet_options();
    mode.apply(options);
    OnePool p(options);
    const auto account = p.session.run([](Transaction& tx) {
      const auto a = tx.make<Account>(100, 7U);
      tx.set_root("account", a);
      return a;
    });
    p.session.run([&](Transaction& tx) { tx.write(account).balance += 11; });
    CHECK(p.session.run([&](Transaction& tx) { return tx.read(account).balance; }) == 111);
    p.reopen(options);
    CHECK(p.pool.recovery_report().was_clean);
    p.session.run([&](Transaction& tx) {
      REQUIRE(tx.root<Account>("account") == account);
      CHECK(tx.read(account).balance == 111);
      CHECK(tx.read(account).owner == 7);
    });
  }
}

TEST_CASE("a transaction reads what it wrote, and earlier references keep the old version") {
  OnePool p;
  const auto a = p.session.run([](Transaction& tx) { return tx.make<Account>(5, 0U); });
  p.session.run([&](Transaction& tx) {
    const Account& before = tx.read(a);
    Account& copy = tx.write(a);
    copy.balance = 6;
    CHECK(before.balance == 5);
    CHECK(tx.read(a).balance == 6);
    CHECK(&tx.read(a) == &copy);
    CHECK(&tx.write(a) == &copy);
    copy.balance = 7;
    CHECK(tx.read(a).balance == 7);
    CHECK(before.balance == 5);
  });
}

TEST_CASE("an object made by a transaction can be read, written and destroyed by it") {
  OnePool p;
  const auto kept = p.session.run([](Transaction& tx) {
    const auto a = tx.make<Account>(1, 2U);
    CHECK(tx.read(a).balance == 1);
    tx.write(a).balance = 3;
    CHECK(tx.read(a).balance == 3);
    const auto b = tx.make<Account>(9, 9U);
    CHECK(a != b);
    tx.destroy(b);
    CHECK(code_of([&] { return tx.read(b).balance; }) == "destroyed_object");
    return a;
  });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(kept).balance; }) == 3);
  p.session.close();
  p.pool.close();
  CHECK(Pool::inspect(p.path.path()).objects == 2);  // and the first node of the root directory
}

TEST_CASE("a destroyed object's slot is used again") {
  OnePool p;
  std::uint64_t highest = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto a = p.session.run([&](Transaction& tx) { return tx.make<Account>(i, 0U); });
    highest = std::max(highest, a.offset());
    p.session.run([&](Transaction& tx) { tx.destroy(a); });
  }
  CHECK(p.pool.statistics().slabs_used == 2);
  CHECK(p.session.run([](Transaction& tx) {
    return tx.read(tx.make<Account>()).balance;  // zeroed, whatever the slot held
  }) == 0);
}

TEST_CASE("write and then destroy in one transaction leaves nothing") {
  OnePool p;
  const auto a = p.session.run([](Transaction& tx) { return tx.make<Account>(5, 0U); });
  p.session.run([&](Transaction& tx) {
    tx.write(a).balance = 6;
    tx.destroy(a);
    CHECK(code_of([&] { return tx.write(a).balance; }) == "destroyed_object");
    CHECK(code_of([&] {
            tx.destroy(a);
            return 0;
          }) == "destroyed_object");
  });
  CHECK(code_of([&] {
          return p.session.run([&](Transaction& tx) { return tx.read(a).balance; });
        }) == "destroyed_object");
}

TEST_CASE("roots are bound, rebound and unbound by transactions") {
  OnePool p;
  CHECK(p.session.run([](Transaction& tx) { return tx.root_names(); }).empty());
  const auto a = p.session.run([](Transaction& tx) { return tx.make<Account>(1, 0U); });
  const auto b = p.session.run([](Transaction& tx) { return tx.make<Account>(2, 0U); });
  p.session.run([&](Transaction& tx) {
    CHECK_FALSE(tx.root<Account>("one"));
    tx.set_root("one", a);
    CHECK(tx.root<Account>("one") == a);  // its own binding
    tx.set_root("two", b);
    tx.set_root("three", a);
  });
  const auto names = [&] { return p.session.run([](Transaction& tx) { return tx.root_names(); }); };
  CHECK(names() == std::vector<std::string>{"one", "three", "two"});
  p.reopen();
  p.session.run([&](Transaction& tx) {
    CHECK(tx.root<Account>("one") == a);
    CHECK(tx.root<Account>("two") == b);
    tx.set_root("one", b);
    tx.set_root("two", Ptr<Account>{});
    tx.set_root("never bound", Ptr<Account>{});
  });
  p.reopen();
  p.session.run([&](Transaction& tx) {
    CHECK(tx.root<Account>("one") == b);
    CHECK_FALSE(tx.root<Account>("two"));
    CHECK(tx.root<Account>("three") == a);
  });
  CHECK(names() == std::vector<std::string>{"one", "three"});
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    tx.set_root("one", a);
    tx.cancel();
  }),
                  Cancelled);
  CHECK(p.session.run([](Transaction& tx) { return tx.root<Account>("one"); }) == b);
}

TEST_CASE("a root knows its type") {
  OnePool p;
  p.session.run([](Transaction& tx) { tx.set_root("account", tx.make<Account>()); });
  const auto error = error_of(
      [&] { return p.session.run([](Transaction& tx) { return tx.root<Padded>("account"); }); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::wrong_type);
  CHECK(error->facts().path == p.path.string());
  CHECK(error->facts().wanted.find("Padded, 0x") != std::string::npos);
  CHECK(error->facts().found.find("0x") == 0);
}

TEST_CASE("a name that is unbound leaves nothing behind") {
  OnePool p;
  const auto account = p.session.run([](Transaction& tx) { return tx.make<Account>(); });
  const auto objects = [&] {
    p.pool.checkpoint();
    return p.pool.info().objects;
  };
  const std::uint64_t before = objects();
  const auto bind = [&](Ptr<Account> object) {
    p.session.run([&](Transaction& tx) { tx.set_root("account", object); });
  };
  bind(account);
  CHECK(objects() == before + 1);
  bind({});
  CHECK(objects() == before);
}

TEST_CASE("a list of roots is damaged that goes round in a circle") {
  OnePool p;
  const auto account = p.session.run([](Transaction& tx) {
    const auto made = tx.make<Account>();
    for (const char* const name : {"one", "two", "three"}) tx.set_root(name, made);
    return made;
  });
  pool::Superblock superblock;
  const std::vector<char> bytes = read_bytes(p.path.path());
  std::memcpy(&superblock, bytes.data(), sizeof superblock);
  const pool::SlabShape shape = pool::slab_shape(superblock.slab_size, sizeof(RootNode));
  const auto first = Ptr<RootNode>::from_offset(
      pool::layout_of(superblock, p.path.string()).slab_offset(0) + shape.data);
  p.session.run([&](Transaction& tx) {
    const Ptr<RootNode> three = tx.read(first).next;
    const Ptr<RootNode> two = tx.read(three).next;
    tx.write(tx.read(two).next).next = two;
  });
  const auto look = [&](const char* name) {
    return p.session.run([&](Transaction& tx) { return tx.root<Account>(name); });
  };
  CHECK(look("one") == account);
  CHECK(code_of([&] { return look("none"); }) == "damaged_metadata");
  CHECK(p.code([](Transaction& tx) { return tx.root_names().size(); }) == "damaged_metadata");
  CHECK(p.code([&](Transaction& tx) {
    tx.set_root("none", account);
    return 0;
  }) == "damaged_metadata");
}

TEST_CASE("a list is no circle, however long it is, and a circle is found soon") {
  detail::CircleCheck straight;
  bool comes_back = false;
  for (std::uint64_t node = 1; node <= 3'000'000; ++node) {
    comes_back = comes_back || straight.comes_back_to(node);
  }
  CHECK_FALSE(comes_back);
  for (const std::uint64_t before : {0UL, 1UL, 7UL, 8UL, 1000UL}) {
    for (const std::uint64_t round : {1UL, 2UL, 5UL, 64UL, 1000UL}) {
      CAPTURE(before, round);
      detail::CircleCheck circle;
      const auto node = [&](std::uint64_t step) {
        return 1 + (step < before ? step : before + (step - before) % round);
      };
      std::uint64_t step = 0;
      while (!circle.comes_back_to(node(step))) ++step;
      CHECK(step >= before + round);
      CHECK(step <= 3 * (before + round));
    }
  }
}

TEST_CASE("a root may be bound to an object of another type") {
  OnePool p;
  const auto padded = p.session.run([](Transaction& tx) {
    tx.set_root("one", tx.make<Account>());
    const auto made = tx.make<Padded>();
    tx.set_root("one", made);
    return made;
  });
  CHECK(p.session.run([](Transaction& tx) { return tx.root<Padded>("one"); }) == padded);
  const auto wrong = p.error([](Transaction& tx) { return tx.root<Account>("one"); });
  REQUIRE(wrong);
  CHECK(wrong->code() == ErrorCode::wrong_type);
  CHECK(wrong->facts().offset == padded.offset());
  CHECK(wrong->facts().wanted.find("Account, 0x") != std::string::npos);
  CHECK(wrong->facts().wanted.ends_with(fmt::format(" ({} bytes) as 'one'", sizeof(Account))));
}

TEST_CASE("tables in DRAM find what belongs to an object by its Ptr") {
  OnePool p;
  std::unordered_map<Ptr<Account>, int> seen;
  const auto [one, two] = p.session.run(
      [](Transaction& tx) { return std::pair(tx.make<Account>(), tx.make<Account>()); });
  seen[one] = 1;
  seen[two] = 2;
  CHECK(seen.size() == 2);
  CHECK(seen.at(Ptr<Account>::from_offset(one.offset())) == 1);
}

TEST_CASE("a root's name has 1 to 47 bytes") {
  OnePool p;
  const auto bind = [&](std::string_view name) {
    return code_of([&] {
      p.session.run([&](Transaction& tx) { tx.set_root(name, tx.make<Account>()); });
      return 0;
    });
  };
  const auto look = [&](std::string_view name) {
    return code_of(
        [&] { return p.session.run([&](Transaction& tx) { return tx.root<Account>(name); }); });
  };
  CHECK(bind("x") == "no error");
  CHECK(bind(std::string(47, 'n')) == "no error");
  CHECK(look(std::string(47, 'n')) == "no error");
  for (const std::string& name : {std::string(), std::string(48, 'n'), std::string("a\0b", 3)}) {
    CHECK(bind(name) == "invalid_argument");
    CHECK(look(name) == "invalid_argument");
  }
}

TEST_CASE("a root is only bound to an object that exists and has the type") {
  OnePool p;
  const auto a = p.session.run([](Transaction& tx) { return tx.make<Account>(); });
  const auto bind = [&](auto object) {
    return code_of([&] {
      p.session.run([&](Transaction& tx) { tx.set_root("root", object); });
      return 0;
    });
  };
  CHECK(bind(Ptr<Padded>::from_offset(a.offset())) == "wrong_type");
  CHECK(bind(Ptr<Account>::from_offset(a.offset() + 8)) == "invalid_pointer");
  p.session.run([&](Transaction& tx) { tx.destroy(a); });
  CHECK(bind(a) == "destroyed_object");
}

TEST_CASE("run returns what the function returns") {
  OnePool p;
  CHECK(p.session.run([](Transaction&) { return 17; }) == 17);
  CHECK(p.session.run([](Transaction&) { return std::string("text"); }) == "text");
  CHECK(*p.session.run([](Transaction&) { return std::make_unique<int>(3); }) == 3);
  static_assert(!Storable<std::string_view> && !Storable<std::span<int>>);
  static_assert(!Storable<std::reference_wrapper<int>> && !Storable<const int> && !Storable<int*>);
  static_assert(!Storable<volatile int> && !Storable<void (Empty::*)()> &&
                !Storable<int Account::*>);
  static_assert(!Storable<Nothing> && Storable<Empty>);
  static_assert(std::is_void_v<decltype(p.session.run([](Transaction&) {}))>);
}

TEST_CASE("what moving a result throws aborts inside the transaction, and not behind it") {
  struct Stubborn {
    int* moves;
    int fails_at;
    Stubborn(int* in_moves, int in_fails_at) : moves(in_moves), fails_at(in_fails_at) {}
    // NOLINTNEXTLINE(performance-noexcept-move-constructor): to throw is what it is for
    Stubborn(Stubborn&& from) : moves(from.moves), fails_at(from.fails_at) {
      if (++*moves == fails_at) throw std::runtime_error("it does not move");
    }
  };
  for (const int fails_at : {1, 2}) {
    OnePool p;
    const auto account = p.session.run([](Transaction& tx) { return tx.make<Account>(); });
    int moves = 0;
    CHECK_THROWS_WITH(p.session.run([&](Transaction& tx) {
      tx.write(account).balance = 5;
      return Stubborn(&moves, fails_at);
    }),
                      "it does not move");
    CHECK(p.session.run([&](Transaction& tx) { return tx.read(account).balance; }) ==
          (fails_at == 1 ? 0 : 5));
  }
}

TEST_CASE("a pool of a relative path does not care where the process goes") {
  CHECK(in_child([] {
          const TempPath directory;
          std::filesystem::create_directory(directory.path());
          std::filesystem::current_path(directory.path());
          for (const MemoryKind memory : {MemoryKind::emulated, MemoryKind::file}) {
            Options options = quiet_options();
            options.memory = memory;
            Pool pool = Pool::create("pool", kTinyPool, options);
            std::filesystem::current_path("/");
            Session session = pool.session();
            session.run([](Transaction& tx) { tx.set_root("one", tx.make<Account>(7, 1U)); });
            pool.checkpoint();
            session.close();
            pool.close();
            std::filesystem::current_path(directory.path());
            Pool again = Pool::open("pool", options);
            if (!again.recovery_report().was_clean) return 1;
            again.close();
            std::filesystem::remove("pool");
          }
          return 0;
        }) == 0);
}

TEST_CASE("an open pool keeps nothing of what recovery was to call") {
  const auto captured = std::make_shared<int>(0);
  Options options = quiet_options();
  options.recovery.progress = [captured](const Progress&) {};
  options.recovery.assessed = [captured](const RecoveryReport&) {};
  const long mine = captured.use_count();
  OnePool p(options);
  CHECK(captured.use_count() == mine);
  p.reopen(options);
  CHECK(captured.use_count() == mine);
}

TEST_CASE("what a session writes becomes durable in the order in which it was run") {
  OnePool p;
  const auto make = [](Transaction& tx) { static_cast<void>(tx.make<Account>()); };
  Ticket first = p.session.run_async(make);
  Ticket second = p.session.run_async(make);
  CHECK_FALSE(first.ready());
  second.wait();
  CHECK(first.ready());
  first.wait();

  Ticket third = p.session.run_async(make);
  CHECK_FALSE(third.ready());
  p.session.run(make);
  CHECK(third.ready());
}

TEST_CASE("objects of 1, 3, 8, 24 and 1000 bytes keep every byte") {
  check_blob<1>(quiet_options(), kTinyPool);
  check_blob<3>(quiet_options(), kTinyPool);
  check_blob<8>(quiet_options(), kTinyPool);
  check_blob<24>(quiet_options(), kTinyPool);
  check_blob<1000>(quiet_options(), kTinyPool);
  check_blob<1000>(quiet_options(MemoryKind::file), kTinyPool);
}

TEST_CASE("an object of 1 MiB keeps every byte") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Options options = quiet_options(memory);
    options.geometry = {};
    options.geometry.slab_size = 2 << 20;
    check_blob<1024 * 1024>(options, 64 << 20);
  }
}

TEST_CASE("alignment up to 64 is kept in copies and at home") {
  OnePool p;
  std::vector<Ptr<Aligned>> made;
  const auto aligned = [](const Aligned& a) {
    return reinterpret_cast<std::uintptr_t>(&a) % 64 == 0;
  };
  for (int i = 0; i < 100; ++i) {
    made.push_back(p.session.run([&](Transaction& tx) {
      const auto a = tx.make<Aligned>(static_cast<std::uint64_t>(i));
      CHECK(aligned(tx.read(a)));
      return a;
    }));
  }
  p.reopen();
  p.session.run([&](Transaction& tx) {
    for (std::size_t i = 0; i < made.size(); ++i) {
      CHECK(aligned(tx.read(made[i])));
      CHECK(tx.read(made[i]).number == i);
      CHECK(aligned(tx.write(made[i])));
    }
  });
}

TEST_CASE("padding of small types reaches the file as zeros, never as bytes of the heap") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    OnePool p(quiet_options(memory));
    const Padded dirty = Padded::dirty();
    Ptr<Padded> made;
    Ptr<Padded> written;
    p.session.run([&](Transaction& tx) {
      made = tx.make<Padded>();
      written = tx.make<Padded>();
      std::memcpy(static_cast<void*>(&tx.write(written)), &dirty, sizeof dirty);
    });
    p.session.run([&](Transaction& tx) {
      std::memcpy(static_cast<void*>(&tx.write(made)), &dirty, sizeof dirty);
    });
    p.session.close();
    p.pool.close();
    const std::vector<char> bytes = read_bytes(p.path.path());
    const auto count = std::count(bytes.begin(), bytes.end(), static_cast<char>(0xEE));
    CHECK(count < 64);  // checksums and the UUID may hold a few
    for (const auto at : {made, written}) check_that_padding_is_zero(bytes.data() + at.offset());
  }
}

TEST_CASE("moved-from handles say so, and the moved-to ones work") {
  OnePool p;
  Session other = std::move(p.session);
  CHECK_FALSE(p.session.is_open());
  CHECK(code_of([&] {
          p.session.run([](Transaction&) {});
          return 0;
        }) == "session_closed");
  CHECK(code_of([&] {
          p.session.flush();
          return 0;
        }) == "session_closed");
  CHECK(other.run([](Transaction&) { return 1; }) == 1);
  Pool moved = std::move(p.pool);
  CHECK_FALSE(p.pool.is_open());
  CHECK(code_of([&] { return p.pool.session(); }) == "pool_closed");
  CHECK(code_of([&] {
          p.pool.checkpoint();
          return 0;
        }) == "pool_closed");
  CHECK(code_of([&] { return p.pool.info(); }) == "pool_closed");
  CHECK(code_of([&] { return p.pool.statistics(); }) == "pool_closed");
  p.pool.close();  // harmless
  CHECK(other.run([](Transaction&) { return 2; }) == 2);
  other.close();
  other.close();
  Pool assigned = Pool(std::move(moved));
  moved = std::move(assigned);
  CHECK_FALSE(assigned.is_open());
  CHECK(moved.is_open());
  moved.close();
  CHECK(Pool::inspect(p.path.path()).clean);
}

TEST_CASE("assigning to an open pool closes it cleanly") {
  TempPath first;
  TempPath second;
  Pool pool = Pool::create(first.path(), kTinyPool, quiet_options());
  pool = Pool::create(second.path(), kTinyPool, quiet_options());
  CHECK(Pool::inspect(first.path()).clean);
  pool.close();
  CHECK(Pool::inspect(second.path()).clean);
}

}  // namespace sp3::test

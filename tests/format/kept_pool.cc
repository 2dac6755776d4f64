#include "tests/format/kept_pool.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/support/pools.h"

namespace sp3::test {

namespace {

constexpr std::uint64_t kTextBytes = 20'000;
constexpr std::size_t kLine = 32;

Account account(std::uint64_t number, std::int64_t cents, std::string_view owner) {
  Account made;
  made.number = number;
  made.cents = cents;
  std::memcpy(made.owner, owner.data(), owner.size());
  return made;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// What a tree or a table holds is told by a map.
template <class C, class V>
std::map<std::uint64_t, V> contents(Transaction& tx, const C& container) {
  std::map<std::uint64_t, V> found;
  container.for_each(tx, [&](std::uint64_t key, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Account>) {
      found[key] = static_cast<V>(value.cents);
    } else {
      found[key] = value;
    }
  });
  return found;
}

template <class C>
C open_root(Transaction& tx, std::string_view name) {
  return C::open(tx, tx.root<typename C::Header>(name));
}

}  // namespace

Options kept_options() {
  Options options = quiet_options();
  options.geometry.slab_size = 8192;
  return options;
}

void fill(Pool& pool) {
  Session session = pool.session();
  session.run([](Transaction& tx) {
    tx.set_root("account", tx.make<Account>(account(1, 100, "Ada")));
    tx.set_root("forgotten", tx.make<Account>(account(2, 200, "Bob")));
  });
  session.run([](Transaction& tx) {
    tx.set_root("forgotten", Ptr<Account>());
    tx.set_root("accounts", Accounts::create(tx, 20, account(3, 300, "Eve")).header());
    const auto numbers = Numbers::create(tx);
    for (std::uint64_t i = 0; i < 10; ++i) numbers.push(tx, i);
    tx.set_root("numbers", numbers.header());
  });
  session.run([](Transaction& tx) {
    const auto table = Table::create(tx);
    for (std::uint64_t key = 0; key < 40; ++key) {
      table.insert_or_assign(tx, key, account(key, static_cast<std::int64_t>(7 * key), "Tom"));
    }
    tx.set_root("table", table.header());
  });
  session.run([](Transaction& tx) {
    const auto red_black = RedBlack::create(tx);
    const auto b_plus = BPlus::create(tx);
    for (std::uint64_t key = 0; key < 50; ++key) {
      red_black.insert_or_assign(tx, 37 * key % 50, key);
      b_plus.insert_or_assign(tx, 37 * key % 50, key);
    }
    tx.set_root("red-black", red_black.header());
    tx.set_root("b-plus", b_plus.header());
  });
  session.run([](Transaction& tx) {
    const auto text = RangedObject::create(tx, kTextBytes, 256);
    text.write(tx, 0, bytes_of("the beginning"));
    text.write(tx, 9'990,
               bytes_of("a piece of text in two chunks, and a hole before and behind it"));
    tx.set_root("text", text.header());
  });
}

std::vector<char> change(Pool& pool, const std::filesystem::path& path) {
  Session first = pool.session();
  Session second = pool.session();
  first.run([](Transaction& tx) {
    tx.write(tx.root<Account>("account")).cents += 11;
    tx.set_root("another", tx.make<Account>(account(4, 400, "Zoe")));
  });
  second.run([](Transaction& tx) {
    const auto numbers = open_root<Numbers>(tx, "numbers");
    numbers.pop(tx);
    numbers.push(tx, 100);
    const auto table = open_root<Table>(tx, "table");
    for (std::uint64_t key = 0; key < 5; ++key) table.erase(tx, key);
    table.insert_or_assign(tx, 1000, account(1000, 7000, "Sue"));
  });
  first.run([](Transaction& tx) {
    const auto red_black = open_root<RedBlack>(tx, "red-black");
    const auto b_plus = open_root<BPlus>(tx, "b-plus");
    for (std::uint64_t key = 0; key < 3; ++key) {
      red_black.erase(tx, key);
      b_plus.erase(tx, key);
      red_black.insert_or_assign(tx, 60 + key, key);
      b_plus.insert_or_assign(tx, 60 + key, key);
    }
  });
  second.run([](Transaction& tx) {
    const auto text = open_root<RangedObject>(tx, "text");
    text.write(tx, 10'001, bytes_of("note"));
    text.resize(tx, kTextBytes + 1000);
  });
  const auto set_cents = [](Transaction& tx, std::uint64_t index, std::int64_t cents) {
    const auto accounts = open_root<Accounts>(tx, "accounts");
    Account changed = accounts.get(tx, index);
    changed.cents = cents;
    accounts.set(tx, index, changed);
  };
  first.run([&](Transaction& tx) { set_cents(tx, 0, 333); });
  const std::vector<char> before = read_bytes(path);
  const Ticket early = first.run_async([&](Transaction& tx) { set_cents(tx, 1, 1); });
  const std::vector<char> after = read_bytes(path);
  const Ticket late = second.run_async([&](Transaction& tx) {
    set_cents(tx, 2, open_root<Accounts>(tx, "accounts").get(tx, 1).cents);
  });
  std::vector<char> crashed = read_bytes(path);
  for (std::size_t i = 0; i < crashed.size(); ++i) {
    if (before[i] != after[i]) crashed[i] = before[i];
  }
  return crashed;
}

void expect_objects(Pool& pool, Stage stage) {
  const bool is_changed = stage == Stage::changed;
  Session session = pool.session();
  session.run([&](Transaction& tx) {
    const Account& first = tx.read(tx.root<Account>("account"));
    CHECK(first.number == 1);
    CHECK(first.cents == (is_changed ? 111 : 100));
    CHECK(std::string(first.owner) == "Ada");
    CHECK_FALSE(tx.root<Account>("forgotten"));
    const auto another = tx.root<Account>("another");
    REQUIRE(bool(another) == is_changed);
    if (another) CHECK(tx.read(another).cents == 400);

    const auto accounts = open_root<Accounts>(tx, "accounts");
    CHECK(accounts.check_invariants(tx).empty());
    REQUIRE(accounts.size(tx) == 20);
    for (std::uint64_t i = 0; i < 20; ++i) {
      CHECK(accounts.get(tx, i).cents == (is_changed && i == 0 ? 333 : 300));
    }

    const auto numbers = open_root<Numbers>(tx, "numbers");
    CHECK(numbers.check_invariants(tx).empty());
    std::vector<std::uint64_t> queued;
    numbers.for_each(tx, [&](std::uint64_t number) { queued.push_back(number); });
    std::vector<std::uint64_t> wanted{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    if (is_changed) {
      wanted.erase(wanted.begin());
      wanted.push_back(100);
    }
    CHECK(queued == wanted);

    const auto table = open_root<Table>(tx, "table");
    CHECK(table.check_invariants(tx).empty());
    std::map<std::uint64_t, std::int64_t> cents;
    for (std::uint64_t key = is_changed ? 5 : 0; key < 40; ++key) {
      cents[key] = static_cast<std::int64_t>(7 * key);
    }
    if (is_changed) cents[1000] = 7000;
    CHECK(contents<Table, std::int64_t>(tx, table) == cents);

    std::map<std::uint64_t, std::uint64_t> ordered;
    for (std::uint64_t key = 0; key < 50; ++key) ordered[37 * key % 50] = key;
    for (std::uint64_t key = 0; is_changed && key < 3; ++key) {
      ordered.erase(key);
      ordered[60 + key] = key;
    }
    const auto red_black = open_root<RedBlack>(tx, "red-black");
    CHECK(red_black.check_invariants(tx).empty());
    CHECK(contents<RedBlack, std::uint64_t>(tx, red_black) == ordered);
    const auto b_plus = open_root<BPlus>(tx, "b-plus");
    CHECK(b_plus.check_invariants(tx).empty());
    CHECK(contents<BPlus, std::uint64_t>(tx, b_plus) == ordered);

    const auto text = open_root<RangedObject>(tx, "text");
    CHECK(text.check_invariants(tx).empty());
    REQUIRE(text.size(tx) == kTextBytes + (is_changed ? 1000 : 0));
    std::string found(text.size(tx), 'x');
    text.read(tx, 0, std::as_writable_bytes(std::span(found)));
    std::string expected(found.size(), '\0');
    const auto put = [&](std::size_t at, std::string_view words) {
      std::copy(words.begin(), words.end(), expected.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(0, "the beginning");
    put(9'990, "a piece of text in two chunks, and a hole before and behind it");
    if (is_changed) put(10'001, "note");
    CHECK(found == expected);
  });
}

std::vector<char> load_image(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  std::size_t size = 0;
  file >> word >> size;
  REQUIRE(word == "bytes:");
  std::vector<char> bytes(size);
  std::string line;
  while (file >> word >> line) {
    const std::size_t offset = std::stoull(word, nullptr, 16);
    REQUIRE(line.size() == 2 * kLine);
    REQUIRE(offset + kLine <= size);
    for (std::size_t i = 0; i < kLine; ++i) {
      bytes[offset + i] = static_cast<char>(std::stoi(line.substr(2 * i, 2), nullptr, 16));
    }
  }
  REQUIRE(file.eof());
  return bytes;
}

void save_image(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::ofstream file(path);
  file << "bytes: " << bytes.size() << '\n';
  for (std::size_t offset = 0; offset < bytes.size(); offset += kLine) {
    const std::span<const char> line(bytes.data() + offset, kLine);
    if (std::all_of(line.begin(), line.end(), [](char c) { return c == 0; })) continue;
    file << fmt::format("{:x}: ", offset);
    for (const char c : line) file << fmt::format("{:02x}", static_cast<unsigned char>(c));
    file << '\n';
  }
  REQUIRE(file.flush());
}

}  // namespace sp3::test

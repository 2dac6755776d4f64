// A program's second release, whose accounts have a limit, and what the first one left in its pool.
//
//   upgrade POOL first     what the first release did: makes the pool, and a thousand accounts
//   upgrade POOL           the second release: brings over what it finds, and adds the accounts up
//
// The old structure stays as it was, under its name. The new one is another type to sp3, and so are
// the containers of it. Nothing is lost if this is killed on the way: the next run goes on.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <sp3/containers/rb_tree.h>
#include <sp3/sp3.h>

namespace {

using Number = std::uint64_t;

struct Account {
  std::int64_t balance;
};
using Accounts = sp3::RbTree<Number, Account>;

struct LimitedAccount {
  std::int64_t balance;
  std::int64_t limit;
};
using LimitedAccounts = sp3::RbTree<Number, LimitedAccount>;

void run_first_release(const std::filesystem::path& path) {
  sp3::Pool pool = sp3::Pool::create(path, 16 << 20);
  sp3::Session session = pool.session();
  session.run([](sp3::Transaction& tx) {
    const Accounts accounts = Accounts::create(tx);
    for (Number number = 0; number < 1000; ++number) accounts.insert(tx, number, {100});
    tx.set_root("accounts", accounts.header());
  });
}

LimitedAccounts open_accounts(sp3::Transaction& tx) {
  constexpr const char* kName = "limited accounts";
  if (const auto header = tx.root<LimitedAccounts::Header>(kName))
    return LimitedAccounts::open(tx, header);
  const LimitedAccounts made = LimitedAccounts::create(tx);
  tx.set_root(kName, made.header());
  return made;
}

// Some of them, since a transaction is only as large as the log allows. Returns whether there are
// more.
bool bring_some_over(sp3::Transaction& tx) {
  const auto header = tx.root<Accounts::Header>("accounts");
  if (!header) return false;
  const Accounts before = Accounts::open(tx, header);
  std::vector<std::pair<Number, Account>> some;
  before.for_each(tx, [&](Number number, const Account& account) {
    some.emplace_back(number, account);
    return some.size() < 100;
  });
  const LimitedAccounts after = open_accounts(tx);
  for (const auto& [number, account] : some) {
    after.insert(tx, number, {account.balance, -500});
    before.erase(tx, number);
  }
  if (!before.empty(tx)) return true;
  before.destroy(tx);
  tx.set_root("accounts", sp3::Ptr<Accounts::Header>());
  return false;
}

void run_second_release(const std::filesystem::path& path) {
  sp3::Pool pool = sp3::Pool::open(path);
  sp3::Session session = pool.session();
  while (session.run(bring_some_over)) {
  }

  Number count = 0;
  std::int64_t balance = 0;
  std::int64_t limit = 0;
  session.run([&](sp3::Transaction& tx) {
    count = 0;
    balance = limit = 0;
    open_accounts(tx).for_each(tx, [&](Number, const LimitedAccount& account) {
      ++count;
      balance += account.balance;
      limit += account.limit;
    });
  });
  std::printf("%llu accounts, balance %lld, limit %lld\n", static_cast<unsigned long long>(count),
              static_cast<long long>(balance), static_cast<long long>(limit));
  if (std::fflush(stdout) != 0) throw std::runtime_error("the output could not be written");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::filesystem::path path = argc > 1 ? argv[1] : "accounts.pool";
    const bool is_first = argc > 2 && argv[2] == std::string_view("first");
    is_first ? run_first_release(path) : run_second_release(path);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "upgrade: %s\n", error.what());
    return 1;
  }
}

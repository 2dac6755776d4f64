// Two accounts that survive everything: run it again and the money is where the last run left it.
#include <cstdio>
#include <filesystem>

#include <sp3/sp3.h>

struct Account {
  long balance;
};

int main(int argc, char** argv) {
  const std::filesystem::path path = argc > 1 ? argv[1] : "bank.pool";
  sp3::Pool pool = exists(path) ? sp3::Pool::open(path) : sp3::Pool::create(path, 16 << 20);
  sp3::Session session = pool.session();
  session.run([](sp3::Transaction& tx) {
    if (tx.root<Account>("alice")) return;
    tx.set_root("alice", tx.make<Account>(100));
    tx.set_root("bob", tx.make<Account>(100));
  });
  // All of it or nothing; when run() returns, a power failure cannot undo it.
  session.run([](sp3::Transaction& tx) {
    tx.write(tx.root<Account>("alice")).balance -= 10;
    tx.write(tx.root<Account>("bob")).balance += 10;
  });
  session.run([](sp3::Transaction& tx) {
    std::printf("alice %ld, bob %ld\n", tx.read(tx.root<Account>("alice")).balance,
                tx.read(tx.root<Account>("bob")).balance);
  });
}

// Asynchronous transactions: go on at once, ask for durability where it matters.
//
// A shop records sales. Each sale is visible to everyone when run_async returns, but its receipt
// may only be handed out when it is durable. Sales become durable in groups, so that many share one
// fence.
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <utility>

#include <sp3/sp3.h>

namespace {

struct Till {
  std::uint64_t sales;
  std::uint64_t cents;
};

struct Receipt {
  std::uint64_t number;
  sp3::Ticket durable;
};

void hand_out(Receipt receipt) {
  receipt.durable.wait();  // this sale and every one it builds on survive a crash from here on
  if (receipt.number % 250 == 0) {
    std::printf("receipt %llu\n", static_cast<unsigned long long>(receipt.number));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path path = argc > 1 ? argv[1] : "shop.pool";
  sp3::Pool pool = exists(path) ? sp3::Pool::open(path) : sp3::Pool::create(path, 16 << 20);
  {
    sp3::Session session = pool.session();
    session.run([](sp3::Transaction& tx) {
      if (!tx.root<Till>("till")) tx.set_root("till", tx.make<Till>());
    });

    std::deque<Receipt> waiting;
    for (int sale = 0; sale < 1000; ++sale) {
      std::uint64_t number = 0;
      sp3::Ticket durable = session.run_async([&](sp3::Transaction& tx) {
        Till& till = tx.write(tx.root<Till>("till"));
        till.cents += 250;
        number = ++till.sales;
      });
      waiting.push_back({number, std::move(durable)});
      // Customers who have waited long enough for a whole group.
      while (waiting.size() > 100) {
        hand_out(std::move(waiting.front()));
        waiting.pop_front();
      }
    }
    for (Receipt& receipt : waiting) hand_out(std::move(receipt));

    session.run([](sp3::Transaction& tx) {
      const Till& till = tx.read(tx.root<Till>("till"));
      std::printf("%llu sales, %llu cents\n", static_cast<unsigned long long>(till.sales),
                  static_cast<unsigned long long>(till.cents));
    });
  }
  pool.close();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  std::fputs("the output could not be written\n", stderr);
  return 1;
}

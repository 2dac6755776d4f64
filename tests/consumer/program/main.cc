// A program outside this repository: it knows the installed headers and nothing else.
#include <cstdint>
#include <filesystem>
#include <iostream>

#include <sp3/sp3.h>

struct Counter {
  std::uint64_t value;
};

int main(int argc, char** argv) {
  const std::filesystem::path path = argc > 1 ? argv[1] : "consumer.pool";
  sp3::Options options;
  options.memory = sp3::MemoryKind::emulated;
  auto pool = sp3::Pool::create(path, 1 << 20, options);
  auto session = pool.session();
  session.run([](sp3::Transaction& tx) { tx.set_root("counter", tx.make<Counter>(41u)); });
  session.run([](sp3::Transaction& tx) { ++tx.write(tx.root<Counter>("counter")).value; });
  session.close();
  pool.close();

  auto again = sp3::Pool::open(path, options);
  auto value = again.session().run(
      [](sp3::Transaction& tx) { return tx.read(tx.root<Counter>("counter")).value; });
  std::cout << "counter = " << value << '\n';
  return value == 42 ? 0 : 1;
}

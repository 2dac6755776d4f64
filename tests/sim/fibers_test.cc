// Fibers keep what the C++ runtime knows about exceptions apart.
#include <exception>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

#include "emu/threads.h"
#include "emu/touch.h"

namespace sp3::test {

TEST_CASE("cores switch inside handlers and during unwinding without mixing their exceptions") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    emu::sim::Config config;
    config.seed = seed;
    emu::sim::Machine machine(config);
    int right = 0;
    struct Unwound {
      ~Unwound() {
        emu::interleave();
        *count += std::uncaught_exceptions() == 1 ? 1 : 0;
      }
      int* count;
    };
    const auto body = [&right](int number) {
      for (int i = 0; i < 5; ++i) {
        try {
          const Unwound unwound{&right};
          throw std::runtime_error(std::to_string(number));
        } catch (const std::exception&) {
          emu::interleave();
          try {
            throw;
          } catch (const std::runtime_error& e) {
            right += e.what() == std::to_string(number) ? 1 : 0;
          }
          emu::interleave();
        }
        right += std::uncaught_exceptions() == 0 && !std::current_exception() ? 1 : 0;
      }
    };
    machine.run([&] {
      emu::Thread a([&] { body(1); });
      emu::Thread b([&] { body(2); });
      a.join();
      b.join();
    });
    CHECK(right == 30);
    CHECK(machine.uncaught().empty());
  }
}

TEST_CASE("an exception that leaves a core's body is reported") {
  emu::sim::Machine machine({});
  machine.run([] { throw std::runtime_error("left"); });
  CHECK(machine.uncaught() == "left");
}

}  // namespace sp3::test

// OnePool: a tiny new pool with one open session, and errors of its transactions as values.
#pragma once

#include <optional>
#include <string>

#include "tests/support/pools.h"

namespace sp3::test {

struct OnePool {
  TempPath path;
  Pool pool;
  Session session;
  explicit OnePool(const Options& options = quiet_options(), std::uint64_t size = kTinyPool)
      : pool(Pool::create(path.path(), size, options)), session(pool.session()) {}
  void reopen(const Options& options = quiet_options()) {
    session.close();
    pool.close();
    pool = Pool::open(path.path(), options);
    session = pool.session();
  }
  template <class Body>
  std::optional<Error> error(Body&& body) {
    return error_of([&] {
      session.run([&](Transaction& tx) { static_cast<void>(body(tx)); });
      return 0;
    });
  }
  template <class Body>
  std::string code(Body&& body) {
    const auto found = error(body);
    return found ? to_string(found->code()) : "no error";
  }
};

}  // namespace sp3::test

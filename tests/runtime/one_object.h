// OneObject: a tiny new pool with one ranged object, and its bytes as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace sp3::test {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint32_t kChunk = 256;

inline Bytes bytes_of(std::size_t count, unsigned value) { return Bytes(count, std::byte(value)); }

inline Bytes read(Transaction& tx, const RangedObject& object, std::uint64_t offset,
                  std::size_t count) {
  Bytes bytes(count);
  object.read(tx, offset, bytes);
  return bytes;
}

// A pool with one ranged object, all of it in place.
struct OneObject : OnePool {
  RangedObject object;
  explicit OneObject(std::uint64_t length = 4 * kChunk, const Options& options = quiet_options())
      : OnePool(options) {
    session.run([&](Transaction& tx) {
      object = RangedObject::create(tx, length, kChunk);
      if (length != 0) object.fill(tx, 0, length);
      tx.set_root("object", object.header());
    });
  }
  std::uint64_t aborts() const { return session.statistics().aborts; }
  Bytes contents() {
    return session.run([&](Transaction& tx) {
      CHECK(object.check_invariants(tx) == "");
      const std::uint64_t size = object.size(tx);
      return size == 0 ? Bytes() : read(tx, object, 0, size);
    });
  }
};

}  // namespace sp3::test

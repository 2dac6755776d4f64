// Files of the wrong length, of the wrong kind, and of other programs.
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/fuzz/fuzzed_pool.h"

namespace sp3::test {
namespace {

using State = FuzzedPool::State;
using Verdict = FuzzedPool::Verdict;

std::string open_code(const TempPath& path, const std::vector<char>& bytes) {
  write_bytes(path.path(), bytes);
  const auto error = error_of([&] { return Pool::open(path.path(), FuzzedPool::options()); });
  if (!error) return "no error";
  CHECK(error->facts().path == path.string());
  return to_string(error->code());
}

}  // namespace

TEST_CASE("a pool that was cut short or has grown is refused, at every size") {
  for (const State state : {State::clean, State::crashed}) {
    const FuzzedPool pool(state, 3);
    TempPath path;
    std::vector<std::uint64_t> sizes{0, 1, 7, 8, 63, 64, 271, 272, 4095, 4096, 4097, 8191, 8192};
    for (std::uint64_t size = 1000; size < 2 * pool.size(); size += 3001) sizes.push_back(size);
    for (std::uint64_t by = 1; by <= 4096; by *= 8) {
      sizes.push_back(pool.size() - by);
      sizes.push_back(pool.size() + by);
    }
    for (const std::uint64_t size : sizes) {
      std::vector<char> bytes = pool.image();
      bytes.resize(size);
      const std::string code = open_code(path, bytes);
      INFO("size " << size << " of " << pool.size());
      if (size < 272) {
        CHECK((code == "not_a_pool" || code == "wrong_size"));
      } else {
        CHECK(code == "wrong_size");
      }
    }
  }
}

TEST_CASE("zeros, ones, noise and text are not pools") {
  TempPath path;
  Random random(1);
  std::vector<char> noise(96 * 1024);
  for (char& byte : noise) byte = static_cast<char>(random());
  CHECK(open_code(path, std::vector<char>(96 * 1024, 0)) == "not_a_pool");
  CHECK(open_code(path, std::vector<char>(96 * 1024, static_cast<char>(0xFF))) == "not_a_pool");
  CHECK(open_code(path, noise) == "not_a_pool");
  CHECK(open_code(path, std::vector<char>(96 * 1024, 'x')) == "not_a_pool");
}

TEST_CASE("whole blocks that are lost, swapped or repeated are never taken for data") {
  for (const State state : {State::clean, State::crashed, State::mixed}) {
    const FuzzedPool pool(state, 9);
    Random random(4);
    std::string why;
    constexpr std::uint64_t kBlock = 512;
    const std::uint64_t blocks = pool.slabs_offset() / kBlock;
    for (int i = 0; i < 600; ++i) {
      std::vector<char> bytes = pool.image();
      const auto a = static_cast<std::ptrdiff_t>(random.below(blocks) * kBlock);
      const auto b = static_cast<std::ptrdiff_t>(random.below(blocks) * kBlock);
      const auto at = [&](std::ptrdiff_t offset) { return bytes.begin() + offset; };
      switch (random.below(3)) {
        case 0:
          std::fill(at(a), at(a) + kBlock, '\0');
          break;
        case 1:
          std::swap_ranges(at(a), at(a) + kBlock, at(b));
          break;
        case 2:
          std::copy(at(a), at(a) + kBlock, at(b));
          break;
      }
      const Verdict verdict = pool.examine(bytes, FuzzedPool::options(), &why);
      INFO("state " << static_cast<int>(state) << ", blocks " << a << " and " << b << ": " << why);
      CHECK(verdict != Verdict::wrong);
      if (state == State::clean) CHECK(verdict != Verdict::older);
    }
  }
}

}  // namespace sp3::test

// A pool that is kept in the source tree, so that what one version wrote is opened by each later
// one: its objects, and its bytes as text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>
#include <sp3/ranged.h>
#include <sp3/sp3.h>

namespace sp3::test {

// Nobody may change what follows, up to fill() and change(): new pools are kept beside the old ones.
struct Account {
  std::uint64_t number = 0;
  std::int64_t cents = 0;
  char owner[16] = {};
};

}  // namespace sp3::test

template <>
struct sp3::TypeTag<sp3::test::Account> {
  static constexpr std::string_view name = "kept.Account";
  static constexpr std::uint32_t version = 1;
};

namespace sp3::test {

using Accounts = Array<Account>;
using Numbers = Queue<std::uint64_t>;
using Table = HashTable<std::uint64_t, Account>;
using RedBlack = RbTree<std::uint64_t, std::uint64_t>;
using BPlus = BpTree<std::uint64_t, std::uint64_t>;

enum class Stage { filled, changed };

// How the kept pools were made.
Options kept_options();
void fill(Pool& pool);
// Changes it in two sessions. Returns the file as a loss of power leaves it that takes the last
// record of the first session and leaves one of the second that depends on it.
std::vector<char> change(Pool& pool, const std::filesystem::path& path);

// Checks all of it.
void expect_objects(Pool& pool, Stage stage);

// Lines of "offset: 32 bytes", both hexadecimal, where not all of them are zero, behind one that
// tells the size.
std::vector<char> load_image(const std::filesystem::path& path);
void save_image(const std::filesystem::path& path, const std::vector<char>& bytes);

}  // namespace sp3::test

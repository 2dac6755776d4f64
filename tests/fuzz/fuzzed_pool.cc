// The list grows by one node in each transaction, and node n holds n: so a prefix of the
// transactions is recognised by its length, and everything in it can be checked.
#include "tests/fuzz/fuzzed_pool.h"

#include "pool/pool_file.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t check_of(std::uint64_t number) {
  return (number + 1) * 0x9E3779B97F4A7C15ULL;
}

// Makes the list longer by one transaction each.
void grow(Session& session, std::uint64_t transactions) {
  for (std::uint64_t i = 0; i < transactions; ++i) {
    session.run([](Transaction& tx) {
      FuzzList& list = tx.write(tx.root<FuzzList>("list"));
      FuzzNode node{list.length, list.first, check_of(list.length)};
      list.first = tx.make<FuzzNode>(node);
      ++list.length;
    });
  }
}

int build(const std::filesystem::path& path, FuzzedPool::State state, std::uint64_t length) {
  Options options = FuzzedPool::options();
  options.geometry = {32 * 1024, 4096, 4096, 3};
  Pool pool = Pool::create(path, 96 * 1024, options);
  Session session = pool.session();
  session.run([](Transaction& tx) { tx.set_root("list", tx.make<FuzzList>()); });
  Session second = pool.session();
  grow(session, length / 2);
  if (state == FuzzedPool::State::mixed) pool.checkpoint();
  grow(second, length - length / 2);
  if (state != FuzzedPool::State::clean) ::_exit(1);
  session.close();
  second.close();
  pool.close();
  return 1;
}

}  // namespace

Options FuzzedPool::options(RecoveryStrategy strategy, bool accept_loss) {
  Options options = quiet_options();
  options.recovery.strategy = strategy;
  options.recovery.accept_loss = accept_loss;
  return options;
}

FuzzedPool::FuzzedPool(State state, std::uint64_t seed) : length_(20 + seed % 20) {
  if (in_child([&] { return build(path_.path(), state, length_); }) != 1) return;
  image_ = read_bytes(path_.path());
  const auto file =
      pool::PoolFile::open(path_.path(), options(), pool::PoolFile::Access::read_only);
  const pool::Layout& layout = file->layout();
  slabs_offset_ = layout.slabs_offset;
  home_bytes_.assign(image_.size() - slabs_offset_, false);
  const auto directory =
      pool::SlabDirectory::load(file->memory(), layout, file->identity(), file->current_copy());
  for (std::uint32_t slab = 0; slab < layout.slabs; ++slab) {
    const pool::SlabRecord& record = directory.record(slab);
    if (record.type == 0) continue;
    const pool::SlabShape shape = pool::slab_shape(layout.slab_size, record.slot_size);
    const std::uint64_t begin = layout.slab_offset(slab) - slabs_offset_ + shape.data;
    for (std::uint64_t i = 0; i < std::uint64_t{shape.slots} * record.slot_size; ++i) {
      home_bytes_[begin + i] = true;
    }
  }
}

bool FuzzedPool::is_home_byte(std::uint64_t offset) const {
  return offset >= slabs_offset_ && home_bytes_[offset - slabs_offset_];
}

FuzzedPool::Verdict FuzzedPool::examine(const std::vector<char>& bytes, const Options& options,
                                        std::string* why) const {
  write_bytes(path_.path(), bytes);
  try {
    Pool pool = Pool::open(path_.path(), options);
    Session session = pool.session();
    Verdict verdict = Verdict::intact;
    session.run([&](Transaction& tx) {
      const auto root = tx.root<FuzzList>("list");
      if (!root) {
        verdict = Verdict::older;
        return;
      }
      const FuzzList& list = tx.read(root);
      verdict = list.length == length_ ? Verdict::intact : Verdict::older;
      Ptr<FuzzNode> at = list.first;
      for (std::uint64_t n = list.length; n-- > 0; at = tx.read(at).next) {
        const FuzzNode& node = tx.read(at);
        if (list.length <= length_ && node.number == n && node.check == check_of(n)) continue;
        *why = "node " + std::to_string(n) + " of " + std::to_string(list.length) + " says " +
               std::to_string(node.number);
        verdict = Verdict::wrong;
        return;
      }
      if (at) {
        *why = "the list goes on behind its end";
        verdict = Verdict::wrong;
      }
    });
    // And the pool must still work.
    session.run([](Transaction& tx) { tx.set_root("more", tx.make<FuzzNode>()); });
    session.close();
    pool.close();
    return verdict;
  } catch (const Error& error) {
    *why = error.what();
    return Verdict::refused;
  }
}

}  // namespace sp3::test

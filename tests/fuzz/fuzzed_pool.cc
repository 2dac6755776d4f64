// The list grows by one node in each transaction, and node n holds n: so a prefix of the
// transactions is recognised by its length, and everything in it can be checked. The same
// transactions write ranges of a ranged object, so that its contents follow from the list's length.
#include "tests/fuzz/fuzzed_pool.h"

#include <algorithm>
#include <array>

#include <sp3/ranged.h>

#include "pool/pool_file.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t check_of(std::uint64_t number) {
  return (number + 1) * 0x9E3779B97F4A7C15ULL;
}

// The ranged object: a table of two levels, a few chunks in both leaves, the others holes.
constexpr std::uint32_t kChunk = 256;
constexpr std::uint64_t kRangedBytes = 200 * kChunk - 100;
constexpr std::uint64_t kRangeBytes = 24;

// What transaction n writes; now and then across the border of two chunks.
std::uint64_t range_of(std::uint64_t n) {
  constexpr std::array<std::uint64_t, 6> kChunks = {0, 1, 126, 127, 128, 198};
  return kChunks[n % kChunks.size()] * kChunk + n * 61 % 250;
}
void write_range(std::span<std::byte> to, std::uint64_t n) {
  std::ranges::fill(to, static_cast<std::byte>(n * 7 + 1));
}

std::vector<std::byte> expected_bytes(std::uint64_t transactions) {
  std::vector<std::byte> bytes(kRangedBytes);
  for (std::uint64_t n = 0; n < transactions; ++n) {
    write_range(std::span(bytes).subspan(range_of(n), kRangeBytes), n);
  }
  return bytes;
}

// What is wrong with the ranged object after so many transactions; empty if nothing.
std::string fault_of(Transaction& tx, std::uint64_t transactions) {
  const auto root = tx.root<RangedObject::Header>("ranged");
  if (!root) return transactions == 0 ? "" : "the ranged object is not there";
  const RangedObject object = RangedObject::open(tx, root);
  if (object.size(tx) != kRangedBytes) return "the ranged object has another size";
  const std::vector<std::byte> expected = expected_bytes(transactions);
  std::vector<std::byte> found(kRangedBytes);
  object.read(tx, 0, found);
  if (found != expected) return "the ranged object has other bytes";
  const RangedView view = object.view(tx, 100, kRangedBytes);
  std::vector<std::byte> viewed(kRangedBytes - 100);
  view.copy(0, viewed);
  if (!std::equal(viewed.begin(), viewed.end(), expected.begin() + 100)) {
    return "a view of the ranged object shows other bytes";
  }
  return object.check_invariants(tx);
}

using Operation = void (*)(Transaction& tx, const RangedObject& object);

// Each follows the table somewhere else.
constexpr std::array<Operation, 5> kOperations = {
    [](Transaction& tx, const RangedObject& object) {
      const std::vector<std::byte> bytes(3 * kChunk, std::byte{1});
      object.write(tx, 126 * kChunk + 5, bytes);
    },
    [](Transaction& tx, const RangedObject& object) { object.resize(tx, 300 * kChunk); },
    [](Transaction& tx, const RangedObject& object) { object.fill(tx, 4096, 5000); },
    [](Transaction& tx, const RangedObject& object) { object.resize(tx, 150 * kChunk + 9); },
    // What the transaction has written or let go itself may turn up again elsewhere in the table.
    [](Transaction& tx, const RangedObject& object) {
      std::vector<std::byte> bytes(16 * kChunk, std::byte{2});
      object.resize(tx, 128 * kChunk);
      object.write(tx, 112 * kChunk, bytes);
      object.resize(tx, 127 * kChunk);
      object.read(tx, 0, bytes);
      object.write(tx, 0, bytes);
      static_cast<void>(object.view(tx, 0, 127 * kChunk));
      object.resize(tx, 200 * kChunk);
    }};

void change_ranged(Session& session, std::size_t first) {
  const auto change = [&](Operation operation) {
    session.run([&](Transaction& tx) {
      if (const auto root = tx.root<RangedObject::Header>("ranged")) {
        operation(tx, RangedObject::open(tx, root));
      }
    });
  };
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    change(kOperations[(first + i) % kOperations.size()]);
  }
  change([](Transaction& tx, const RangedObject& object) { object.destroy(tx); });
}

// Makes the list longer by one transaction each.
void grow(Session& session, std::uint64_t transactions) {
  for (std::uint64_t i = 0; i < transactions; ++i) {
    session.run([](Transaction& tx) {
      FuzzList& list = tx.write(tx.root<FuzzList>("list"));
      FuzzNode node{list.length, list.first, check_of(list.length)};
      std::array<std::byte, kRangeBytes> range;
      write_range(range, list.length);
      RangedObject::open(tx, tx.root<RangedObject::Header>("ranged"))
          .write(tx, range_of(list.length), range);
      list.first = tx.make<FuzzNode>(node);
      ++list.length;
    });
  }
}

int build(const std::filesystem::path& path, FuzzedPool::State state, std::uint64_t length) {
  Options options = FuzzedPool::options();
  options.geometry = {32 * 1024, 4096, 4096, 3};
  Pool pool = Pool::create(path, 128 * 1024, options);
  Session session = pool.session();
  session.run([](Transaction& tx) {
    tx.set_root("ranged", RangedObject::create(tx, kRangedBytes, kChunk).header());
  });
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
    const bool is_table = record.type == detail::type_info<detail::RangedHeader>.fingerprint ||
                          record.type == detail::type_info<detail::RangedNode>.fingerprint;
    for (std::uint64_t i = 0; i < std::uint64_t{shape.slots} * record.slot_size; ++i) {
      home_bytes_[begin + i] = true;
      if (is_table && image_[slabs_offset_ + begin + i] != 0) {
        table_bytes_.push_back(slabs_offset_ + begin + i);
      }
    }
    const pool::Bitmap bitmap = directory.load_bitmap(file->memory(), slab, file->current_copy());
    for (std::uint32_t slot = 0; slot < shape.slots; ++slot) {
      if ((bitmap[slot / 64] >> (slot % 64) & 1) == 0) continue;
      objects_.push_back(slabs_offset_ + begin + std::uint64_t{slot} * record.slot_size);
    }
  }
}

bool FuzzedPool::is_home_byte(std::uint64_t offset) const {
  return offset >= slabs_offset_ && home_bytes_[offset - slabs_offset_];
}

FuzzedPool::Verdict FuzzedPool::examine(const std::vector<char>& bytes, const Options& options,
                                        std::string* why, std::size_t first_change) const {
  write_bytes(path_.path(), bytes);
  why->clear();
  try {
    Pool pool = Pool::open(path_.path(), options);
    Session session = pool.session();
    Verdict verdict = Verdict::intact;
    const auto look = [&](Transaction& tx) {
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
      if (at) *why = "the list goes on behind its end";
      if (!at) *why = fault_of(tx, list.length);
      if (!why->empty()) verdict = Verdict::wrong;
    };
    // Whoever looks first does not get to the changes where the table is seen to be damaged.
    if (first_change == 0) session.run(look);
    // And the pool must still work.
    change_ranged(session, first_change);
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

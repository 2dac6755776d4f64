// RangedObject and Ranged<T>: large arrays of bytes, or of elements, that transactions read and
// write by range.
//
//   auto blob = sp3::RangedObject::create(tx, 1 << 20);            // 1 MiB of zeros
//   blob.write(tx, 4096, std::as_bytes(std::span(text)));          // these bytes, no others
//   const auto prices = sp3::Ranged<double>::create(tx, 1'000'000);
//   prices.set(tx, 7, prices.get(tx, 7) * 1.05);
//
// Two transactions that write disjoint ranges of one object both commit, in parallel, even where
// the ranges share a chunk.
//
// Thread safety: a handle is a small value; its members may be called by several threads, each with
//   its own transaction.
// Ownership and lifetime: the pool owns the object until destroy(); name it by a root, or keep its
//   header() in another object. A handle made by create() is good once that transaction has
//   committed. A view ends with its transaction.
// Invariants:
//   1. Transactions that read and write ranges are as opaque and serializable as all others.
//   2. A written range is held exclusively from write() until the transaction's effects are
//      visible; nobody else writes or views a byte of it meanwhile (but under CommitPolicy::ideal,
//      which has no locks).
//   3. Bytes that were never written, or were cut off by resize(), are zero.
// Errors of all members that take a transaction: as Transaction::read; damaged_metadata also if the
//   object's header contradicts itself; beyond_end for a range that begins or ends behind the
//   object's end, else invalid_range for one that is empty or reversed.
// Durable: with the transaction. The log gets the words that were written, not the chunks.
// Progress: waiting for a range is bounded; a transaction that waits too long starts again. So
//   ranges may be taken in any order, and views turned into writes, without deadlock.
// Complexity: for n bytes, one access for each chunk and ceil(log128(chunks)) for each 128 of them,
//   and one range lock; resize() and destroy() visit the nodes of the chunk table.
// Source: docs/RANGE_LOCKS.md, docs/adr/0013-ranged-objects-in-chunks.md.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sp3/detail/ranged.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3 {

// A range of a ranged object as of one moment of the transaction, without a copy (but for chunks
// that the transaction has written itself). While it lives its range is held shared: no other
// transaction writes there. Later writes of the own transaction do not change it; one that overlaps
// it gives the view's range up, so that another's write may then end in a conflict at commit.
//
// Errors of all members: view_expired once the transaction (or this attempt of it) has ended, or
// after close(), or if it never had a range.
class RangedView {
 public:
  RangedView() noexcept = default;
  RangedView(RangedView&& other) noexcept : data_(std::exchange(other.data_, {})) {}
  RangedView& operator=(RangedView&& other) noexcept {
    if (this != &other) {
      close();
      data_ = std::exchange(other.data_, {});
    }
    return *this;
  }
  ~RangedView() { close(); }

  [[nodiscard]] std::uint64_t size() const { return checked().bytes; }

  // The bytes in order, a part for each chunk. Valid until the view is closed.
  [[nodiscard]] std::span<const std::span<const std::byte>> parts() const {
    return checked().parts;
  }

  // Copies the bytes from `offset` in the view on. Errors: beyond_end.
  void copy(std::uint64_t offset, std::span<std::byte> to) const {
    const detail::RangedViewData& data = checked();
    if (offset > data.bytes || to.size() > data.bytes - offset) [[unlikely]]
      detail::ranged_view_exceeded(offset, to.size(), data.bytes);
    std::uint64_t at = data.skipped + offset;
    for (std::size_t done = 0; done < to.size();) {
      const std::size_t part = at / data.chunk_bytes;
      const std::size_t from = at % data.chunk_bytes - (part == 0 ? data.skipped : 0);
      const std::size_t bytes = std::min(to.size() - done, data.parts[part].size() - from);
      std::memcpy(to.data() + done, data.parts[part].data() + from, bytes);
      done += bytes;
      at += bytes;
    }
  }

  // Lets go of the range.
  void close() noexcept {
    if (is_open()) detail::ranged_close_view(*data_.core, data_.number);
    data_ = {};
  }
  [[nodiscard]] bool is_open() const noexcept {
    // relaxed: only the session's own thread changes it while the view is open.
    return data_.core != nullptr &&
           data_.attempts->load(std::memory_order_relaxed) == data_.attempt;
  }

 private:
  friend class RangedObject;
  explicit RangedView(detail::RangedViewData data) noexcept : data_(std::move(data)) {}

  const detail::RangedViewData& checked() const {
    if (!is_open()) detail::ranged_view_expired();
    return data_;
  }

  detail::RangedViewData data_;
};

class RangedObject {
 public:
  using Header = detail::RangedHeader;
  static constexpr std::uint32_t default_chunk = 1024;

  RangedObject() noexcept = default;

  // A new object of `length` zeros, up to 2^44 - 1; it takes no space until it is written (see
  // fill()). `chunk_bytes`: what is copied and locked as one at commit; a power of two from 256 to
  // 4096, below the pool's slab size. Smaller chunks suit small writes, larger ones large writes.
  // Errors: invalid_argument, and as Transaction::make.
  static RangedObject create(Transaction& tx, std::uint64_t length,
                             std::uint32_t chunk_bytes = default_chunk) {
    return create_of(tx, length, chunk_bytes, detail::type_info<std::byte>.fingerprint);
  }
  // The object that `header` names. Errors: wrong_type if its elements are not bytes.
  static RangedObject open(Transaction& tx, Ptr<Header> header) {
    return open_of(tx, header, detail::type_info<std::byte>);
  }

  [[nodiscard]] std::uint64_t size(Transaction& tx) const {
    return detail::ranged_size(tx.core_, header_.offset());
  }

  // Copies the bytes from `offset` on, the transaction's own writes included.
  void read(Transaction& tx, std::uint64_t offset, std::span<std::byte> to) const {
    detail::ranged_read(tx.core_, header_.offset(), offset, to);
  }
  // Overwrites the bytes from `offset` on. What is behind and before them in the same chunk may be
  // written by others at the same time. Errors: where no chunk is yet, those of fill().
  void write(Transaction& tx, std::uint64_t offset, std::span<const std::byte> from) const {
    detail::ranged_write(tx.core_, header_.offset(), offset, from);
  }

  // The bytes [begin, end) without a copy.
  [[nodiscard]] RangedView view(Transaction& tx, std::uint64_t begin, std::uint64_t end) const {
    return RangedView(detail::ranged_view(tx.core_, header_.offset(), begin, end));
  }

  // Holds [begin, end) exclusively to the end of the transaction. What is read there afterwards is
  // not disturbed by those who write elsewhere in the same chunks: for transactions that read a
  // range in order to change it.
  void lock(Transaction& tx, std::uint64_t begin, std::uint64_t end) const {
    detail::ranged_lock(tx.core_, header_.offset(), begin, end);
  }

  // Gives [begin, end) its place in the pool, so that later writes there need no new chunks (which
  // conflict with each other within 128 chunks, the first of each 128 within 128 times as many, and
  // so on). Errors: pool_full, transaction_too_large; unsupported under CommitPolicy::ideal.
  void fill(Transaction& tx, std::uint64_t begin, std::uint64_t end) const {
    detail::ranged_fill(tx.core_, header_.offset(), begin, end);
  }

  // Cuts off the end, or appends zeros. Waits for all ranges of the object, and conflicts with
  // every transaction that uses it. Errors: view_open if this transaction has a view of it;
  // invalid_argument for a length above 2^44 - 1; transaction_too_large: cut off in several steps;
  // pool_full, for the nodes above the chunks of a longer one; unsupported under
  // CommitPolicy::ideal, where nodes are made or chunks given back.
  void resize(Transaction& tx, std::uint64_t length) const {
    detail::ranged_resize(tx.core_, header_.offset(), length);
  }
  // Frees everything. Errors: as resize().
  void destroy(Transaction& tx) const { detail::ranged_destroy(tx.core_, header_.offset()); }

  // Empty if the chunk table is in order; else a sentence that names the violation.
  [[nodiscard]] std::string check_invariants(Transaction& tx) const {
    return detail::ranged_check(tx.core_, header_.offset());
  }

  [[nodiscard]] Ptr<Header> header() const noexcept { return header_; }

 private:
  template <Storable T>
  friend class Ranged;

  explicit RangedObject(Ptr<Header> header) noexcept : header_(header) {}
  static RangedObject create_of(Transaction& tx, std::uint64_t length, std::uint32_t chunk_bytes,
                                std::uint64_t element) {
    return RangedObject(
        Ptr<Header>::from_offset(detail::ranged_create(tx.core_, length, chunk_bytes, element)));
  }
  static RangedObject open_of(Transaction& tx, Ptr<Header> header,
                              const detail::TypeInfo& element) {
    detail::ranged_open(tx.core_, header.offset(), element);
    return RangedObject(header);
  }

  Ptr<Header> header_;
};

// The same in elements of type T: all positions and counts are elements; errors tell bytes.
template <Storable T>
class Ranged {
 public:
  using Header = RangedObject::Header;

  // A view whose elements are read by value.
  class View {
   public:
    View() noexcept = default;
    [[nodiscard]] std::uint64_t size() const { return bytes_.size() / sizeof(T); }
    // Errors: beyond_end.
    [[nodiscard]] T operator[](std::uint64_t index) const {
      std::array<std::byte, sizeof(T)> raw;
      bytes_.copy(Ranged::bytes(index), raw);
      return std::bit_cast<T>(raw);
    }
    [[nodiscard]] const RangedView& bytes() const noexcept { return bytes_; }
    void close() noexcept { bytes_.close(); }

   private:
    friend class Ranged;
    explicit View(RangedView bytes) noexcept : bytes_(std::move(bytes)) {}
    RangedView bytes_;
  };

  Ranged() noexcept = default;

  static Ranged create(Transaction& tx, std::uint64_t length,
                       std::uint32_t chunk_bytes = RangedObject::default_chunk) {
    return Ranged(RangedObject::create_of(tx, bytes(length), chunk_bytes, kElement.fingerprint));
  }
  // Errors: wrong_type if the elements are not T.
  static Ranged open(Transaction& tx, Ptr<Header> header) {
    return Ranged(RangedObject::open_of(tx, header, kElement));
  }

  [[nodiscard]] std::uint64_t size(Transaction& tx) const { return object_.size(tx) / sizeof(T); }

  [[nodiscard]] T get(Transaction& tx, std::uint64_t index) const {
    std::array<std::byte, sizeof(T)> raw;
    object_.read(tx, bytes(index), raw);
    return std::bit_cast<T>(raw);
  }
  void set(Transaction& tx, std::uint64_t index, const T& value) const {
    T clean = value;
    if constexpr (detail::has_clearable_padding<T>) detail::clear_padding_of<T>(&clean);
    object_.write(tx, bytes(index), std::as_bytes(std::span<const T>(&clean, 1)));
  }
  void read(Transaction& tx, std::uint64_t first, std::span<T> to) const {
    object_.read(tx, bytes(first), std::as_writable_bytes(to));
  }
  void write(Transaction& tx, std::uint64_t first, std::span<const T> from) const {
    if constexpr (detail::has_clearable_padding<T>) {
      // No stray bytes of the program reach the pool.
      std::vector<T> clean(from.begin(), from.end());
      for (T& element : clean) detail::clear_padding_of<T>(&element);
      object_.write(tx, bytes(first), std::as_bytes(std::span<const T>(clean)));
    } else {
      object_.write(tx, bytes(first), std::as_bytes(from));
    }
  }

  [[nodiscard]] View view(Transaction& tx, std::uint64_t begin, std::uint64_t end) const {
    return View(object_.view(tx, bytes(begin), bytes(end)));
  }
  void lock(Transaction& tx, std::uint64_t begin, std::uint64_t end) const {
    object_.lock(tx, bytes(begin), bytes(end));
  }
  void fill(Transaction& tx, std::uint64_t begin, std::uint64_t end) const {
    object_.fill(tx, bytes(begin), bytes(end));
  }
  void resize(Transaction& tx, std::uint64_t length) const { object_.resize(tx, bytes(length)); }
  void destroy(Transaction& tx) const { object_.destroy(tx); }

  [[nodiscard]] std::string check_invariants(Transaction& tx) const {
    return object_.check_invariants(tx);
  }
  [[nodiscard]] Ptr<Header> header() const noexcept { return object_.header(); }

 private:
  static constexpr const detail::TypeInfo& kElement = detail::type_info<T>;

  // Too many to be counted are beyond every end.
  static constexpr std::uint64_t bytes(std::uint64_t elements) noexcept {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / sizeof(T);
    return elements > kMost ? std::numeric_limits<std::uint64_t>::max() : elements * sizeof(T);
  }

  explicit Ranged(RangedObject object) noexcept : object_(object) {}

  RangedObject object_;
};

}  // namespace sp3

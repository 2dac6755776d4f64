// How a ranged object lies in the pool, and what the inline parts of sp3/ranged.h call. Not part of
// the API.
//
//     RangedHeader --top--> RangedNode --cells--> ... --> RangedChunk
//
// `levels` levels of nodes, the least number with 128^levels chunks for `length` bytes; with none,
// `top` is the only chunk. A null cell is a hole: zeros that were never written.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sp3/detail/core.h>
#include <sp3/detail/export.h>
#include <sp3/type.h>

namespace sp3::detail {

struct RangedHeader {
  std::uint64_t length = 0;   // bytes
  std::uint64_t element = 0;  // fingerprint of the elements' type
  std::uint64_t top = 0;      // offset of a node, or a chunk; 0: nothing is written yet
  std::uint32_t chunk_bytes = 0;
  std::uint32_t levels = 0;
};
static_assert(sizeof(RangedHeader) == 32);

inline constexpr unsigned kRangedNodeBits = 7;
struct RangedNode {
  std::array<std::uint64_t, 1 << kRangedNodeBits> cells;
};
static_assert(sizeof(RangedNode) == 1024);

template <std::uint32_t kBytes>
struct alignas(64) RangedChunk {
  std::array<std::byte, kBytes> bytes;
};

inline constexpr std::uint32_t kLargestChunk = 4096;

// What a view shows, and how it knows that it still may.
struct RangedViewData {
  std::vector<std::span<const std::byte>> parts;  // in order; all but the first begin a chunk
  std::vector<std::unique_ptr<std::byte[]>> own;  // chunks the transaction has written itself
  std::shared_ptr<const std::atomic<std::uint64_t>> attempts;  // the session's count of attempts
  std::uint64_t attempt = 0;                                   // the one that the view belongs to
  runtime::SessionCore* core = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t skipped = 0;  // bytes of the first chunk before the view
  std::uint32_t number = 0;   // the session's, of its range
};

SP3_API std::uint64_t ranged_create(runtime::SessionCore& core, std::uint64_t length,
                                    std::uint32_t chunk_bytes, std::uint64_t element);
SP3_API void ranged_open(runtime::SessionCore& core, std::uint64_t object, const TypeInfo& element);
SP3_API void ranged_destroy(runtime::SessionCore& core, std::uint64_t object);
SP3_API std::uint64_t ranged_size(runtime::SessionCore& core, std::uint64_t object);
SP3_API void ranged_read(runtime::SessionCore& core, std::uint64_t object, std::uint64_t offset,
                         std::span<std::byte> to);
SP3_API void ranged_write(runtime::SessionCore& core, std::uint64_t object, std::uint64_t offset,
                          std::span<const std::byte> from);
SP3_API void ranged_lock(runtime::SessionCore& core, std::uint64_t object, std::uint64_t begin,
                         std::uint64_t end);
SP3_API void ranged_fill(runtime::SessionCore& core, std::uint64_t object, std::uint64_t begin,
                         std::uint64_t end);
SP3_API void ranged_resize(runtime::SessionCore& core, std::uint64_t object, std::uint64_t length);
SP3_API RangedViewData ranged_view(runtime::SessionCore& core, std::uint64_t object,
                                   std::uint64_t begin, std::uint64_t end);
SP3_API std::string ranged_check(runtime::SessionCore& core, std::uint64_t object);
// REQUIRES: the attempt that the view belongs to is in progress.
SP3_API void ranged_close_view(runtime::SessionCore& core, std::uint32_t number) noexcept;
[[noreturn]] SP3_API void ranged_view_expired();
[[noreturn]] SP3_API void ranged_view_exceeded(std::uint64_t offset, std::uint64_t bytes,
                                               std::uint64_t size);

}  // namespace sp3::detail

template <>
struct sp3::TypeTag<sp3::detail::RangedHeader> {
  static constexpr std::string_view name = "sp3.RangedHeader";
  static constexpr std::uint32_t version = 1;
};
template <>
struct sp3::TypeTag<sp3::detail::RangedNode> {
  static constexpr std::string_view name = "sp3.RangedNode";
  static constexpr std::uint32_t version = 1;
};
template <std::uint32_t kBytes>
struct sp3::TypeTag<sp3::detail::RangedChunk<kBytes>> {
  static constexpr std::string_view name = "sp3.RangedChunk";
  static constexpr std::uint32_t version = 1;
};

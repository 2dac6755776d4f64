// MemoryModel: who answers the atomic accesses of simulated cores, if anybody does.
//
// Without one each access is done on the spot, so all cores see one order of all stores.
//
// Thread safety: simulated code has one OS thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sp3::base {

// Where an access is written in the source. std::source_location is not there with clang 14.
struct Site {
  const char* file = "";
  std::uint32_t line = 0;

  static constexpr Site current(const char* file = __builtin_FILE(),
                                std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
  }

  // From the folder of the library's source on.
  [[nodiscard]] std::string_view short_file() const noexcept {
    const std::string_view path = file;
    const std::size_t name = path.rfind('/');
    const std::size_t folder = name == 0 ? 0 : path.rfind('/', name - 1);
    return name == std::string_view::npos || folder == std::string_view::npos
               ? path
               : path.substr(folder + 1);
  }
};

enum class AtomicAccess : std::uint8_t { load, store, exchange, fence };

class MemoryModel {
 public:
  virtual ~MemoryModel() = default;

  // An access comes next: other cores may act before it. Returns the order that it is to have.
  virtual std::memory_order before_access(AtomicAccess access, std::memory_order stated,
                                          const Site& site) noexcept = 0;
  // What a load gives; `newest` is what the memory holds. Values are those of up to eight bytes.
  virtual std::uint64_t load(const void* at, std::uint64_t newest,
                             std::memory_order order) noexcept = 0;
  // The memory held `before` and holds `value` behind the call.
  virtual void store(const void* at, std::uint64_t before, std::uint64_t value,
                     std::memory_order order) noexcept = 0;
  // One access that loads `before` and stores `value`.
  virtual void exchange(const void* at, std::uint64_t before, std::uint64_t value,
                        std::memory_order order) noexcept = 0;
  // One that would have stored, but found something else.
  virtual void fail_to_exchange(const void* at, std::uint64_t found,
                                std::memory_order order) noexcept = 0;
  virtual void fence(std::memory_order order) noexcept = 0;
  // Every core executes a full fence (base/fence.h), if the order is still seq_cst.
  virtual void fence_everywhere(std::memory_order order) noexcept = 0;
  // Until the other is called the core's accesses are one step: they find the newest, and no other
  // core acts. They nest.
  virtual void begin_step() noexcept = 0;
  virtual void end_step() noexcept = 0;
  // A new object is there: nobody knows what was there before.
  virtual void forget(const void* at) noexcept = 0;

  // Memory that is not atomic (base/plain_access.h).
  virtual void read_plainly(const void* at, std::size_t bytes, const Site& site) noexcept = 0;
  virtual void read_for_long(const void* at, std::size_t bytes, const Site& site) noexcept = 0;
  virtual void end_long_reads() noexcept = 0;
  virtual void write_plainly(const void* at, std::size_t bytes, const Site& site) noexcept = 0;
  virtual void forget_plainly(const void* at, std::size_t bytes) noexcept = 0;
};

inline MemoryModel* memory_model = nullptr;

}  // namespace sp3::base

// FileSystem: the files of a simulated machine, by name, in memory.
//
// One flat directory. A file's bytes are a Media. Opening, locking, reserving, naming and syncing
// follow what pool/file_system.h needs of an operating system.
//
// Names survive every crash: whether the file of a new pool is durable before it has its name, and
// the name in time, does not show here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "emu/sim/media.h"

namespace sp3::emu::sim {

class Machine;
enum class FileChange : std::uint8_t;

struct File {
  Media media;
  int exclusive = 0;  // locks held
  int shared = 0;
};

class FileSystem {
 public:
  explicit FileSystem(Machine& machine) : machine_(machine) {}

  // A file without a name. The descriptor keeps it alive.
  int create_unnamed();
  // -1 if there is no such name.
  int open(const std::string& name, bool writable);
  void close(int descriptor) noexcept;
  [[nodiscard]] File& at(int descriptor);
  [[nodiscard]] bool is_writable(int descriptor);

  [[nodiscard]] bool exists(const std::string& name) const { return names_.count(name) != 0; }
  // False if somebody has a lock that excludes it.
  bool lock(int descriptor, bool exclusive);
  void unlock(int descriptor) noexcept;
  void resize(int descriptor, std::uint64_t bytes);
  // Everything stored to the file so far is certain.
  void sync(int descriptor);
  void give_name(int descriptor, const std::string& name);
  void sync_directory();
  void remove(const std::string& name) noexcept;
  void remove_name_of(int descriptor) noexcept;

  // The file of that name; null if there is none.
  [[nodiscard]] File* find(const std::string& name);
  // The file of that name, made empty and durable if there is none: for images.
  File& put(const std::string& name);

 private:
  struct Open {
    std::shared_ptr<File> file;
    bool writable = false;
    bool locked = false;
    bool exclusive = false;
  };

  void change(FileChange what, std::uint64_t cost) noexcept;

  Machine& machine_;
  std::map<std::string, std::shared_ptr<File>> names_;
  std::map<int, Open> open_;
  int next_ = 3;
};

}  // namespace sp3::emu::sim

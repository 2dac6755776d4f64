#include "emu/sim/file.h"

#include "base/assert.h"
#include "emu/sim/machine.h"

namespace sp3::emu::sim {

void FileSystem::change(FileChange what, std::uint64_t cost) noexcept {
  machine_.event(Event::file, static_cast<std::uint64_t>(what), cost);
}

int FileSystem::create_unnamed() {
  change(FileChange::make, machine_.costs().file_write);
  open_[next_] = {std::make_shared<File>(), true, false, false};
  return next_++;
}

int FileSystem::open(const std::string& name, bool writable) {
  const auto found = names_.find(name);
  if (found == names_.end()) return -1;
  open_[next_] = {found->second, writable, false, false};
  return next_++;
}

void FileSystem::close(int descriptor) noexcept {
  unlock(descriptor);
  open_.erase(descriptor);
}

File& FileSystem::at(int descriptor) {
  const auto found = open_.find(descriptor);
  SP3_CHECK(found != open_.end());
  return *found->second.file;
}

bool FileSystem::is_writable(int descriptor) { return open_.at(descriptor).writable; }

bool FileSystem::lock(int descriptor, bool exclusive) {
  Open& open = open_.at(descriptor);
  File& file = *open.file;
  if (file.exclusive != 0 || (exclusive && file.shared != 0)) return false;
  ++(exclusive ? file.exclusive : file.shared);
  open.locked = true;
  open.exclusive = exclusive;
  return true;
}

void FileSystem::unlock(int descriptor) noexcept {
  const auto found = open_.find(descriptor);
  if (found == open_.end() || !found->second.locked) return;
  Open& open = found->second;
  --(open.exclusive ? open.file->exclusive : open.file->shared);
  open.locked = false;
}

void FileSystem::resize(int descriptor, std::uint64_t bytes) {
  change(FileChange::resize, machine_.costs().file_write);
  at(descriptor).media.resize(bytes, machine_.tracks_media());
}

void FileSystem::sync(int descriptor) {
  Media& media = at(descriptor).media;
  const std::uint64_t begun = media.begin_sync();
  machine_.event(Event::fence, 1, machine_.costs().file_sync);
  media.end_sync(begun);
}

void FileSystem::give_name(int descriptor, const std::string& name) {
  change(FileChange::name, machine_.costs().file_write);
  names_[name] = open_.at(descriptor).file;
}

void FileSystem::sync_directory() {
  change(FileChange::sync_directory, machine_.costs().file_sync);
}

void FileSystem::remove(const std::string& name) noexcept {
  change(FileChange::remove, machine_.costs().file_write);
  names_.erase(name);
}

void FileSystem::remove_name_of(int descriptor) noexcept {
  change(FileChange::remove, machine_.costs().file_write);
  const File* const file = open_.at(descriptor).file.get();
  std::erase_if(names_, [&](const auto& named) { return named.second.get() == file; });
}

File* FileSystem::find(const std::string& name) {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second.get();
}

File& FileSystem::put(const std::string& name) {
  std::shared_ptr<File>& file = names_[name];
  if (!file) file = std::make_shared<File>();
  return *file;
}

}  // namespace sp3::emu::sim

#include "tools/file_system_of.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <mntent.h>

namespace sp3::tools {

std::string file_system_of(const std::filesystem::path& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> mounts(
      ::setmntent("/proc/self/mounts", "r"), ::endmntent);
  std::string found = "unknown";
  std::size_t longest = 0;
  while (mounts != nullptr) {
    const mntent* const mount = ::getmntent(mounts.get());
    if (mount == nullptr) break;
    const std::filesystem::path root = mount->mnt_dir;
    const auto [left, rest] = std::ranges::mismatch(root, path);
    const std::string& name = root.native();
    // Of two on the same directory the later one is seen.
    if (left != root.end() || name.size() < longest) continue;
    longest = name.size();
    found = fmt::format("{} on {}", mount->mnt_type, mount->mnt_fsname);
  }
  return found;
}

}  // namespace sp3::tools

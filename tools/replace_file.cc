// Not workloads::ScratchFile, whose descriptor is the simulated machine's in sp3-sim.
#include "tools/replace_file.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/same_file.h"
#include "workloads/pool_remover.h"
#include "workloads/unused_path.h"

namespace sp3::tools {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// The name under which `file` is written until it is whole.
std::filesystem::path name_beside(std::filesystem::path file) {
  return file += "." + workloads::unforeseen_digits();
}

// Whether there can be a file beside it, of a longer name.
bool has_place_beside(const std::filesystem::path& file) {
  const std::filesystem::path fresh = name_beside(file);
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  return fresh.filename().native().size() <= NAME_MAX && fresh.native().size() < PATH_MAX &&
         ::access(directory.c_str(), W_OK | X_OK) == 0;
}

bool is_what_we_print_to(const struct stat& file) {
  return std::ranges::any_of(
      std::initializer_list<int>{STDOUT_FILENO, STDERR_FILENO}, [&](int descriptor) {
        struct stat ours {};
        return ::fstat(descriptor, &ours) == 0 && base::is_same_file(ours, file);
      });
}

}  // namespace

void replace_file(const std::filesystem::path& file, const std::string& text,
                  const std::function<void(int descriptor)>& prepare) {
  const auto require = [&](bool done) {
    if (done) return;
    throw std::runtime_error(
        fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
  };
  const std::filesystem::path fresh = name_beside(file);
  const workloads::PoolRemover remover(fresh);
  File out(std::fopen(fresh.c_str(), "wxe"), &std::fclose);
  require(out != nullptr);
  struct stat old {};
  if (::stat(file.c_str(), &old) == 0) {
    require(::fchmod(::fileno(out.get()), old.st_mode & 07777U) == 0);
  }
  require(std::fwrite(text.data(), 1, text.size(), out.get()) == text.size());
  require(std::fflush(out.get()) == 0);
  if (prepare) prepare(::fileno(out.get()));
  require(std::fclose(out.release()) == 0);
  require(::rename(fresh.c_str(), file.c_str()) == 0);
}

std::optional<std::filesystem::path> replaceable(const std::filesystem::path& file) {
  const std::filesystem::path target = target_of(file);
  if (!has_place_beside(target)) return std::nullopt;
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return target;
  // Where a descriptor has no name any more, /proc calls it by one that leads elsewhere.
  struct stat named {};
  if (::lstat(target.c_str(), &named) != 0 || !base::is_same_file(named, found))
    return std::nullopt;
  const bool is_ours_alone =
      S_ISREG(found.st_mode) && found.st_nlink == 1 && found.st_uid == ::geteuid();
  return is_ours_alone && !is_what_we_print_to(found) ? std::optional(target) : std::nullopt;
}

std::filesystem::path target_of(std::filesystem::path file) {
  std::error_code error;
  while (std::filesystem::is_symlink(file, error)) {
    file = file.parent_path() / std::filesystem::read_symlink(file, error);
  }
  return file;
}

}  // namespace sp3::tools

// replace_file: a file's new content, whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace sp3::tools {

// Writes `text` to a file beside `file`, which then takes that name: until then, what is there
// stays as it was. `prepare` gets the new file's descriptor ahead of that. The permissions are those of
// the file that was there.
// REQUIRES: `file` is a regular file or none, but no link.
// Errors: std::runtime_error, and what `prepare` throws.
void replace_file(const std::filesystem::path& file, const std::string& text,
                  const std::function<void(int descriptor)>& prepare = {});

// The file that replace_file() may replace to write to `file`, which may be a link to it; none if
// only writing into what is there is what was meant, or possible: a device or a pipe, what this
// program prints to as well, a file of several names or of somebody else.
// REQUIRES: links do not go round.
std::optional<std::filesystem::path> replaceable(const std::filesystem::path& file);

// What the links that `file` may be lead to in the end, whether or not that is there.
// REQUIRES: they do not go round.
std::filesystem::path target_of(std::filesystem::path file);

}  // namespace sp3::tools

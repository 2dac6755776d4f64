// The typed root directory: a list of ordinary objects whose first node has a known place, slot 0
// of slab 0, so that binding a name is a transaction like any other.
#include "runtime/roots.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sp3/error.h>

#include "runtime/describe_type.h"
#include "runtime/pool_core.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

namespace {

// A list longer than this is a cycle: bytes of a damaged pool.
constexpr std::uint32_t kMostRoots = 1'000'000;

std::string_view name_of(const RootNode& node) {
  return {node.name, strnlen(node.name, RootNode::kNameBytes)};
}

void check_name(std::string_view name, const std::string& path) {
  if (!name.empty() && name.size() <= RootNode::kNameBytes - 1 &&
      name.find('\0') == std::string_view::npos) {
    return;
  }
  const std::size_t nul = name.find('\0');
  throw Error(ErrorCode::invalid_argument, "a root cannot have this name",
              {.path = path,
               .wanted = fmt::format("1 to {} bytes without NUL", RootNode::kNameBytes - 1),
               .found = nul == std::string_view::npos ? fmt::format("{} bytes", name.size())
                                                      : fmt::format("NUL as byte {}", nul)});
}

}  // namespace

void SessionCore::fail_on_cycle(std::uint64_t offset) {
  fail(ErrorCode::damaged_metadata, "the list of roots does not end", offset, "an end", "a cycle");
}

std::vector<std::string> SessionCore::root_names() {
  std::vector<std::string> names;
  const auto first = Ptr<RootNode>::from_offset(pool_->root_offset());
  for (auto at = transaction_.read(first).next; at;) {
    const RootNode& node = transaction_.read(at);
    if (names.size() == kMostRoots) fail_on_cycle(at.offset());
    names.emplace_back(name_of(node));
    at = node.next;
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t SessionCore::root(std::string_view name, const detail::TypeInfo& type) {
  check_name(name, pool_->path());
  std::uint32_t steps = 0;
  for (auto at = Ptr<RootNode>::from_offset(pool_->root_offset()); at;) {
    const RootNode& node = transaction_.read(at);
    if (++steps > kMostRoots) fail_on_cycle(at.offset());
    if (name == name_of(node)) {
      if (node.type != type.fingerprint) {
        fail(ErrorCode::wrong_type, "the root is bound to an object of another type", node.target,
             describe_type(type), fmt::format("{:#x}", node.type));
      }
      return node.target;
    }
    at = node.next;
  }
  return 0;
}

void SessionCore::set_root(std::string_view name, std::uint64_t offset,
                           const detail::TypeInfo& type) {
  check_name(name, pool_->path());
  if (offset != 0) read(offset, type);  // a root that cannot be followed is an error now, not later
  const auto first = Ptr<RootNode>::from_offset(pool_->root_offset());
  auto previous = first;
  std::uint32_t steps = 0;
  for (auto at = transaction_.read(first).next; at;) {
    const RootNode& node = transaction_.read(at);
    const Ptr<RootNode> next = node.next;
    if (++steps > kMostRoots) fail_on_cycle(at.offset());
    if (name == name_of(node)) {
      if (offset != 0) {
        RootNode& bound = transaction_.write(at);
        bound.target = offset;
        bound.type = type.fingerprint;
      } else {
        transaction_.write(previous).next = next;
        transaction_.destroy(at);
      }
      return;
    }
    previous = at;
    at = next;
  }
  if (offset == 0) return;
  const auto added = transaction_.make<RootNode>();
  RootNode& node = transaction_.write(added);
  std::memcpy(node.name, name.data(), name.size());
  node.type = type.fingerprint;
  node.target = offset;
  node.next = transaction_.read(first).next;
  transaction_.write(first).next = added;
}

}  // namespace sp3::runtime

// The typed root directory: a list of ordinary objects whose first node has a known place, slot 0
// of slab 0, so that binding a name is a transaction like any other.
#include "runtime/roots.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sp3/detail/circle_check.h>
#include <sp3/error.h>

#include "base/damage_list.h"
#include "recovery/roots.h"
#include "runtime/describe_type.h"
#include "runtime/pool_core.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

namespace {

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

pool::ObjectClass root_class() {
  return {detail::type_info<RootNode>.fingerprint, sizeof(RootNode),
          static_cast<std::uint32_t>(pool::slot_size_of(sizeof(RootNode)))};
}

void check_roots(const pool::PoolFile& file, CheckReport& report) {
  bool is_known = true;
  const auto directory = pool::SlabDirectory::load_sound(
      file.memory(), file.layout(), file.identity(), file.current_copy(),
      [&](std::uint32_t slab, const Damage& /*damage*/) { is_known = is_known && slab != 0; });
  if (!is_known) return;
  try {
    auto damage = recovery::find_damaged_roots(file, directory);
    if (damage) base::add_damage(report, std::move(*damage));
  } catch (const Error&) {
    // Its bitmap is damaged, which is told elsewhere, like a damaged record.
  }
}

// Calls visit(previous, at, node) for each node that has a name, until it returns false.
template <class F>
void SessionCore::walk_roots(F&& visit) {
  auto previous = Ptr<RootNode>::from_offset(pool_->root_offset());
  detail::CircleCheck circle;
  for (auto at = transaction_.read(previous).next; at;) {
    const RootNode& node = transaction_.read(at);
    const Ptr<RootNode> next = node.next;
    if (circle.comes_back_to(at.offset())) {
      fail(ErrorCode::damaged_metadata, "the list of roots does not end", at.offset(), "an end",
           "a cycle");
    }
    if (!visit(previous, at, node)) return;
    previous = at;
    at = next;
  }
}

std::vector<std::string> SessionCore::root_names() {
  std::vector<std::string> names;
  walk_roots([&](Ptr<RootNode>, Ptr<RootNode>, const RootNode& node) {
    names.emplace_back(name_of(node));
    return true;
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t SessionCore::root(std::string_view name, const detail::TypeInfo& type) {
  check_name(name, pool_->path());
  std::uint64_t target = 0;
  walk_roots([&](Ptr<RootNode>, Ptr<RootNode>, const RootNode& node) {
    if (name != name_of(node)) return true;
    if (node.type != type.fingerprint) {
      fail(ErrorCode::wrong_type, "the root is bound to an object of another type", node.target,
           fmt::format("{} as '{}'", describe_type(type), name), fmt::format("{:#x}", node.type));
    }
    target = node.target;
    return false;
  });
  return target;
}

void SessionCore::set_root(std::string_view name, std::uint64_t offset,
                           const detail::TypeInfo& type) {
  check_name(name, pool_->path());
  if (offset != 0) read(offset, type);  // a root that cannot be followed is an error now, not later
  bool is_bound = false;
  walk_roots([&](Ptr<RootNode> previous, Ptr<RootNode> at, const RootNode& node) {
    if (name != name_of(node)) return true;
    is_bound = true;
    if (offset != 0) {
      RootNode& bound = transaction_.write(at);
      bound.target = offset;
      bound.type = type.fingerprint;
    } else {
      const Ptr<RootNode> next = node.next;
      transaction_.write(previous).next = next;
      transaction_.destroy(at);
    }
    return false;
  });
  if (is_bound || offset == 0) return;
  const auto first = Ptr<RootNode>::from_offset(pool_->root_offset());
  const auto added = transaction_.make<RootNode>();
  RootNode& node = transaction_.write(added);
  std::memcpy(node.name, name.data(), name.size());
  node.type = type.fingerprint;
  node.target = offset;
  node.next = transaction_.read(first).next;
  transaction_.write(first).next = added;
}

}  // namespace sp3::runtime

namespace sp3::detail {

std::uint64_t tx_root(runtime::SessionCore& core, std::string_view name, const TypeInfo& type) {
  return core.operate([&] { return core.root(name, type); });
}
std::vector<std::string> tx_root_names(runtime::SessionCore& core) {
  return core.operate([&] { return core.root_names(); });
}
void tx_set_root(runtime::SessionCore& core, std::string_view name, std::uint64_t offset,
                 const TypeInfo& type) {
  core.operate([&] { core.set_root(name, offset, type); });
}

}  // namespace sp3::detail

#include "sim/objects.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "pool/slab_directory.h"
#include "runtime/roots.h"
#include "sim/structure_walk.h"

namespace sp3::sim {
namespace {

struct Live {
  std::uint64_t offset;
  std::uint64_t type;
  bool reached;
};

class Reader {
 public:
  Reader(pool::PoolFile& file, int copy)
      : file_(file),
        directory_(copy == kEitherCopy ? file.directory()
                                       : pool::SlabDirectory::load(file.memory(), file.layout(),
                                                                   file.identity(), copy)) {
    for (std::uint32_t slab = 0; slab < directory_.size(); ++slab) add_slab(slab, copy);
  }

  std::string read(StructureKind structure, State& state) {
    const Roots roots = find_roots();
    if (!fault_.empty() || roots.directory == 0) return fault_.empty() ? find_unreached() : fault_;
    const auto* directory = reach<Directory>(roots.directory);
    if (directory == nullptr) return fault_;
    state.made = true;
    state.values[kDirectory] = directory->value;
    for (std::uint32_t i = 0; i < kCells; ++i) {
      with_kind(directory->kinds[i], [&]<class T>() {
        const T* cell = reach<T>(directory->cells[i]);
        if (cell == nullptr) return;
        if (!is_whole(*cell)) fault_ = fmt::format("cell {} is not whole", i);
        state.values[i] = cell->value;
      });
      if (!fault_.empty()) return fault_;
    }
    for (std::uint32_t i = 0; i < kBoxes; ++i) {
      read_box(directory->boxes[i], i, state);
      if (!fault_.empty()) return fault_;
    }
    auto reach_one = [this]<class T>(std::uint64_t offset) { return reach<T>(offset); };
    walk::structure(reach_one, structure, roots.structure);
    return fault_.empty() ? find_unreached() : fault_;
  }

 private:
  struct Roots {
    std::uint64_t directory = 0;  // 0: there is none
    std::uint64_t structure = 0;
  };

  void read_box(std::uint64_t offset, std::uint32_t number, State& state) {
    const Box* box = reach<Box>(offset);
    const Small* content = box == nullptr ? nullptr : reach<Small>(box->content);
    if (content == nullptr) return;
    const bool whole = box->twin == ~box->value && is_whole(*content);
    if (!whole) fault_ = fmt::format("box {} is not whole", number);
    if (content->value != box->value) fault_ = fmt::format("box {} holds another's cell", number);
    state.values[kFirstBox + number] = box->value;
  }

  void add_slab(std::uint32_t slab, int copy) {
    const pool::SlabRecord& record = directory_.record(slab);
    if (record.type == 0 || record.live == 0) return;
    const pool::Layout& layout = file_.layout();
    const pool::SlabShape shape = pool::slab_shape(layout.slab_size, record.slot_size);
    const pool::Bitmap bitmap =
        copy == kEitherCopy
            ? directory_.load_either_bitmap(file_.memory(), slab, file_.current_copy())
            : directory_.load_bitmap(file_.memory(), slab, copy);
    for (std::size_t word = 0; word < bitmap.size(); ++word) {
      for (std::uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1) {
        const std::uint64_t slot = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
        live_.push_back(
            {layout.slab_offset(slab) + shape.data + slot * record.slot_size, record.type, false});
      }
    }
  }

  template <class T>
  const T* reach(std::uint64_t offset) {
    const auto found = std::find_if(live_.begin(), live_.end(),
                                    [&](const Live& live) { return live.offset == offset; });
    if (found == live_.end()) {
      fault_ = fmt::format("the object at {:#x} is not allocated", offset);
    } else if (found->type != detail::fingerprint_of<T>()) {
      fault_ = fmt::format("the object at {:#x} has another type", offset);
    } else if (found->reached) {
      fault_ = fmt::format("the object at {:#x} is owned twice", offset);
    }
    if (!fault_.empty()) return nullptr;
    found->reached = true;
    return reinterpret_cast<const T*>(file_.memory().view() + offset);
  }

  Roots find_roots() {
    Roots roots;
    if (live_.empty()) return roots;
    const pool::Layout& layout = file_.layout();
    const pool::SlabShape shape =
        pool::slab_shape(layout.slab_size,
                         static_cast<std::uint32_t>(pool::slot_size_of(sizeof(runtime::RootNode))));
    for (std::uint64_t at = layout.slab_offset(0) + shape.data; at != 0;) {
      const auto* node = reach<runtime::RootNode>(at);
      if (node == nullptr) break;
      if (kRootName == node->name) roots.directory = node->target;
      if (kStructureRoot == node->name) roots.structure = node->target;
      at = node->next.offset();
    }
    return roots;
  }

  std::string find_unreached() const {
    for (const Live& live : live_) {
      if (!live.reached) return fmt::format("the object at {:#x} is leaked", live.offset);
    }
    return {};
  }

  pool::PoolFile& file_;
  pool::SlabDirectory directory_;
  std::vector<Live> live_;
  std::string fault_;
};

}  // namespace

std::string read_state(pool::PoolFile& file, int copy, StructureKind structure, State& state) {
  return Reader(file, copy).read(structure, state);
}

}  // namespace sp3::sim

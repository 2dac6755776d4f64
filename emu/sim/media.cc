#include "emu/sim/media.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/assert.h"

namespace sp3::emu::sim {
namespace {

constexpr std::uint32_t kLine = 64;
constexpr std::uint32_t kSector = 512;
// Of a group with more pieces, only the last so many are kept and lost independently; in a sector,
// all those of a line up to one of the last so many.
constexpr std::uint32_t kMostFree = 16;
constexpr std::uint32_t kMostFreeOfLine = 15;
constexpr std::uint32_t kLinesOfSector = kSector / kLine;
using LineCounts = std::array<std::uint32_t, kLinesOfSector>;
// Of more non-temporal stores before a group, only the first so many may be missing.
constexpr std::uint32_t kMostStreamed = 8;

std::uint64_t merge(std::uint64_t old, std::uint64_t value, std::uint64_t mask) noexcept {
  return (old & ~mask) | (value & mask);
}

void apply(std::byte* unit, std::uint16_t word, std::uint64_t value, std::uint64_t mask) noexcept {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, unit + std::size_t{word} * 8, 8);
  bytes = merge(bytes, value, mask);
  std::memcpy(unit + std::size_t{word} * 8, &bytes, 8);
}

}  // namespace

// Tells whom a follower has followed; an address may be another Media's by now.
Media::Media() {
  static std::uint64_t made = 0;
  identity_ = ++made;
}

void Media::resize(std::uint64_t bytes, bool tracked) {
  SP3_CHECK(bytes % kSector == 0 && size_ == 0);
  size_ = bytes;
  if (!tracked) {
    untracked_.reset(static_cast<std::byte*>(std::calloc(bytes, 1)));  // zero pages, until written
    if (!untracked_) throw std::bad_alloc();
    return;
  }
  now_.resize(bytes);
  media_.resize(bytes);
  use_as(medium_);
}

void Media::use_as(Medium medium) {
  for (const Unit& unit : units_) SP3_CHECK(unit.pieces.empty());
  medium_ = medium;
  if (untracked_) return;
  unit_ = medium == Medium::lines ? kLine : kSector;
  const std::size_t count = now_.size() / unit_;
  units_.assign(count, {});
  unit_hash_.assign(count, {});
  is_changed_.assign(count, false);
  is_different_.assign(count, false);
  pending_units_.clear();
  lost_units_.clear();
  changed_.clear();
  differs_.clear();
  hash_ = {};
  for (std::uint32_t unit = 0; unit < count; ++unit) {
    unit_hash_[unit] = hash_of(unit, at(media_, unit));
    hash_ = hash_ ^ unit_hash_[unit];
    note_change(unit);
  }
  followed_ = 0;
}

Hash128 Media::hash_of(std::uint32_t unit, const std::byte* bytes) const noexcept {
  return hash_bytes(unit, bytes, unit_);
}

Media::CoreState& Media::core_state(Core core) {
  if (core >= cores_.size()) cores_.resize(core + 1);
  return cores_[core];
}

void Media::note_change(std::uint32_t unit) {
  if (!is_changed_[unit]) {
    is_changed_[unit] = true;
    changed_.push_back(unit);
  }
  differ(unit);
}

void Media::differ(std::uint32_t unit) {
  if (is_different_[unit]) return;
  is_different_[unit] = true;
  differs_.push_back(unit);
}

void Media::list(std::uint32_t unit) {
  if (units_[unit].listed) return;
  units_[unit].listed = true;
  pending_units_.push_back(unit);
}

// A store that changes nothing can make no difference later: its word has that value already, once
// all before it is there, and a later piece of its group does not rest on it. But one past the
// cache writes back what the cache holds of its line, so its fence makes that durable as well; and
// what is still in a core's buffers may not be there in time for another's flush.
inline void Media::store_word(Core core, std::uint64_t word, std::uint64_t value,
                              std::uint64_t mask, Way way) {
  std::uint64_t before = 0;
  std::memcpy(&before, now_.data() + word * 8, 8);
  const std::uint64_t after = merge(before, value, mask);
  const auto number = static_cast<std::uint32_t>(word * 8 / unit_);
  const auto place = static_cast<std::uint16_t>(word - std::uint64_t{number} * (unit_ / 8));
  Unit& unit = units_[number];
  const bool non_temporal = way == Way::non_temporal;
  if (after == before && !(non_temporal && !unit.pieces.empty()) && !is_streamed(unit, place)) {
    return;
  }
  std::memcpy(now_.data() + word * 8, &after, 8);
  CoreState& state = core_state(core);
  if (!continues_group(unit, core, state.fences, way)) {
    ++unit.groups;
    unit.group_closed = false;
    unit.group_epoch = state.fences;
  }
  unit.pieces.push_back({sequence_++, value, mask, unit.groups, place,
                         static_cast<std::uint16_t>(core), non_temporal, way == Way::direct});
  if (non_temporal && (state.streamed.empty() || state.streamed.back() != number)) {
    state.streamed.push_back(number);
  }
  list(number);
  differ(number);
  ++version_;
}

bool Media::is_streamed(const Unit& unit, std::uint16_t word) const {
  return medium_ == Medium::lines &&
         std::any_of(unit.pieces.begin(), unit.pieces.end(),
                     [&](const Piece& p) { return p.non_temporal && p.word == word; });
}

// To the mapping of a file: whoever stores, and whenever.
bool Media::continues_group(const Unit& unit, Core core, std::uint64_t fences, Way way) const {
  if (unit.pieces.empty()) return false;
  const Piece& last = unit.pieces.back();
  if (medium_ == Medium::sectors && way != Way::direct) return !last.direct;
  return !unit.group_closed && last.core == core && unit.group_epoch == fences;
}

void Media::store(Core core, std::uint64_t offset, const void* from, std::size_t bytes,
                  bool non_temporal) {
  store_bytes(core, offset, from, bytes, non_temporal ? Way::non_temporal : Way::cached);
}

void Media::write_sectors(Core core, std::uint64_t offset, const void* from, std::size_t bytes) {
  SP3_CHECK(medium_ == Medium::sectors && offset % kSector == 0 && bytes % kSector == 0);
  if (!untracked_) ++core_state(core).fences;  // a group of its own
  store_bytes(core, offset, from, bytes, Way::direct);
}

void Media::store_bytes(Core core, std::uint64_t offset, const void* from, std::size_t bytes,
                        Way way) {
  SP3_CHECK(offset <= size_ && bytes <= size_ - offset);
  if (untracked_) {
    std::memcpy(untracked_.get() + offset, from, bytes);
    return;
  }
  if (medium_ == Medium::sectors) {
    for (std::uint64_t at = offset / unit_; !lost_units_.empty() && at * unit_ < offset + bytes;
         ++at) {
      store_again(core, static_cast<std::uint32_t>(at), way);
    }
  }
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const std::uint64_t in_word = offset % 8;
    const std::size_t part = std::min<std::size_t>(8 - in_word, bytes);
    std::uint64_t value = 0;
    std::uint64_t mask = ~std::uint64_t{0};
    if (part == 8) {  // nearly always: worth being fast
      std::memcpy(&value, source, 8);
    } else {
      std::memcpy(reinterpret_cast<std::byte*>(&value) + in_word, source, part);
      mask = ((std::uint64_t{1} << part * 8) - 1) << in_word * 8;
    }
    store_word(core, offset / 8, value, mask, way);
    offset += part;
    source += part;
    bytes -= part;
  }
}

void Media::fill_zero(Core core, std::uint64_t offset, std::size_t bytes) {
  const std::vector<std::byte> zeros(bytes);
  store(core, offset, zeros.data(), bytes, false);
}

// A lost sector is to be written once more: all of what loads find there.
void Media::store_again(Core core, std::uint32_t number, Way way) {
  Unit& unit = units_[number];
  if (!unit.lost) return;
  unit.lost = false;
  std::erase(lost_units_, number);
  ++unit.groups;
  unit.group_closed = false;
  unit.group_epoch = core_state(core).fences;
  for (std::uint32_t word = 0; word < unit_ / 8; ++word) {
    std::uint64_t value = 0;
    std::uint64_t before = 0;
    std::memcpy(&value, at(now_, number) + std::size_t{word} * 8, 8);
    std::memcpy(&before, at(media_, number) + std::size_t{word} * 8, 8);
    if (value == before) continue;
    unit.pieces.push_back({sequence_++, value, ~std::uint64_t{0}, unit.groups,
                           static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(core),
                           false, way == Way::direct});
  }
  list(number);
  ++version_;
}

void Media::flush(Core core, std::uint64_t offset, std::size_t bytes, bool at_once) {
  if (bytes == 0 || medium_ != Medium::lines || untracked_) return;
  const auto last = static_cast<std::uint32_t>((offset + bytes - 1) / unit_);
  for (auto unit = static_cast<std::uint32_t>(offset / unit_); unit <= last; ++unit) {
    if (units_[unit].pieces.empty()) continue;
    units_[unit].group_closed = true;
    if (at_once) {
      retire(unit, sequence_);
    } else {
      core_state(core).flushed.push_back({unit, sequence_});
    }
  }
}

void Media::fence(Core core) {
  if (untracked_) return;
  CoreState& state = core_state(core);
  ++state.fences;
  for (const std::uint32_t unit : state.streamed) {
    std::uint64_t upto = 0;
    for (Piece& piece : units_[unit].pieces) {
      if (!piece.non_temporal || piece.core != core) continue;
      upto = piece.sequence + 1;
      piece.non_temporal = false;
    }
    if (upto != 0) retire(unit, upto);
  }
  state.streamed.clear();
  for (const Flushed& flushed : state.flushed) retire(flushed.unit, flushed.upto);
  state.flushed.clear();
}

void Media::end_sync(std::uint64_t begun) {
  const std::vector<std::uint32_t> units = pending_units_;
  for (const std::uint32_t unit : units) retire(unit, begun);
}

void Media::end_write(std::uint64_t offset, std::size_t bytes, std::uint64_t begun) {
  if (untracked_) return;
  const std::uint64_t end = (offset + bytes) / unit_;
  for (std::uint64_t unit = offset / unit_; unit < end; ++unit) {
    retire(static_cast<std::uint32_t>(unit), begun);
  }
}

void Media::fail_sync(std::uint64_t begun, Random& choose) {
  const std::vector<std::uint32_t> units = pending_units_;
  for (const std::uint32_t number : units) {
    Unit& unit = units_[number];
    if (unit.pieces.empty()) continue;
    const std::uint64_t fate = choose.below(3);
    if (fate == 0) retire(number, begun);
    // What was stored to since the sync began is to be written again as a whole.
    if (fate != 1 || unit.pieces.back().sequence >= begun) continue;
    unit.pieces.clear();
    unit.lost = true;
    lost_units_.push_back(number);
  }
  ++version_;
}

// Media catches up with the unit's pieces before `upto`, but for non-temporal stores that are still
// in their core's buffers. Of those stays what no later store has replaced: loads find that one.
void Media::retire(std::uint32_t number, std::uint64_t upto) {
  std::vector<Piece>& pieces = units_[number].pieces;
  std::array<std::byte, kSector> bytes{};
  std::memcpy(bytes.data(), at(media_, number), unit_);
  std::size_t kept = 0;
  std::size_t seen = 0;
  for (; seen < pieces.size() && pieces[seen].sequence < upto; ++seen) {
    const Piece& piece = pieces[seen];
    if (piece.non_temporal) {
      pieces[kept++] = piece;
      continue;
    }
    apply(bytes.data(), piece.word, piece.value, piece.mask);
    for (std::size_t i = 0; i < kept; ++i) {
      if (pieces[i].word == piece.word) pieces[i].mask &= ~piece.mask;
    }
  }
  if (kept == seen) return;
  pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(kept),
               pieces.begin() + static_cast<std::ptrdiff_t>(seen));
  set_certain(number, bytes.data());
  ++version_;
}

void Media::set_certain(std::uint32_t unit, const std::byte* bytes) {
  std::memcpy(at(media_, unit), bytes, unit_);
  const Hash128 hash = hash_of(unit, bytes);
  hash_ = hash_ ^ unit_hash_[unit] ^ hash;
  unit_hash_[unit] = hash;
  note_change(unit);
}

void Media::rot(std::uint64_t offset, const std::byte* bytes, std::size_t count) {
  SP3_CHECK(offset <= size_ && count <= size_ - offset && count != 0 && !untracked_);
  std::memcpy(now_.data() + offset, bytes, count);
  const auto last = static_cast<std::uint32_t>((offset + count - 1) / unit_);
  for (auto unit = static_cast<std::uint32_t>(offset / unit_); unit <= last; ++unit) {
    SP3_CHECK(units_[unit].pieces.empty());
    std::array<std::byte, kSector> whole{};
    std::memcpy(whole.data(), at(now_, unit), unit_);
    set_certain(unit, whole.data());
  }
  ++version_;
}

namespace {

// How many pieces each line of the sector has.
template <class Piece>
LineCounts count_by_line(const Piece* begin, const Piece* end) {
  LineCounts counts{};
  for (; begin != end; ++begin) ++counts[begin->word / (kLine / 8)];
  return counts;
}

// A line's digit in the number of a subset. None, and all, are a quarter of its values each.
std::uint64_t digits_of(std::uint32_t pieces) { return 2 * std::min(pieces, kMostFreeOfLine) + 1; }
std::uint32_t pieces_by_digit(std::uint32_t pieces, std::uint64_t digit) {
  const std::uint32_t most = std::min(pieces, kMostFreeOfLine);
  if (digit <= most / 2) return 0;
  return pieces - most + std::min(static_cast<std::uint32_t>(digit) - most / 2, most);
}

}  // namespace

// How many subsets of the group there are, but the empty one.
std::uint64_t Media::count_subsets(const std::vector<Piece>& pieces, const Group& group) const {
  const std::size_t count = group.end - group.begin;
  if (pieces[group.begin].direct) return 1;
  if (medium_ == Medium::lines || count <= kMostFree) {
    return (std::uint64_t{1} << std::min<std::size_t>(count, kMostFree)) - 1;
  }
  std::uint64_t subsets = 1;
  for (const std::uint32_t n :
       count_by_line(pieces.data() + group.begin, pieces.data() + group.end)) {
    subsets *= digits_of(n);
  }
  return subsets - 1;
}

// The group behind `group`. It adds its subsets but the empty one, each with any subset of what was
// streamed before it; all else before it is there.
bool Media::next_group(const std::vector<Piece>& pieces, Group& group) const {
  for (; group.begin < group.end; ++group.begin) {
    if (pieces[group.begin].non_temporal && group.streamed < kMostStreamed) ++group.streamed;
  }
  if (group.begin == pieces.size()) return false;
  while (group.end < pieces.size() && pieces[group.end].group == pieces[group.begin].group) {
    ++group.end;
  }
  group.contents = count_subsets(pieces, group) << group.streamed;
  return true;
}

std::vector<Media::Pending> Media::pending() {
  std::erase_if(pending_units_, [this](std::uint32_t unit) {
    units_[unit].listed = !units_[unit].pieces.empty();
    return !units_[unit].listed;
  });
  std::vector<Pending> result;
  for (const std::uint32_t number : pending_units_) {
    const std::vector<Piece>& pieces = units_[number].pieces;
    Pending pending{number, 1};
    for (Group group; next_group(pieces, group);) pending.contents += group.contents;
    result.push_back(pending);
  }
  return result;
}

// A content's number counts on through the groups. In the one where it ends: which of the streamed
// pieces before are there, then which of its own.
void Media::content_of(std::uint32_t number, std::uint64_t content, std::byte* to) const {
  std::memcpy(to, at(media_, number), unit_);
  if (content == 0) return;
  const std::vector<Piece>& pieces = units_[number].pieces;
  Group last;
  while (next_group(pieces, last) && content > last.contents) content -= last.contents;
  std::uint64_t there = (content - 1) % (std::uint64_t{1} << last.streamed);
  std::uint32_t streamed = 0;
  for (std::size_t i = 0; i < last.begin; ++i) {
    if (pieces[i].non_temporal && streamed++ < last.streamed) {
      const bool kept = (there & 1) != 0;
      there >>= 1;
      if (!kept) continue;
    }
    apply(to, pieces[i].word, pieces[i].value, pieces[i].mask);
  }
  apply_some(pieces, last, ((content - 1) >> last.streamed) + 1, to);
}

// Of a group, subset number `which`, from 1.
void Media::apply_some(const std::vector<Piece>& pieces, const Group& group, std::uint64_t which,
                       std::byte* to) const {
  const std::size_t count = group.end - group.begin;
  const bool whole = pieces[group.begin].direct;
  const bool by_line = !whole && medium_ == Medium::sectors && count > kMostFree;
  LineCounts left{};
  if (by_line) {
    left = count_by_line(pieces.data() + group.begin, pieces.data() + group.end);
    for (std::uint32_t& n : left) {
      const std::uint64_t digits = digits_of(n);
      n = pieces_by_digit(n, which % digits);
      which /= digits;
    }
  }
  const std::size_t fixed = count > kMostFree ? count - kMostFree : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Piece& piece = pieces[group.begin + i];
    bool kept = whole;
    if (by_line) {
      std::uint32_t& n = left[piece.word / (kLine / 8)];
      kept = n > 0;
      if (kept) --n;
    } else if (!whole) {
      kept = i < fixed || (which >> (i - fixed) & 1) != 0;
    }
    if (kept) apply(to, piece.word, piece.value, piece.mask);
  }
}

void Media::copy_unit(const Media& base, std::uint32_t unit) {
  units_[unit].pieces.clear();
  units_[unit].group_closed = true;
  units_[unit].lost = false;
  std::memcpy(at(now_, unit), base.at(base.media_, unit), unit_);
  std::memcpy(at(media_, unit), base.at(base.media_, unit), unit_);
  hash_ = hash_ ^ unit_hash_[unit] ^ base.unit_hash_[unit];
  unit_hash_[unit] = base.unit_hash_[unit];
  if (!is_changed_[unit]) {
    is_changed_[unit] = true;
    changed_.push_back(unit);
  }
}

// Makes everything equal to certain() of the base.
void Media::return_to(Media& base) {
  if (followed_ != base.identity_ || medium_ != base.medium_ || size() != base.size()) {
    copy_all(base);
    followed_ = base.identity_;
  } else {
    for (const std::uint32_t unit : differs_) copy_unit(base, unit);
    for (const std::uint32_t unit : base.changed_) copy_unit(base, unit);
  }
  for (const std::uint32_t unit : differs_) is_different_[unit] = false;
  differs_.clear();
  for (const std::uint32_t unit : base.changed_) base.is_changed_[unit] = false;
  base.changed_.clear();
  for (const std::uint32_t unit : pending_units_) units_[unit].listed = false;
  pending_units_.clear();
  lost_units_.clear();
  for (CoreState& core : cores_) {
    core.flushed.clear();
    core.streamed.clear();
  }
  ++version_;
}

void Media::copy_all(const Media& base) {
  size_ = base.size_;
  now_ = base.media_;
  media_ = base.media_;
  for (Unit& unit : units_) unit.pieces.clear();
  use_as(base.medium_);
}

void Media::follow(Media& base, const std::vector<Choice>& choices) {
  return_to(base);
  choose(base, choices);
}

void Media::copy(const Media& base, const std::vector<Choice>& choices) {
  copy_all(base);
  choose(base, choices);
}

void Media::choose(const Media& base, const std::vector<Choice>& choices) {
  std::array<std::byte, kSector> bytes{};
  for (const Choice& choice : choices) {
    base.content_of(choice.unit, choice.content, bytes.data());
    std::memcpy(at(now_, choice.unit), bytes.data(), unit_);
    set_certain(choice.unit, bytes.data());
  }
}

void Media::follow_killed(Media& base) {
  return_to(base);
  take_caches(base);
}

void Media::copy_killed(Media& base) {
  copy_all(base);
  take_caches(base);
}

void Media::take_caches(const Media& base) {
  for (const std::uint32_t number : base.pending_units_) {
    const std::vector<Piece>& pieces = base.units_[number].pieces;
    if (pieces.empty()) continue;
    Unit& unit = units_[number];
    unit.pieces = pieces;
    for (Piece& piece : unit.pieces) piece.non_temporal = false;
    unit.groups = base.units_[number].groups;
    list(number);
    differ(number);
    std::memcpy(at(now_, number), base.at(base.now_, number), unit_);
    sequence_ = std::max(sequence_, unit.pieces.back().sequence + 1);
  }
  for (const std::uint32_t number : base.lost_units_) {
    std::memcpy(at(now_, number), base.at(base.now_, number), unit_);
    units_[number].lost = true;
    lost_units_.push_back(number);
    differ(number);
  }
}

}  // namespace sp3::emu::sim

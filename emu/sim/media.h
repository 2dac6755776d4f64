// Media: the bytes of one simulated file, and what of them a power loss could leave.
//
// Three things are kept for each unit (64-byte cache line, or 512-byte disk sector):
//   now      what a load finds: every store so far
//   media    what has certainly reached the media
//   pending  the stores between the two, in order, as pieces of aligned 8-byte words
//
// Pieces are grouped: inside a group any subset may have reached the media, but a group only on top
// of all before it. A group ends where the storing core's order to the media does: at a flush of
// the line, at a fence of the core, and when another core stores. (A line is written back whole,
// with whatever has reached the cache, and stores reach the cache in program order; the compiler
// may reorder them between two such points.) A non-temporal store that its core has not fenced is
// in no cache: it reaches the media on top of all before it, but may be missing whatever comes
// after.
//
// In files a disk writes each sector whole or not at all. What is written past the page cache is a
// group, and of it each sector is one piece. But a page of the mapping is read by the disk, at any
// moment, while words are stored to it: what is written of a sector may have any of them, so all
// stores are one group, and a sector knows no order between calls. Of many only so much is tried:
// of each line that the sector holds, what was stored up to some point.
//
// Retiring. A flush notes how far each of its lines has come; the next fence of the same core makes
// media catch up to that point. Non-temporal stores wait in their core's buffers: its fence retires
// them without a flush, and flushes of other cores do not reach them, only what lies around them.
//
// Runs that only measure time need none of this: without tracking a Media is its bytes, and pages
// nobody stored to take no memory.
//
// Copies. follow() makes a copy equal to what a crash leaves of another Media, in time proportional
// to the difference, so that a quarter of a megabyte is not copied for each crash image.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "emu/sim/hash128.h"
#include "emu/sim/random.h"

namespace sp3::emu::sim {

enum class Medium : std::uint8_t { lines, sectors };

class Media {
 public:
  using Core = std::uint32_t;

  Media();
  Media(const Media&) = delete;
  Media& operator=(const Media&) = delete;

  // All zero. Must be done before anything else. REQUIRES: bytes is a multiple of 512. Without
  // `tracked` only now() may be asked for afterwards.
  void resize(std::uint64_t bytes, bool tracked = true);
  // What the units are. REQUIRES: nothing is pending.
  void use_as(Medium medium);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] Medium medium() const noexcept { return medium_; }
  [[nodiscard]] const std::byte* now() const noexcept {
    return untracked_ ? untracked_.get() : now_.data();
  }
  [[nodiscard]] const std::byte* certain() const noexcept { return media_.data(); }

  void store(Core core, std::uint64_t offset, const void* from, std::size_t bytes,
             bool non_temporal);
  // Sectors, past the page cache. REQUIRES: whole ones, from memory that nobody changes meanwhile.
  void write_sectors(Core core, std::uint64_t offset, const void* from, std::size_t bytes);
  // Sectors: what was written of these before `begun` is certain, as after a write with O_DSYNC.
  void end_write(std::uint64_t offset, std::size_t bytes, std::uint64_t begun);
  void fill_zero(Core core, std::uint64_t offset, std::size_t bytes);
  // Lines: takes effect at the core's next fence; `at_once`: now (clflush is ordered by itself).
  void flush(Core core, std::uint64_t offset, std::size_t bytes, bool at_once);
  void fence(Core core);
  // Sectors: a sync covers what was stored before it began.
  [[nodiscard]] std::uint64_t begin_sync() const noexcept { return sequence_; }
  void end_sync(std::uint64_t begun);
  // A sync that failed: of each sector that it should have written, by chance, the media has it, or
  // it is still to be written, or it is lost: loads find it in the cache, and nobody will write it
  // unless it is stored to again (so Linux treats a page whose writing failed).
  void fail_sync(std::uint64_t begun, Random& choose);

  // Bit rot: the media has other bytes than were ever stored. REQUIRES: nothing is pending.
  void rot(std::uint64_t offset, const std::byte* bytes, std::size_t count);

  // What is pending changes this number.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  [[nodiscard]] Hash128 hash() const noexcept { return hash_; }  // of certain()

  // A pending unit's possible contents: 0 is "nothing more", contents() - 1 "everything".
  struct Pending {
    std::uint32_t unit = 0;
    std::uint64_t contents = 1;  // how many there are
  };
  [[nodiscard]] std::vector<Pending> pending();
  // Content number `content` of a pending unit, into `to` (one unit long).
  void content_of(std::uint32_t unit, std::uint64_t content, std::byte* to) const;
  [[nodiscard]] Hash128 hash_of(std::uint32_t unit, const std::byte* bytes) const noexcept;
  [[nodiscard]] Hash128 certain_hash_of(std::uint32_t unit) const noexcept {
    return unit_hash_[unit];
  }
  [[nodiscard]] std::uint32_t unit_bytes() const noexcept { return unit_; }

  // What a power loss left: certain() of `base`, but for some units another content.
  struct Choice {
    std::uint32_t unit;
    std::uint64_t content;
  };
  // One Media at a time follows another; copy() may be used besides.
  void follow(Media& base, const std::vector<Choice>& choices);
  void copy(const Media& base, const std::vector<Choice>& choices);
  // What the death of a process left: now() of `base`, none of it certain that is not in `base`.
  void follow_killed(Media& base);
  void copy_killed(Media& base);

 private:
  struct Piece {
    std::uint64_t sequence;  // of all stores, one after the other
    std::uint64_t value;     // of the word; its bytes outside mask are another's
    std::uint64_t mask;
    std::uint32_t group;
    std::uint16_t word;  // in the unit
    std::uint16_t core;
    bool non_temporal;  // and not fenced
    bool direct;        // written past the page cache
  };
  enum class Way : std::uint8_t { cached, non_temporal, direct };
  // Pieces [begin, end) of a unit, and how many contents they add to those before them.
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint32_t streamed = 0;  // pieces before them that may be missing, as far as they count
    std::uint64_t contents = 0;
  };
  struct Unit {
    std::vector<Piece> pieces;
    std::uint32_t groups = 0;  // numbered from 1
    bool group_closed = true;
    std::uint64_t group_epoch = 0;  // of the core, when the group was begun
    bool listed = false;            // in pending_units_
    bool lost = false;              // in lost_units_
  };
  struct Flushed {
    std::uint32_t unit;
    std::uint64_t upto;  // pieces with a smaller sequence
  };
  struct CoreState {
    std::uint64_t fences = 0;
    std::vector<Flushed> flushed;
    std::vector<std::uint32_t> streamed;  // units with non-temporal stores of this core
  };

  CoreState& core_state(Core core);
  void store_bytes(Core core, std::uint64_t offset, const void* from, std::size_t bytes, Way way);
  void store_word(Core core, std::uint64_t word, std::uint64_t value, std::uint64_t mask, Way way);
  [[nodiscard]] bool continues_group(const Unit& unit, Core core, std::uint64_t fences,
                                     Way way) const;
  void retire(std::uint32_t unit, std::uint64_t upto);
  [[nodiscard]] bool is_streamed(const Unit& unit, std::uint16_t word) const;
  [[nodiscard]] bool next_group(const std::vector<Piece>& pieces, Group& group) const;
  [[nodiscard]] std::uint64_t count_subsets(const std::vector<Piece>& pieces,
                                            const Group& group) const;
  void apply_some(const std::vector<Piece>& pieces, const Group& group, std::uint64_t which,
                  std::byte* to) const;
  void set_certain(std::uint32_t unit, const std::byte* bytes);
  void copy_unit(const Media& base, std::uint32_t unit);
  void note_change(std::uint32_t unit);
  void return_to(Media& base);
  void copy_all(const Media& base);
  void choose(const Media& base, const std::vector<Choice>& choices);
  void take_caches(const Media& base);
  void list(std::uint32_t unit);
  void differ(std::uint32_t unit);
  void store_again(Core core, std::uint32_t unit, Way way);
  [[nodiscard]] std::byte* at(std::vector<std::byte>& bytes, std::uint32_t unit) noexcept {
    return bytes.data() + std::uint64_t{unit} * unit_;
  }
  [[nodiscard]] const std::byte* at(const std::vector<std::byte>& bytes,
                                    std::uint32_t unit) const noexcept {
    return bytes.data() + std::uint64_t{unit} * unit_;
  }

  struct Free {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };

  Medium medium_ = Medium::lines;
  std::uint32_t unit_ = 64;
  std::uint64_t size_ = 0;
  std::unique_ptr<std::byte[], Free> untracked_;
  std::vector<std::byte> now_;
  std::vector<std::byte> media_;
  std::vector<Unit> units_;
  std::vector<std::uint32_t> pending_units_;  // those with pieces, and perhaps some without
  std::vector<std::uint32_t> lost_units_;     // now differs from media, and nothing is pending
  std::vector<CoreState> cores_;
  std::uint64_t sequence_ = 1;
  std::uint64_t version_ = 1;
  std::vector<Hash128> unit_hash_;
  Hash128 hash_;

  // For followers. A unit is in changed_ if media_ may differ from what the follower last saw.
  std::vector<std::uint32_t> changed_;
  std::vector<bool> is_changed_;
  // As a follower: units that may differ from certain() of the base.
  std::vector<std::uint32_t> differs_;
  std::vector<bool> is_different_;
  std::uint64_t followed_ = 0;  // identity_ of the base; 0: none
  std::uint64_t identity_;
};

}  // namespace sp3::emu::sim

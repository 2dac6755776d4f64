// HashTable: how a full bucket makes room, and how a table is taken apart. Included by
// hash_table.h.
//
// A full bucket is split in two by the next bit of its keys' hashes. The cells that named it lie
// side by side; those of one half are pointed at a new bucket, to which the smaller part of the keys
// goes, perhaps none: else a long chain would be made anew at each of the bits in which its keys
// agree. Where only one cell of a small directory names the bucket, a large one takes that one's
// place first; in a large one the bucket gets a directory of its own, one level down, whose cells
// all name it. So growth touches one bucket, one directory, or the cell that names it, and never
// more than that in one step.
//
// Splitting cannot separate keys of the same hash. A chain in which all hashes are equal, the new
// key's included, grows by an overflow bucket instead; as soon as another hash arrives while it is
// full, the chain is split like any bucket.
#pragma once

#include <sp3/containers/hash_table.h>

namespace sp3 {

// Splits the bucket for `hash`, or lengthens its chain. The caller looks again: a split may leave
// all keys on one side.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
void HashTable<K, V, Hash>::make_room(Transaction& tx, std::uint64_t hash) const {
  const Place place = locate(tx, hash);
  std::vector<Resident> residents;
  bool separable = false;
  Ptr<Bucket> last = place.bucket;
  detail::CircleCheck circle;
  for (Ptr<Bucket> at = place.bucket; at; at = detail::next_in_list(tx, circle, tx.read(at).next)) {
    last = at;
    for (const std::uint64_t slot : tx.read(at).slots) {
      if (slot == 0) continue;
      residents.push_back({slot, Hash{}(tx.read(unpack(slot)).key)});
      // The lowest bit is beyond the deepest directory.
      separable = separable || (residents.back().hash ^ hash) >> (64 - max_depth) != 0;
    }
  }
  if (separable) {
    split(tx, place, residents, hash);
  } else {
    const Ptr<Bucket> overflow = tx.make<Bucket>();
    tx.write(overflow).depth = tx.read(place.bucket).depth;
    tx.write(last).next = overflow;
  }
}

template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
void HashTable<K, V, Hash>::split(Transaction& tx, Place place,
                                  const std::vector<Resident>& residents,
                                  std::uint64_t hash) const {
  const std::uint64_t depth = tx.read(place.bucket).depth;
  if (depth < place.level.begin || depth > place.level.end() || depth >= max_depth) [[unlikely]]
    detail::damaged(tx, place.bucket,
                    "a bucket of a hash table has a depth that is not its place's",
                    "one of the directory's", depth);
  if (depth == place.level.end()) {
    place.level =
        place.level.is_small() ? make_large(tx, place.level, hash) : make_directory(tx, place);
    place.cell = place.level.cell_of(hash);
  }
  std::array<std::vector<std::uint64_t>, 2> halves;
  for (const Resident& resident : residents) {
    halves[resident.hash >> (63 - depth) & 1].push_back(resident.slot);
  }
  const bool upper_stays = halves[1].size() > halves[0].size();
  const Ptr<Bucket> sibling = tx.make<Bucket>();
  refill(tx, place.bucket, depth + 1, halves[upper_stays ? 1 : 0]);
  refill(tx, sibling, depth + 1, halves[upper_stays ? 0 : 1]);

  const unsigned width = 1U << (place.level.end() - depth);
  const auto named = write_cells(tx, place.level).subspan(place.cell & ~(width - 1), width);
  if (std::ranges::count(named, place.bucket.offset()) != width) [[unlikely]]
    detail::damaged(tx, place.bucket, "a bucket of a hash table is not where its depth says",
                    "cells that all name it", width);
  std::ranges::fill(upper_stays ? named.first(width / 2) : named.last(width / 2), sibling.offset());
}

// Puts a directory whose cells all name the bucket at `place` there instead of it. One that the root
// names is never to be replaced by a larger one, since cached handles know it.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
auto HashTable<K, V, Hash>::make_directory(Transaction& tx, const Place& place) const -> Level {
  const std::uint64_t word = place.level.begin == 0
                                 ? tx.make<Directory>().offset() | directory_flag
                                 : tx.make<SmallDirectory>().offset() | directory_flag | small_flag;
  const Level below = level_below(tx, place.level, word);
  std::ranges::fill(write_cells(tx, below), place.bucket.offset());
  write_cells(tx, place.level)[place.cell] = below.word;
  return below;
}

// Puts a large directory where the small one is to which `hash` leads.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
auto HashTable<K, V, Hash>::make_large(Transaction& tx, Level small, std::uint64_t hash) const
    -> Level {
  const Level large = {tx.make<Directory>().offset() | directory_flag, small.begin};
  const auto from = read_cells(tx, small);
  const auto to = write_cells(tx, large);
  for (unsigned i = 0; i < to.size(); ++i) to[i] = from[i >> (cell_bits - small_cell_bits)];

  Level above = root_level();
  const auto below = [&] { return read_cells(tx, above)[above.cell_of(hash)]; };
  while (below() != small.word) above = level_below(tx, above, below());
  write_cells(tx, above)[above.cell_of(hash)] = large.word;
  destroy_cells(tx, small);
  return large;
}

// Makes `slots` the contents of the chain that starts at `first`, with as many buckets as it takes.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
void HashTable<K, V, Hash>::refill(Transaction& tx, Ptr<Bucket> first, std::uint64_t depth,
                                   const std::vector<std::uint64_t>& slots) const {
  std::size_t next = 0;
  for (Ptr<Bucket> at = first;; at = tx.read(at).next) {
    Bucket& bucket = tx.write(at);
    bucket.depth = depth;
    for (std::uint64_t& slot : bucket.slots) slot = next < slots.size() ? slots[next++] : 0;
    if (next == slots.size()) {
      const Ptr<Bucket> rest = bucket.next;
      bucket.next = nullptr;
      for (Ptr<Bucket> spare = rest; spare;) {
        const Ptr<Bucket> after = tx.read(spare).next;
        tx.destroy(spare);
        spare = after;
      }
      return;
    }
    if (!bucket.next) bucket.next = tx.make<Bucket>();
  }
}

// Empties the buckets below `directory`, and replaces every directory below it that is empty by one
// of its buckets: nothing is made, so a full pool can be emptied. Returns whether all is done, or
// false when the budget is spent.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
bool HashTable<K, V, Hash>::drain_directory(Transaction& tx, Level level,
                                            std::uint64_t& budget) const {
  const auto cells = read_cells(tx, level);  // as it was: only cells already passed change
  std::uint64_t previous = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::uint64_t word = cells[i];
    if (word == previous) continue;
    previous = word;
    if ((word & directory_flag) == 0) {
      if (!drain_chain(tx, Ptr<Bucket>::from_offset(word), budget)) return false;
      continue;
    }
    const Level below = level_below(tx, level, word);
    if (!drain_directory(tx, below, budget) || budget == 0) return false;
    const auto kept = Ptr<Bucket>::from_offset(read_cells(tx, below).front());
    budget -= std::min(budget, destroy_directory(tx, below, kept));
    tx.write(kept).depth = below.begin;
    write_cells(tx, level)[i] = kept.offset();
  }
  return true;
}

template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
bool HashTable<K, V, Hash>::drain_chain(Transaction& tx, Ptr<Bucket> bucket,
                                        std::uint64_t& budget) const {
  for (;;) {
    const Bucket& first = tx.read(bucket);
    if (!first.next && is_vacant(first)) return true;
    if (budget == 0) return false;
    if (!first.next) {
      budget -= std::min(budget, destroy_nodes(tx, first));
      tx.write(bucket).slots.fill(0);
      continue;
    }
    const Ptr<Bucket> overflow = first.next;
    const Bucket& contents = tx.read(overflow);
    budget -= std::min(budget, destroy_nodes(tx, contents));
    tx.write(bucket).next = contents.next;
    tx.destroy(overflow);
  }
}

// Returns how many objects it destroyed.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K> std::uint64_t HashTable<K, V, Hash>::destroy_nodes(
    Transaction& tx, const Bucket& bucket)
const {
  std::uint64_t count = 0;
  for (const std::uint64_t slot : bucket.slots) {
    if (slot == 0) continue;
    tx.destroy(unpack(slot));
    ++count;
  }
  return count;
}

// All but the bucket `kept`. Returns how many objects it destroyed.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K> std::uint64_t HashTable<K, V, Hash>::destroy_directory(
    Transaction& tx, Level level, Ptr<Bucket> kept)
const {
  std::uint64_t count = 1;
  std::uint64_t previous = 0;
  for (const std::uint64_t word : read_cells(tx, level)) {
    if (word == previous || word == kept.offset()) continue;
    previous = word;
    if ((word & directory_flag) != 0) {
      count += destroy_directory(tx, level_below(tx, level, word));
      continue;
    }
    for (Ptr<Bucket> at = Ptr<Bucket>::from_offset(word); at;) {
      const Bucket& bucket = tx.read(at);
      count += destroy_nodes(tx, bucket) + 1;
      const Ptr<Bucket> next = bucket.next;
      tx.destroy(at);
      at = next;
    }
  }
  destroy_cells(tx, level);
  return count;
}

}  // namespace sp3

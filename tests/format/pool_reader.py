"""A second reader of pools, written from docs/DATA_LAYOUT.md and docs/RECOVERY.md alone.

It shares no line with the library, so that what the two agree on is what the documents say. It reads
a pool as it is, recovers one in memory where it was not closed, and writes nothing. It is strict: what
a document calls zero, equal or in order is checked. Of damage it says where, and goes no further;
salvage is the library's.
"""

import struct
from collections import namedtuple

BLOCK = 4096
LINE = 64
CLEAN, OPEN = 1, 2
TRANSACTION, WATERMARK = 1, 2
IMAGE, DELTA, MAKE, DESTROY = 1, 2, 3, 4

Superblock = namedtuple("Superblock", "copy uuid number generation checkpoint_number floor "
                        "largest_stamp state segment_size slab_size extents heads")
Slab = namedtuple("Slab", "type type_size slot_size")
Run = namedtuple("Run", "session first_lsn begin end")
Record = namedtuple("Record", "begin end session lsn stamp kind persisted_upto writes dependencies")
Write = namedtuple("Write", "slot kind payload")
FREE = Slab(0, 0, 0)


class Damage(Exception):
    """What no crash leaves; with its offset in the file."""


def expect(holds, offset, what):
    if not holds:
        raise Damage(f"at {offset}: {what}")


def round_up(size, unit):
    return -(-size // unit) * unit


def make_crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = make_crc_table()


def crc32c(seed, data):
    crc = seed ^ 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def fingerprint(name, version, size, alignment):
    """Of a type with this TypeTag (include/sp3/type.h)."""
    data = name.encode() + struct.pack("<QQQ", version, size, alignment)
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value or 1


def slab_shape(slab_size, slot_size):
    """Slots, and bytes of one bitmap: the most slots that fit behind both bitmaps."""
    slots = slab_size // slot_size
    while 2 * round_up(-(-slots // 8), LINE) + slots * slot_size > slab_size:
        slots -= 1
    return slots, round_up(-(-slots // 8), LINE)


class Pool:
    """`objects`: bytes by Ptr, `type_size` of them each. `slabs`: what is carved, by number. `roots`:
    (type, Ptr) by name. `records`: of all sessions, those that recovery replays, in stamp order.
    `orphans`: 0 unless an acknowledged record was damaged in a way that nothing tells."""

    def __init__(self, image):
        self.image = image
        self.superblock = self._current_superblock()
        self._directory_extent, self._log, self._slabs_extent = self.superblock.extents[1:4]
        self.slabs, self.objects = self._read_slabs(self.superblock.copy)
        self.prefixes = {}  # what can be read of each session's log
        self.records = []
        self.orphans = 0  # writes to what a lost record had made or destroyed
        if self.superblock.state == OPEN:
            self._recover()
        self.roots = self._read_roots()

    # --- superblocks ---

    def _superblock_at(self, offset, copy):
        """The copy there; None if it is not valid."""
        image = self.image
        if image[offset:offset + 8] != b"S3POOL01":
            return None
        version, crc = struct.unpack_from("<II", image, offset + 8)
        compat, ro_compat, incompat, copy_bytes = struct.unpack_from("<4I", image, offset + 32)
        data = bytearray(image[offset:offset + copy_bytes])
        data[12:16] = bytes(4)
        if crc32c(0, data) != crc:
            return None
        (pool_size, number, generation, checkpoint_number, floor, largest_stamp, state, sessions,
         segment_size, slab_size) = struct.unpack_from("<6Q4I", image, offset + 48)
        expect(version == 1 and compat == ro_compat == incompat == 0, offset, "features")
        expect(pool_size == len(image), offset + 48, "size of the file")
        expect(number >= 1 and generation >= 1, offset + 56, "numbers")
        expect(max(number, generation, checkpoint_number) <= 2**62, offset + 56, "numbers")
        expect(floor <= largest_stamp < 2**62, offset + 80, "stamps")
        expect(state in (CLEAN, OPEN), offset + 96, "state")
        expect(copy_bytes == round_up(272 + 8 * sessions, BLOCK), offset + 44, "copy_bytes")
        extents = [struct.unpack_from("<IIQQ", image, offset + 112 + 24 * k) for k in range(6)]
        expect([e[0] for e in extents] == [1, 2, 3, 4, 0, 0], offset + 112, "kinds of extents")
        expect(extents[4:] == [(0, 0, 0, 0)] * 2, offset + 112, "extents that are not used")
        places = [range(begin, begin + length) for _, _, begin, length in extents[:4]]
        expect(all(p.start % BLOCK == 0 for p in places), offset + 112, "alignment of extents")
        ends = [p.stop for p in places]
        expect([0] + ends[:-1] <= [p.start for p in places] and ends[-1] <= pool_size, offset + 112,
               "extents overlap")
        heads = struct.unpack_from(f"<{sessions}Q", image, offset + 272)
        expect(not any(image[offset + 256:offset + 272]), offset + 256, "reserved")
        expect(not any(image[offset + 272 + 8 * sessions:offset + copy_bytes]), offset, "the rest")
        expect(all(head >= 1 for head in heads), offset + 272, "heads")
        expect(len(places[0]) == 2 * copy_bytes, offset + 112, "extent of superblocks")
        expect(len(places[2]) % segment_size == 0, offset + 112, "extent of the log")
        expect(len(places[3]) % slab_size == 0, offset + 112, "extent of slabs")
        expect(len(places[1]) == 2 * round_up(32 * (len(places[3]) // slab_size), BLOCK),
               offset + 112, "extent of directories")
        return Superblock(copy, image[offset + 16:offset + 32], number, generation,
                          checkpoint_number, floor, largest_stamp, state, segment_size, slab_size,
                          places, heads)

    def _current_superblock(self):
        first = self._superblock_at(0, 0)
        if first:
            second = self._superblock_at(len(first.extents[0]) // 2, 1)
        else:
            found = (self._superblock_at(at, 1) for at in range(BLOCK, len(self.image), BLOCK))
            second = next((s for s in found if s), None)
        expect(first or second, 0, "neither superblock is valid")
        if first and second:
            expect(abs(first.number - second.number) <= 1, 56, "numbers are further apart than one")
            expect((first.uuid, first.extents) == (second.uuid, second.extents), 16, "two pools")
            return first if first.number > second.number else second
        return first or second

    # --- slabs ---

    def slab_of(self, slot):
        return (slot - self._slabs_extent.start) // self.superblock.slab_size

    def slab_begin(self, number):
        return self._slabs_extent.start + number * self.superblock.slab_size

    def slots(self, number, slab):
        """The offsets of all slots of a slab."""
        slots, bitmap_bytes = slab_shape(self.superblock.slab_size, slab.slot_size)
        first = self.slab_begin(number) + 2 * bitmap_bytes
        return range(first, first + slots * slab.slot_size, slab.slot_size)

    def _read_slabs(self, copy):
        slabs, objects = {}, {}
        directory = self._directory_extent
        for number in range(len(self._slabs_extent) // self.superblock.slab_size):
            at = directory.start + copy * len(directory) // 2 + 32 * number
            (kind, type_size, slot_size, live, bitmap_crc, features, reserved,
             crc) = struct.unpack_from("<Q4IHHI", self.image, at)
            seed = crc32c(0, self.superblock.uuid + struct.pack("<I", number))
            expect(crc == crc32c(seed, self.image[at:at + 28] + bytes(4)), at, "checksum of a slab")
            expect(features == reserved == 0, at, "reserved")
            if kind == 0:
                expect((type_size, slot_size, live, bitmap_crc) == (0, 0, 0, 0), at, "a free slab")
                continue
            expect(type_size > 0 and slot_size == round_up(type_size, 8), at, "sizes")
            slab = slabs[number] = Slab(kind, type_size, slot_size)
            slots, bitmap_bytes = slab_shape(self.superblock.slab_size, slot_size)
            expect(0 < slots >= live, at, "live")
            if live == 0:
                expect(bitmap_crc == 0, at, "checksum of no bitmap")
                continue
            begin = self.slab_begin(number) + copy * bitmap_bytes
            bitmap = self.image[begin:begin + bitmap_bytes]
            expect(crc32c(seed, bitmap) == bitmap_crc, begin, "checksum of a bitmap")
            bits = int.from_bytes(bitmap, "little")
            expect(bits >> slots == 0, begin, "bits beyond the slots")
            expect(bits.bit_count() == live, begin, "live")
            for index, slot in enumerate(self.slots(number, slab)):
                if bits >> index & 1:
                    objects[slot] = bytearray(self.image[slot:slot + type_size])
        return slabs, objects

    # --- log ---

    def _seed(self, session):
        material = self.superblock.uuid + struct.pack("<QQ", session, self.superblock.generation)
        return crc32c(0, material)

    def _runs(self):
        """Of this generation, by session, in the order of their LSNs."""
        runs = {}
        size = self.superblock.segment_size
        for number, at in enumerate(range(self._log.start, self._log.stop, size)):
            (crc, magic, generation, first_lsn, checkpoint_number, segments,
             session) = struct.unpack_from("<II3QIH", self.image, at)
            if (magic, generation) != (0x47533353, self.superblock.generation):
                continue
            seed = crc32c(self._seed(session), struct.pack("<I", number))
            if crc32c(seed, self.image[at + 4:at + LINE]) != crc:
                continue
            expect(not any(self.image[at + 38:at + LINE]), at, "the rest of a segment header")
            expect(checkpoint_number <= self.superblock.checkpoint_number, at, "a later checkpoint")
            expect(segments >= 1 and at + segments * size <= self._log.stop, at, "segments of a run")
            runs.setdefault(session, []).append(
                Run(session, first_lsn, at + LINE, at + segments * size))
        return {session: sorted(found, key=lambda run: run.first_lsn)
                for session, found in runs.items()}

    def _record_at(self, at, end, session, seed):
        """The record there; None if there is none."""
        if at + 40 > end:
            return None
        (crc, length, lsn, stamp, persisted_upto, writes, dependencies,
         kind) = struct.unpack_from("<II3QIHH", self.image, at)
        if length < 40 or length % 8 or at + length > end:
            return None
        if crc32c(seed, self.image[at + 4:at + length]) != crc:
            return None
        expect(kind in (TRANSACTION, WATERMARK), at, "kind of a record")
        found, position = [], at + 40
        for _ in range(writes):
            slot, size, what, zero = struct.unpack_from("<QIHH", self.image, position)
            expect(what in (IMAGE, DELTA, MAKE, DESTROY) and zero == 0, position, "a write")
            position += 16
            found.append(Write(slot, what, self.image[position:position + size]))
            position += size
        needs = []
        for _ in range(dependencies):
            value, who = struct.unpack_from("<QH", self.image, position)
            expect(not any(self.image[position + 10:position + 16]), position, "a dependency")
            needs.append((value, who))
            position += 16
        expect(position == at + length, at, "length of a record")
        expect(persisted_upto < lsn, at, "persisted_upto")
        return Record(at, position, session, lsn, stamp, kind, persisted_upto, found, needs)

    def _prefix(self, runs):
        """The records of one session from its head on, as far as they can be read."""
        session = runs[0].session
        seed = self._seed(session)
        head = self.superblock.heads[session]
        first = max((i for i, run in enumerate(runs) if run.first_lsn <= head), default=None)
        if first is None:
            return []
        records, stamp = [], 0
        lsn = runs[first].first_lsn
        for run in runs[first:]:
            if run.first_lsn != lsn:
                break
            at = run.begin
            while True:
                found = (self._record_at(place, run.end, session, seed)
                         for place in (at, round_up(at, BLOCK)))
                record = next((f for f in found if f and f.lsn == lsn), None)
                if record is None:
                    break
                expect(record.stamp > stamp, at, "stamps do not grow")
                stamp = record.stamp
                lsn += 1
                at = round_up(record.end, LINE)
                if record.lsn >= head:
                    records.append(record)
        return records

    def _cut(self):
        """The largest set of records closed under session order and recorded dependencies."""
        kept = {session: len(records) for session, records in self.prefixes.items()}

        def is_kept(dependency):
            stamp, session = dependency
            if stamp <= self.superblock.floor:
                return True
            records = self.prefixes.get(session, [])[:kept.get(session, 0)]
            return any(record.stamp == stamp for record in records)

        changed = True
        while changed:
            changed = False
            for session, records in self.prefixes.items():
                for index, record in enumerate(records[:kept[session]]):
                    if record.kind == TRANSACTION and not all(map(is_kept, record.dependencies)):
                        kept[session] = index
                        changed = True
                        break
        chosen = [record for session, records in self.prefixes.items()
                  for record in records[:kept[session]]
                  if record.kind == TRANSACTION and record.stamp > self.superblock.floor]
        return sorted(chosen, key=lambda record: record.stamp)

    def _recover(self):
        runs = self._runs()
        for session, found in runs.items():
            expect(session < len(self.superblock.heads), found[0].begin, "session")
            self.prefixes[session] = self._prefix(found)
        self._check_witnesses(runs)
        self.records = self._cut()
        self._told = set()  # slots that a make or destroy of the log has been replayed of
        self._gone = set()  # free slots that were written, so a destroy has to follow
        for record in self.records:
            for write in record.writes:
                self._apply(write)
        self.orphans += len(self._gone)

    def _check_witnesses(self, runs):
        """What anything says was durable can be read."""
        last = {session: records[-1].lsn for session, records in self.prefixes.items() if records}

        def check(record):
            claims = [(record.persisted_upto, record.session)]
            if record.kind == WATERMARK:
                claims += record.dependencies
            for lsn, session in claims:
                read = last.get(session, self.superblock.heads[session] - 1)
                expect(lsn <= read, self._log.start, f"LSN {lsn} of session {session} is lost")

        for session, found in runs.items():
            for record in self.prefixes[session] + self._behind(found, last.get(session, 0)):
                check(record)

    def _behind(self, runs, last):
        """Intact records of a session behind its prefix, which a torn one hides."""
        session = runs[0].session
        seed = self._seed(session)
        found = []
        for run in runs:
            for at in range(run.begin, run.end, LINE):
                (lsn,) = struct.unpack_from("<Q", self.image, at + 8)
                record = self._record_at(at, run.end, session, seed) if lsn > last else None
                if record:
                    found.append(record)
        return found

    def _apply(self, write):
        slot, kind, payload = write
        number = self.slab_of(slot)
        expect(slot in self._slabs_extent, slot, "a write outside the slabs")
        if kind == MAKE:
            made, payload = Slab(*struct.unpack_from("<QII", payload)), payload[16:]
            if self.slabs.get(number, FREE) != made:
                expect(not any(self.slab_of(other) == number for other in self.objects), slot,
                       "a slab of another type is carved while it holds objects")
                self.slabs[number] = made
        slab = self.slabs.get(number, FREE)
        expect(slab != FREE and slot in self.slots(number, slab), slot, "a write to no slot")
        if kind == DESTROY:
            expect(not payload, slot, "payload of a destroy")
        elif kind != DELTA:
            expect(len(payload) == slab.slot_size, slot, "size of an image")
        if (slot in self.objects) == (kind == MAKE):
            # Bitmaps may be newer than the floor, as homes are; not what the log itself has told.
            if slot in self._told:
                self.orphans += 1
            elif kind in (IMAGE, DELTA):
                self._gone.add(slot)
        if kind in (MAKE, DESTROY):
            self._told.add(slot)
            self._gone.discard(slot)
        if kind == DESTROY:
            self.objects.pop(slot, None)
        elif kind == MAKE or kind == IMAGE and slot in self.objects:
            self.objects[slot] = bytearray(payload[:slab.type_size])
        elif slot in self.objects:
            self._change(slot, slab, payload)

    def _change(self, slot, slab, payload):
        home = self.objects[slot] + bytes(slab.slot_size - slab.type_size)
        at = 0
        while at < len(payload):
            first, count = struct.unpack_from("<II", payload, at)
            words = payload[at + 8:at + 8 + 8 * count]
            expect(count >= 1 and len(words) == 8 * count, slot, "a run of a delta")
            expect(8 * (first + count) <= slab.slot_size, slot, "a run beyond the object")
            home[8 * first:8 * (first + count)] = words
            at += 8 + 8 * count
        self.objects[slot] = home[:slab.type_size]

    # --- roots ---

    def _read_roots(self):
        if 0 not in self.slabs:
            return {}
        expect(self.slabs[0] == Slab(fingerprint("sp3.RootNode", 1, 72, 8), 72, 72),
               self.slab_begin(0), "type of the root directory")
        roots = {}
        first = self.slots(0, self.slabs[0])[0]
        at = struct.unpack_from("<Q", self.objects[first], 64)[0]
        while at:
            name, kind, target, following = struct.unpack("<48sQQQ", self.objects[at])
            name = name.rstrip(b"\0").decode()
            expect(name and name not in roots, at, "a root's name")
            expect(target in self.objects, at, "a root's target")
            expect(self.slabs[self.slab_of(target)].type == kind, at, "a root's type")
            roots[name] = (kind, target)
            at = following
        return roots

    def ranged(self, header):
        """The bytes of the ranged object with this header."""
        length, _, top, chunk_bytes, levels = struct.unpack("<QQQII", self.objects[header])
        chunks = -(-length // chunk_bytes)
        expect(128**levels >= chunks and (levels == 0 or 128**(levels - 1) < chunks), header,
               "levels")

        def below(at, level):
            if at == 0:
                return bytes(chunk_bytes * 128**level)
            if level == 0:
                return bytes(self.objects[at])
            cells = struct.unpack("<128Q", self.objects[at])
            return b"".join(below(cell, level - 1) for cell in cells)

        data = below(top, levels)
        expect(not any(data[length:chunks * chunk_bytes]), header, "bytes behind the end")
        return data[:length]

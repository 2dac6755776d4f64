#!/usr/bin/env python3
"""Tests of the format: a reader that knows the documents alone finds what sp3 finds.

usage: format_test.py SP3 KEPT_POOLS
"""

import os
import random
import struct
import subprocess
import sys
import time

from pool_reader import CLEAN, OPEN, Damage, Pool, fingerprint

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from command_line import FOUND, CommandTest, main  # noqa: E402

ACCOUNT = fingerprint("kept.Account", 1, 32, 8)


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


class FormatTest(CommandTest):
    KEPT = ""  # the folder

    def kept_image(self, name):
        with open(os.path.join(self.KEPT, name), encoding="ascii") as file:
            head, *lines = file.read().splitlines()
        image = bytearray(int(head.removeprefix("bytes: ")))
        for line in lines:
            offset, data = line.split(": ")
            image[int(offset, 16):int(offset, 16) + 32] = bytes.fromhex(data)
        return bytes(image)

    def kept(self, name):
        return Pool(self.kept_image(name))

    def account(self, pool, root):
        """Number, cents and owner of the account with this name."""
        kind, target = pool.roots[root]
        self.assertEqual(kind, ACCOUNT)
        number, cents, owner = struct.unpack("<Qq16s", pool.objects[target])
        return number, cents, owner.rstrip(b"\0")

    def test_kept_pools_say_what_was_kept(self):
        closed = self.kept("closed.pool.txt")
        self.assertEqual(closed.superblock.state, CLEAN)
        names = {"account", "accounts", "numbers", "table", "red-black", "b-plus", "text"}
        self.assertEqual(set(closed.roots), names)
        self.assertEqual(self.account(closed, "account"), (1, 100, b"Ada"))
        text = bytearray(20000)
        text[:13] = b"the beginning"
        text[9990:10052] = b"a piece of text in two chunks, and a hole before and behind it"
        self.assertEqual(closed.ranged(closed.roots["text"][1]), text)

        crashed = self.kept("crashed.pool.txt")
        self.assertEqual(crashed.superblock.state, OPEN)
        self.assertEqual(set(crashed.roots), names | {"another"})
        self.assertEqual(self.account(crashed, "account"), (1, 111, b"Ada"))
        self.assertEqual(self.account(crashed, "another"), (4, 400, b"Zoe"))
        text[10001:10005] = b"note"
        self.assertEqual(crashed.ranged(crashed.roots["text"][1]), text + bytes(1000))
        # One record depends on another that was lost.
        self.assertEqual(len(crashed.records), 5)
        self.assertEqual(sum(map(len, crashed.prefixes.values())), 6)
        self.assertEqual(crashed.orphans, 0)

    def test_of_superblocks_with_the_same_number_the_second_counts(self):
        """So metadata that a checkpoint has begun to write does not matter."""
        image = bytearray(self.kept_image("crashed.pool.txt"))
        directory = Pool(bytes(image)).superblock.extents[1]
        image[directory.start:directory.start + 64] = bytes(64)
        self.assertIsNotNone(self.expect_the_same(bytes(image)))

    def killed(self, randomness, *arguments):
        """The bytes of a pool whose process was killed while it ran transactions."""
        path = os.path.join(self.directory.name, "killed.pool")
        with subprocess.Popen([self.SP3, "bench", "--path", path, "--seconds", "600", *arguments],
                              stdout=subprocess.DEVNULL) as process:
            try:
                while not self.has_roots(path):
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                time.sleep(randomness.uniform(0, 0.2))
            finally:
                process.kill()
        image = bytes_of(path)
        os.remove(path)
        return image

    @staticmethod
    def has_roots(path):
        """Of a pool in use, whose metadata may be under way."""
        try:
            return bool(Pool(bytes_of(path)).roots)
        except (FileNotFoundError, Damage, KeyError, struct.error):
            return False

    def recovered(self, image, strategy):
        """As sp3 recovers it; None if it calls it damaged."""
        path = os.path.join(self.directory.name, "recovered.pool")
        with open(path, "wb") as file:
            file.write(image)
        result = subprocess.run([self.SP3, "pool", "recover", "--strategy", strategy, path],
                                capture_output=True, text=True, timeout=240, check=False)
        if result.returncode == FOUND:
            return None
        self.assertEqual(result.returncode, 0, result.stderr)
        return Pool(bytes_of(path))

    def expect_the_same(self, image):
        """What the reader makes of it; None if that and sp3 call it damaged."""
        try:
            mine = Pool(image)
        except Damage:
            mine = None
        for strategy in ("stamp", "dag"):
            other = self.recovered(image, strategy)
            self.assertEqual(mine is None, other is None, strategy)
            if mine:
                self.assertEqual(other.superblock.state, CLEAN)
                self.assertEqual(other.roots, mine.roots)
                self.assertEqual(other.objects, mine.objects)
                for number in set(map(mine.slab_of, mine.objects)):
                    self.assertEqual(other.slabs[number], mine.slabs[number])
        return mine

    def test_what_a_killed_process_leaves_is_recovered_alike(self):
        randomness = random.Random(1)
        replayed = 0
        for workload in ("sps", "queue", "hashtable", "rbtree", "bptree", "ranges", "bank"):
            for durability in ("sync", "async"):
                arguments = ["--workload", workload, "--durability", durability,
                             "--threads", str(randomness.randint(1, 4)),
                             "--memory", randomness.choice(("emulated", "emulated", "file")),
                             "--entries", "100", "--entry-size", "16", "--pool-size", "1M",
                             "--checkpoint-ms", str(randomness.choice((0, 1, 10, 1000)))]
                if workload == "ranges":
                    arguments += ["--range-most", "2048"]
                with self.subTest(arguments=arguments):
                    image = self.killed(randomness, *arguments)
                    pool = self.expect_the_same(image)
                    self.assertIsNotNone(pool)
                    self.assertEqual(pool.orphans, 0)
                    replayed += len(pool.records)
                    # Ends that never came to be; or damage, where something says that they did.
                    self.expect_the_same(self.with_torn_ends(randomness, image, pool))
        self.assertGreater(replayed, 0)

    @staticmethod
    def with_torn_ends(randomness, image, pool):
        torn = bytearray(image)
        for records in filter(None, pool.prefixes.values()):
            if randomness.random() < 0.7:
                record = randomness.choice(records[-3:])
                at = randomness.randrange(record.begin, record.end, 8)
                torn[at:at + 8] = bytes(byte ^ 0xFF for byte in torn[at:at + 8])
        return bytes(torn)


if __name__ == "__main__":
    FormatTest.KEPT = sys.argv.pop(2)
    main(sys.argv)

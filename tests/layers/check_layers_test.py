#!/usr/bin/env python3
"""Shows that check_layers.py can fail: feeds it small trees, each with one thing wrong."""

import tempfile
import unittest
from pathlib import Path

import check_layers


class CheckLayersTest(unittest.TestCase):
    def violations(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_layers.violations(root))

    def assert_one(self, files, place, word):
        found = self.violations(files)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ": "), found)
        self.assertIn(word, found[0])

    def assert_found(self, statement, word, places, allowed):
        """In each of these files; but it may stand in the one that is allowed."""
        with self.subTest(statement):
            text = f"void f() {{\n  {statement}\n}}\n"
            for place in places:
                self.assert_one({place: text}, f"{place}:2", word)
            self.assertEqual(self.violations({allowed: text}), [])

    def test_a_layered_tree_passes(self):
        self.assertEqual(
            self.violations(
                {
                    "include/sp3/pool.h": "#include <sp3/error.h>\n#include <vector>\n",
                    "base/tid.h": "#include <sp3/error.h>\n",
                    "emu/native.cc": '#include "base/tid.h"\nvoid f() { _mm_sfence(); }\n',
                    "log/writer.h": '#include "emu/memory.h"\n#include "log/format.h"\n',
                    "runtime/commit.cc": '#include "log/writer.h"\n#include "index/entry.h"\n',
                    "tools/main.cc": '#include "workloads/queue.h"\n',
                    "tests/log/writer_test.cc": '#include "tools/main.h"\n',
                }
            ),
            [],
        )

    def test_a_lower_layer_must_not_include_a_higher_one(self):
        self.assert_one(
            {"log/writer.cc": '#include "log/writer.h"\n#include "runtime/commit.h"\n'},
            "log/writer.cc:2",
            "runtime/commit.h",
        )

    def test_neighbours_at_the_top_must_not_include_each_other(self):
        self.assert_one({"bench/a.cc": '#include "tools/b.h"\n'}, "bench/a.cc:1", "tools/b.h")

    def test_a_relative_path_does_not_hide_an_include(self):
        self.assert_one(
            {"base/a.h": '#include "../pool/b.h"\n', "pool/b.h": ""}, "base/a.h:1", "pool"
        )

    def test_angle_brackets_do_not_hide_an_include(self):
        self.assert_one(
            {"base/a.h": "#include <pool/b.h>\n", "pool/b.h": ""}, "base/a.h:1", "pool"
        )

    def test_a_public_header_includes_only_public_headers(self):
        self.assert_one(
            {"include/sp3/detail/core.h": '#include "base/tid.h"\n'},
            "include/sp3/detail/core.h:1",
            "base/tid.h",
        )

    def test_an_include_in_a_comment_does_not_count(self):
        self.assertEqual(self.violations({"base/a.h": '/*\n#include "pool/b.h"\n*/\n'}), [])

    def test_a_folder_that_is_no_layer_is_named(self):
        self.assert_one({"extra/a.cc": "\n"}, "extra/a.cc:1", "extra")

    def test_flushes_and_fences_outside_emu_are_found(self):
        for statement in [
            "_mm_clwb(p);",
            "_mm_clflushopt(p);",
            "_mm_clflush(p);",
            "_mm_sfence();",
            "_mm_stream_si64(p, 1);",
            "::msync(p, n, MS_SYNC);",
            "if (::fdatasync(fd) != 0) {}",
            "pmem_persist(p, n);",
            "pmem_memcpy_nodrain(p, q, n);",
            'asm volatile("clwb %0" : "+m"(*p));',
            '__asm__ volatile("sfence" ::: "memory");',
        ]:
            self.assert_found(statement, "outside emu/", ["log/a.cc", "tests/log/a.cc"], "emu/a.cc")

    def test_naming_a_flush_in_a_comment_or_a_string_is_harmless(self):
        text = (
            "// then _mm_sfence()\n"
            "int x = 1'000; /* msync( */ char q = '\"';\n"
            'auto s = "pmem_persist"; auto r = R"(fdatasync()")";\n'
        )
        self.assertEqual(self.violations({"log/a.cc": text}), [])

    def test_a_digit_separator_does_not_hide_what_follows(self):
        text = "int x = 1'000; _mm_sfence(); int y = 2'000;\n"
        self.assert_one({"log/a.cc": text}, "log/a.cc:1", "_mm_sfence")

    def test_thread_local_state_in_the_runtime_is_found(self):
        for folder in ["log", "index", "recovery", "runtime"]:
            with self.subTest(folder):
                self.assert_one(
                    {f"{folder}/a.cc": "\nthread_local int x;\n"}, f"{folder}/a.cc:2", "thread"
                )
        self.assertEqual(self.violations({"base/a.cc": "thread_local int x;\n"}), [])

    def test_an_atomic_operation_without_its_order_is_found(self):
        for statement in [
            "x.load();",
            "x->store(f(1));",
            "if (x.exchange(true)) {}",
            "x.fetch_add(g(1, 2));",
            "x.compare_exchange_strong(y,\n                            2);",
        ]:
            self.assert_found(statement, "memory order", ["log/a.cc"], "tests/log/a.cc")

    def test_an_order_that_is_spelled_and_what_is_not_atomic_pass(self):
        text = (
            "x.load(std::memory_order_acquire); x.store(1, std::memory_order_release);\n"
            "x.fetch_or(1,\n           std::memory_order_relaxed); x.exchange(y, order);\n"
            "std::exchange(x, 1); tx.load(root); memory.store(at, &x, 8);\n"
            "values.store();\n"
        )
        self.assertEqual(self.violations({"log/a.cc": text}), [])

    def test_a_file_of_600_lines_passes_and_one_of_601_does_not(self):
        self.assertEqual(self.violations({"base/a.cc": "\n" * 600}), [])
        self.assert_one({"base/a.cc": "\n" * 601}, "base/a.cc:601", "601 lines")

    def test_a_tree_without_sources_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(check_layers.main([folder]), 1)

    def test_a_violation_makes_the_command_fail(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "base").mkdir()
            source = Path(folder) / "base" / "a.h"
            source.write_text('#include "pool/b.h"\n')
            self.assertEqual(check_layers.main([folder]), 1)
            source.write_text("\n")
            self.assertEqual(check_layers.main([folder]), 0)


if __name__ == "__main__":
    unittest.main()

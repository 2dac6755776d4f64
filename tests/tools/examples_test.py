#!/usr/bin/env python3
"""Runs each example twice on one pool: the second run must go on where the first ended. And kills the
blob store and the upgrade in the middle of their work. All but the shortest fail if their output could
not be written.

usage: examples_test.py BANK ASYNC BLOB_STORE UPGRADE
"""

import os
import subprocess
import sys
import tempfile
import time


def last_line(program, pool):
    result = subprocess.run([program, pool], capture_output=True, text=True, timeout=120, check=True)
    return result.stdout.splitlines()[-1]


def check(what, wanted, found):
    if found != wanted:
        sys.exit(f"{what}: wanted '{wanted}', found '{found}'")


def must_fail(message, program, *words, stdout=subprocess.DEVNULL):
    result = subprocess.run(
        [program, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    check(f"the exit status of {[program, *words]}", 1, result.returncode)
    if message not in result.stderr:
        sys.exit(f"{[program, *words]}: wanted '{message}', found '{result.stderr}'")


def must_notice_a_full_disk(program, *words):
    with open("/dev/full", "wb") as full:
        must_fail("the output could not be written", program, *words, stdout=full)


def make_no_pool(program, pool):
    for words in (["list"], ["get", "song"], ["churn", "song"], ["patch", "song", "0", "la"]):
        must_fail(pool, program, pool, *words)
    must_fail("no such command", program, pool, "putt", "song", "la")
    must_fail("no such command", program, pool, "put", "song")
    must_fail("names have", program, pool, "put", "", "la")
    check("whether there is a pool", False, os.path.exists(pool))


def store_blobs(program, pool):
    def run(*words):
        result = subprocess.run(
            [program, pool, *words], capture_output=True, text=True, timeout=120, check=True
        )
        return result.stdout

    run("put", "song", "la la la")
    run("put", "long", "x" * 3000)
    run("patch", "song", "3", "li")
    run("patch", "song", "8", " lo")
    check("a patched blob", "la li la lo\n", run("get", "song"))
    for text in ("", "la"):
        must_fail("behind the blob's end", program, pool, "patch", "song", "999", text)
    check("the list", "long 3000\nsong 11\n", run("list"))
    for words in (["get", "song"], ["list"], ["churn", "long"]):
        must_notice_a_full_disk(program, pool, *words)
    for kills in range(3):
        with subprocess.Popen([program, pool, "churn", "long"], stdout=subprocess.PIPE, text=True) as churn:
            told = [churn.stdout.readline().strip() for _ in range(20 + 7 * kills)]
            churn.kill()
            told += churn.stdout.read().split()
        found = run("get", "long").strip()
        check("the length after a kill", 3000, len(found))
        check("the letters after a kill", 1, len(set(found)))
        # The last that was told, or one that was durable before it could be told.
        following = chr(ord("a") + (ord(told[-1]) - ord("a") + 1) % 26)
        if found[0] not in (told[-1], following):
            sys.exit(f"after a kill: wanted {told[-1]} or {following}, found {found[0]}")
    run("put", "long", "")
    check("the list in the end", "long 0\nsong 11\n", run("list"))


def upgrade(program, pool):
    must_fail(pool, program, pool)
    subprocess.run([program, pool, "first"], timeout=120, check=True)
    must_fail(pool, program, pool, "first")
    for kills in range(6):
        with subprocess.Popen([program, pool], stdout=subprocess.DEVNULL) as release:
            time.sleep(0.004 * kills)
            release.kill()
    for _ in range(2):
        check(
            "what was brought over", "1000 accounts, balance 100000, limit -500000", last_line(program, pool)
        )
    must_notice_a_full_disk(program, pool)


def main():
    bank, shop, blobs, upgraded = sys.argv[1:]
    wanted = [
        (bank, "bank.pool", ["alice 90, bob 110", "alice 80, bob 120"]),
        (shop, "shop.pool", ["1000 sales, 250000 cents", "2000 sales, 500000 cents"]),
    ]
    with tempfile.TemporaryDirectory() as directory:
        for program, pool, lines in wanted:
            for line in lines:
                found = last_line(program, f"{directory}/{pool}")
                check(program, line, found)
        must_notice_a_full_disk(shop, f"{directory}/shop.pool")
        make_no_pool(blobs, f"{directory}/blobs.pool")
        store_blobs(blobs, f"{directory}/blobs.pool")
        upgrade(upgraded, f"{directory}/accounts.pool")


main()

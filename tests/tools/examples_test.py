#!/usr/bin/env python3
"""Runs each example twice on one pool: the second run must go on where the first ended.

usage: examples_test.py BANK ASYNC
"""

import subprocess
import sys
import tempfile


def last_line(program, pool):
    result = subprocess.run([program, pool], capture_output=True, text=True, timeout=120, check=True)
    return result.stdout.splitlines()[-1]


def main():
    bank, shop = sys.argv[1:]
    wanted = [
        (bank, "bank.pool", ["alice 90, bob 110", "alice 80, bob 120"]),
        (shop, "shop.pool", ["1000 sales, 250000 cents", "2000 sales, 500000 cents"]),
    ]
    with tempfile.TemporaryDirectory() as directory:
        for program, pool, lines in wanted:
            for line in lines:
                found = last_line(program, f"{directory}/{pool}")
                if found != line:
                    sys.exit(f"{program}: wanted '{line}', found '{found}'")


main()

"""What tests that read JSON share: documents as somebody may have changed them, by a seed."""

import copy
import json
import random

# Values that a reader may not expect, beside those that stand elsewhere in the document.
ODD = [
    None, True, False, 0, 1, -1, 0.5, -0.0, 1e-308, 1e18, 1e308, 2**31, 2**32, 2**53 + 1, 2**63,
    2**64, -(2**63), 10**400, "", "x", "a\nb\r", "a\0b", "\ud800", "é" * 300, "x" * 5000, "-1", "nan",
    "<b>&", "/", "..", [], [[]], [None], {}, {"": {}}, {"a\nb": 1}, [1, "x", None], [0] * 50,
]  # fmt: skip


def places(document, found=None):
    """(container, key) of every value in it."""
    found = [] if found is None else found
    keys = document.keys() if isinstance(document, dict) else range(len(document))
    for key in keys:
        found.append((document, key))
        if isinstance(document[key], (dict, list)):
            places(document[key], found)
    return found


def nested(depth):
    return b"[" * depth + b"]" * depth


def change(document, chance):
    """One change to a document, which must be a list or an object."""
    everywhere = places(document)
    if not everywhere:
        return
    container, key = chance.choice(everywhere)
    other = chance.choice(everywhere)
    kind = chance.randrange(8)
    if kind == 0:
        del container[key]
    elif kind == 1:
        container[key] = copy.deepcopy(other[0][other[1]])
    elif kind == 2 and isinstance(container, dict):
        container[chance.choice(["", "x", "a\nb", "\ud800", str(other[1])])] = container.pop(key)
    elif kind == 3 and isinstance(container, list):
        container.insert(chance.randrange(len(container) + 1), copy.deepcopy(container[key]))
    elif kind == 4 and isinstance(container[key], (int, float)) and abs(container[key]) < 2**1000:
        container[key] *= chance.choice([-1, 0, 0.5, 2, 1e9, 1e30, 1e-30])
    elif kind == 5:
        container[key] = [container[key]]
    else:
        container[key] = copy.deepcopy(chance.choice(ODD))


def text_of(document, chance):
    """Its bytes, as often as not with one change that no writer of JSON makes."""
    data = bytearray(json.dumps(document, ensure_ascii=chance.randrange(4) != 0).encode("utf-8", "surrogatepass"))
    kind = chance.randrange(16)
    at = chance.randrange(len(data))
    if kind == 0:
        data = data[:at]
    elif kind == 1:
        data[at] = chance.randrange(256)
    elif kind == 2:
        data[at:at] = chance.choice([b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"NaN", b"Infinity", b"\n", b"\x80"])
    elif kind == 3:
        data = chance.choice([data.decode("utf-8", "replace").encode("utf-16"), b"\xef\xbb\xbf" + data, data + data])
    elif kind == 4:
        before, colon, after = bytes(data).rpartition(b": ")
        data = before + colon + nested(chance.choice([70, 2_000, 200_000])) + after.lstrip(b"0123456789.")
    return bytes(data)


def mutations(document, count, seed):
    """`count` texts, each of the document with some changes."""
    chance = random.Random(seed)
    for _ in range(count):
        changed = copy.deepcopy(document)
        for _ in range(chance.choice([0, 1, 1, 1, 2, 5])):
            change(changed, chance)
        yield text_of(changed, chance)

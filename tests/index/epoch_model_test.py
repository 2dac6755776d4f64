#!/usr/bin/env python3
"""All interleavings of resting participants (base/epoch.h), store buffers included.

The simulated machine is sequentially consistent, or else, on weak memory, tries some of the
interleavings that show what the pair of a light and a heavy fence is for. This model tries all: one
participant that pins and rests, whose stores wait in a buffer as x86's do, and two that advance the epoch, each any number of steps behind the others. It says
whether the participant can be pinned at p while the epoch is beyond p + 1.

Each step is one access to shared memory, named by the state that comes before it. Faults put into
the protocol have to be found: a model that finds none of them says nothing.
"""
import sys

UNPINNED = 0
RESTING = 1 << 63
BUFFER = 2  # stores of the participant that may wait
PINS = 3
ATTEMPTS = (2, 3)  # of the two that advance

FAULTS = {
    "no_heavy_fence": "who would pass a resting participant does not fence",
    "rested_newer_is_unpinned": "who rests at another epoch is unpinned, not only at an older one",
    "epoch_not_read_again": "who pins at the epoch it rested at does not look whether it still is",
    "resting_is_moved_late": "who moves on to the current epoch while it rests does so by a plain store",
    "resting_is_unpinned": "who rests at an older epoch is passed without a second look",
}


def reads(word):
    return word != UNPINNED and not word & RESTING


def holds_back(word, now):
    return reads(word) and word != now


def rests_before(word, now, fault):
    if not word & RESTING:
        return False
    epoch = word & ~RESTING
    return epoch != now if fault == "rested_newer_is_unpinned" else epoch < now


def participant_steps(state, fault):
    """What the participant may do: states after it."""
    word, epoch, buffer, (at, mine, pins), advancers = state
    seen = buffer[-1] if buffer else word  # its own stores first
    room = len(buffer) < BUFFER

    def after(at, mine=mine, pins=pins, word=word, buffer=buffer):
        return word, epoch, buffer, (at, mine, pins), advancers

    if buffer:  # the oldest store becomes visible
        yield buffer[0], epoch, buffer[1:], (at, mine, pins), advancers
    if at == "idle" and pins < PINS:
        yield after("announce", mine=epoch)
        if rests_before(seen, epoch, None):
            yield after("move", mine=epoch)
    elif at == "move" and fault == "resting_is_moved_late":
        if room:
            yield after("idle", buffer=buffer + (mine | RESTING,))
    elif at == "move" and not buffer:  # an exchange, too
        yield after("idle", word=mine | RESTING)
    elif at == "announce" and seen == mine | RESTING:
        if room:
            yield after("pinned" if fault == "epoch_not_read_again" else "look", buffer=buffer + (mine,))
    elif at == "announce" and not buffer:  # an exchange waits for the buffer to be empty
        yield after("look", word=mine)
    elif at == "look":
        yield after("pinned") if epoch == mine else after("again", mine=epoch)
    elif at == "again" and not buffer:
        yield after("look", word=mine)
    elif at == "pinned" and room:
        yield after("idle", pins=pins + 1, buffer=buffer + (mine | RESTING,))


def advancer_steps(state, which, fault):
    """What one of those that advance may do."""
    word, epoch, buffer, participant, advancers = state
    at, now, found, attempts = advancers[which]

    def after(at, now=now, found=0, attempts=attempts, word=word, epoch=epoch, buffer=buffer):
        advanced = list(advancers)
        advanced[which] = (at, now, found, attempts)
        return word, epoch, buffer, participant, tuple(advanced)

    give_up = after("start", now=0, attempts=attempts + 1)
    if at == "start" and attempts < ATTEMPTS[which]:
        yield after("scan", now=epoch)
    elif at == "scan":
        if holds_back(word, now):
            yield give_up
        elif rests_before(word, now, fault) and fault != "resting_is_unpinned":
            yield after("rouse" if fault == "no_heavy_fence" else "fence")
        else:
            yield after("advance")
    elif at == "fence":  # makes the participant's stores visible
        yield after("rouse", word=buffer[-1] if buffer else word, buffer=())
    elif at == "rouse":
        if holds_back(word, now):
            yield give_up
        elif rests_before(word, now, fault):
            yield after("unpin", found=word)
        else:
            yield after("advance")
    elif at == "unpin":
        if word == found:
            yield after("advance", word=UNPINNED)
        elif holds_back(word, now):
            yield give_up
        else:
            yield after("advance")
    elif at == "advance":
        yield after("start", now=0, attempts=attempts + 1, epoch=now + 1 if epoch == now else epoch)


def explore(fault=None):
    """The states that were reached, and the first that violates the bound, if any."""
    start = (1 | RESTING, 1, (), ("idle", 0, 0), (("start", 0, 0, 0), ("start", 0, 0, 0)))
    seen = {start}
    pending = [start]
    while pending:
        state = pending.pop()
        _, epoch, _, (at, mine, _), _ = state
        if at == "pinned" and epoch > mine + 1:
            return seen, state
        following = list(participant_steps(state, fault))
        for which in range(len(ATTEMPTS)):
            following += advancer_steps(state, which, fault)
        for state in following:
            if state not in seen:
                seen.add(state)
                pending.append(state)
    return seen, None


def main():
    seen, violation = explore()
    print(f"{len(seen)} states: {'violation ' + str(violation) if violation else 'no violation'}")
    failed = violation is not None
    for fault, meaning in FAULTS.items():
        _, violation = explore(fault)
        print(f"{fault} ({meaning}): {'found' if violation else 'NOT FOUND'}")
        failed |= violation is None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

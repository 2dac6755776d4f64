#!/usr/bin/env python3
"""All interleavings of a participant that rests, and of one that retires a node (rangelock/eras.h).

The simulated machine is sequentially consistent, so it cannot show what the pair of a light and a
heavy fence is for. This model can: one participant that pins, reaches the node if it is linked, looks
whether that is kept, and rests, its stores waiting in a buffer as x86's do; one that makes the node,
links, unlinks and retires it, and gives it back when nobody keeps it; and others, with whom the era
goes on, and one of whom rouses those who rest, any number of steps behind. It says whether the node can
be given back while the participant holds it.

Each step is one access to shared memory, named by the state that comes before it. Faults put into
the protocol have to be found: a model that finds none of them says nothing.
"""
import sys
from typing import NamedTuple

NOTHING = 0
RESTING = 1 << 63
BUFFER = 2  # stores of the participant that may wait
PINS = 2
LAST_ERA = 4  # the others go on up to here
LOOKS = 2  # at who keeps the node, each followed by one more behind a fence

FAULTS = {
    "no_heavy_fence": "who rouses those who rest does not fence",
    "rested_newer_is_roused": "who rests at another era is roused, not only at an older one",
    "resting_keeps_nothing": "what lived in the era of one who rests is given back",
    "reached_is_taken_for_kept": "a search does not look whether what it reached is kept",
}


class Participant(NamedTuple):
    at: str = "idle"
    era: int = 1
    pins: int = 0


class Retirer(NamedTuple):
    at: str = "make"
    born: int = 0
    retired: int = 0
    looks: int = 0


class Rouser(NamedTuple):
    at: str = "idle"
    now: int = 0  # the era in which it rouses
    found: int = 0


class State(NamedTuple):
    word: int = 1 | RESTING
    era: int = 1
    buffer: tuple = ()
    linked: bool = False
    participant: Participant = Participant()
    retirer: Retirer = Retirer()
    rousers: tuple = (Rouser(), Rouser())  # the retirer's part, and another


def keeps(word, born, retired, fault):
    era = word & ~RESTING
    if fault == "resting_keeps_nothing" and word & RESTING:
        return False
    return era != NOTHING and born <= era <= retired


def rests_before(word, now, fault):
    if not word & RESTING:
        return False
    era = word & ~RESTING
    return era != now if fault == "rested_newer_is_roused" else era < now


def participant_steps(state, fault):
    """What the participant may do: states after it."""
    at, mine, pins = state.participant
    seen = state.buffer[-1] if state.buffer else state.word  # its own stores first
    room = len(state.buffer) < BUFFER

    def after(at, era=mine, pins=pins, **changes):
        return state._replace(participant=Participant(at, era, pins), **changes)

    if state.buffer:  # the oldest store becomes visible
        yield state._replace(word=state.buffer[0], buffer=state.buffer[1:])
    if at == "idle" and pins < PINS:
        if seen == mine | RESTING:
            if room:
                yield after("look", buffer=state.buffer + (mine,))
        else:
            yield after("announce", era=state.era)
    elif at == "look":
        yield after("pinned") if state.era == mine else after("read_era")
    elif at == "read_era":
        yield after("announce", era=state.era)
    elif at == "announce" and not state.buffer:  # an exchange waits for the buffer to be empty
        yield after("pinned", word=mine)
    elif at == "pinned":
        if state.linked:
            yield after("holds" if fault == "reached_is_taken_for_kept" else "reached")
        if room:
            yield after("idle", pins=pins + 1, buffer=state.buffer + (mine | RESTING,))
    elif at == "reached":
        yield after("holds" if state.era == mine else "pinned")
    elif at == "holds" and room:
        yield after("idle", pins=pins + 1, buffer=state.buffer + (mine | RESTING,))


def retirer_steps(state, fault):
    """What the one who makes and retires the node may do."""
    my = state.retirer

    def after(at, born=my.born, retired=my.retired, looks=my.looks, **changes):
        return state._replace(retirer=Retirer(at, born, retired, looks), **changes)

    if my.at == "make":
        yield after("link", born=state.era)
    elif my.at == "link":
        yield after("unlink", linked=True)
    elif my.at == "unlink":
        yield after("retire", linked=False)
    elif my.at == "retire":
        yield after("look", retired=state.era, era=state.era + 1)
    elif my.at == "look" and my.looks < LOOKS:
        if not keeps(state.word, my.born, my.retired, fault):
            yield after("given_back")
        elif state.rousers[0].at == "idle":
            yield after("rouse", looks=my.looks + 1)
            yield after("look", looks=my.looks + 1)
    elif my.at == "rouse" and state.rousers[0].at == "done":
        yield after("look", rousers=(Rouser(), state.rousers[1]))


def rouser_steps(state, which, fault):
    """What one of those may do who rouse the participant if it rests."""
    my = state.rousers[which]

    def after(at, now=my.now, found=0, **changes):
        rousers = list(state.rousers)
        rousers[which] = Rouser(at, now, found)
        return state._replace(rousers=tuple(rousers), **changes)

    if my.at == "idle" and (which == 1 or state.retirer.at == "rouse"):
        yield after("see", now=state.era)
    elif my.at == "see":
        if not rests_before(state.word, my.now, fault):
            yield after("done", now=0)
        else:
            yield after("rouse" if fault == "no_heavy_fence" else "fence")
    elif my.at == "fence":  # makes the participant's stores visible
        yield after("rouse", word=state.buffer[-1] if state.buffer else state.word, buffer=())
    elif my.at == "rouse":
        rests = rests_before(state.word, my.now, fault)
        yield after("take_away", found=state.word) if rests else after("done", now=0)
    elif my.at == "take_away":
        yield after("done", now=0, word=NOTHING if state.word == my.found else state.word)


def steps(state, fault):
    yield from participant_steps(state, fault)
    yield from retirer_steps(state, fault)
    for which in range(len(state.rousers)):
        yield from rouser_steps(state, which, fault)
    if state.era < LAST_ERA:  # somebody else retires something
        yield state._replace(era=state.era + 1)


def explore(fault=None):
    """The states that were reached, and the first that violates the rule, if any."""
    seen = {State()}
    pending = [State()]
    while pending:
        state = pending.pop()
        if state.participant.at == "holds" and state.retirer.at == "given_back":
            return seen, state
        for following in steps(state, fault):
            if following not in seen:
                seen.add(following)
                pending.append(following)
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

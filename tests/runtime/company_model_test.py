#!/usr/bin/env python3
"""All interleavings of a lone session with who comes (runtime/company.h), store buffers included.

The simulated machine is sequentially consistent, or else, on weak memory, tries some of the
interleavings that show what the pairs of a light and a heavy fence are for. This model tries all: a
session whose stores wait in a buffer as x86's do, another that comes, commits and goes, and a carrier that brings an object home, each any number of steps behind the
others. Each transaction adds one to two objects. The model says whether one is lost, or whether a
body can see the two differ.

Each step is one access to shared memory, named by the state that comes before it. Faults put into
the protocol have to be found: a model that finds none of them says nothing.
"""
import sys

BUFFER = 7  # stores of the session that may wait: about those of one commit
COMMITS = 2  # of the session
VISITS = 2  # of the other session, with one transaction each
PENDING = 1  # what is announced before a commit has a stamp
FIRST_STAMP = 2
ALONE = 1  # arrivals * 2 + sessions, when the first has come; the other may come and go

FAULTS = {
    "no_heavy_fence": "who comes does not fence",
    "arrival_does_not_wait": "who comes does not wait for a commit that is pending",
    "stamp_before_locks": "a commit announces its stamp before all that it writes is locked",
    "commit_does_not_look": "a lone session does not look again when it commits",
    "read_does_not_look": "a lone session does not look when it has read",
    "goers_are_forgotten": "who looks sees how many sessions there are, and not who has come and gone",
    "carriers_do_not_wait": "a carrier does not wait for a commit that is pending",
    "carriers_are_ignored": "a lone session locks as if there were no carriers",
}


class State:
    """Shared memory, the session's buffer, and where everyone is."""

    FIELDS = ("objects", "company", "carriers", "announced", "buffer", "session", "other", "carrier")

    def __init__(self, *values):
        for field, value in zip(self.FIELDS, values):
            setattr(self, field, value)

    def key(self):
        return tuple(getattr(self, field) for field in self.FIELDS)

    def but(self, **changes):
        return State(*(changes.get(field, getattr(self, field)) for field in self.FIELDS))

    def storing(self, *stores, **changes):
        """With stores of the session that wait in its buffer."""
        return self.but(buffer=self.buffer + stores, **changes)

    def with_visible(self, count):
        """With the oldest stores of the buffer in memory."""
        changes = {"objects": self.objects, "announced": self.announced}
        for where, value in self.buffer[:count]:
            if where == "announced":
                changes["announced"] = value
            else:
                objects = list(changes["objects"])
                objects[where] = value
                changes["objects"] = tuple(objects)
        return self.but(buffer=self.buffer[count:], **changes)

    def seen_by_session(self, which):
        for where, value in reversed(self.buffer):
            if where == which:
                return value
        return self.objects[which]


# A word of an object: its value * 2, and 1 while it is locked.


def is_alone(company):
    return company % 2 == 1


def session_steps(state, fault):
    at, lone, read, attempt, commits = state.session

    def now(at, lone=lone, read=read, attempt=attempt, commits=commits):
        return (at, lone, read, attempt, commits)

    def has_company(seen):
        if fault == "goers_are_forgotten":
            return not is_alone(seen)
        return seen != lone

    start_over = {"session": now("start", None, (), attempt + 1)}
    if state.buffer:
        yield state.with_visible(1)
    if at == "start" and commits < COMMITS:
        lone = state.company if is_alone(state.company) and attempt == 0 else None
        yield state.but(session=now("read", lone, ()))
    elif at == "read":
        word = state.seen_by_session(len(read))
        if word % 2 == 0:
            yield state.but(session=now("look", read=read + (word,)))
    elif at == "look":
        if lone is None:
            others_hold = any(state.seen_by_session(i) != word for i, word in enumerate(read))
        else:
            others_hold = has_company(state.company) and fault != "read_does_not_look"
        if others_hold:
            yield state.but(**start_over)
        elif len(read) < 2:
            yield state.but(session=now("read"))
        else:
            yield state.but(session=now("announce"))
    elif at == "announce" and len(state.buffer) < BUFFER:
        yield state.storing(("announced", PENDING), session=now("carriers?" if lone else "lock 0"))
    elif at == "carriers?":
        alone = state.carriers == 0 or fault == "carriers_are_ignored"
        yield state.but(session=now("confirm" if alone else "confirm, lock"))
    elif at in ("confirm", "confirm, lock"):
        if has_company(state.company) and fault != "commit_does_not_look":
            yield state.storing(("announced", 0), **start_over)
        else:
            yield state.but(session=now("store" if at == "confirm" else "lock 0"))
    elif at == "store":
        stores = [(i, word + 1) for i, word in enumerate(read)]
        if fault == "stamp_before_locks":
            stores.insert(0, ("announced", FIRST_STAMP + commits))
        if any(state.seen_by_session(i) != word for i, word in enumerate(read)):
            yield state.but(session=now("lock 0"))  # locked by a carrier: wait for it as others do
        elif len(state.buffer) + len(stores) <= BUFFER:
            yield state.storing(*stores, session=now("publish"))
    elif at in ("lock 0", "lock 1") and not state.buffer:  # a locked instruction
        which = int(at[-1])
        if state.objects[which] == read[which]:
            locked = tuple(w + 1 if i == which else w for i, w in enumerate(state.objects))
            yield state.but(objects=locked, session=now("lock 1" if which == 0 else "publish"))
        elif state.objects[which] != read[which] + 1:  # changed, not locked for an instant
            undone = ((0, read[0]),) if which == 1 else ()
            yield state.storing(*undone, ("announced", 0), **start_over)
    elif at == "publish" and len(state.buffer) + 4 <= BUFFER:
        stamp = FIRST_STAMP + commits
        stores = [("announced", stamp), *((i, word + 2) for i, word in enumerate(read)), ("announced", 0)]
        yield state.storing(*stores, session=now("start", None, (), 0, commits + 1))


def other_steps(state, fault):
    """Another session, whose own stores are visible at once."""
    at, read, visits = state.other
    if at == "away" and visits < VISITS:
        yield state.but(company=state.company + 3, other=("come", (), visits))
    elif at == "come":
        at = "begin" if fault == "arrival_does_not_wait" else "wait"
        fenced = state if fault == "no_heavy_fence" else state.with_visible(len(state.buffer))
        yield fenced.but(other=(at, (), visits))
    elif at == "wait" and state.announced != PENDING:
        yield state.but(other=("begin", (), visits))
    elif at == "begin":
        word = state.objects[len(read)]
        if word % 2 == 0:  # locked as it is read
            locked = tuple(w + 1 if i == len(read) else w for i, w in enumerate(state.objects))
            read += (word,)
            yield state.but(objects=locked, other=("begin" if len(read) < 2 else "publish", read, visits))
    elif at == "publish":
        which = 2 - len(read)
        changed = tuple(read[0] + 2 if i == which else w for i, w in enumerate(state.objects))
        rest = read[1:]
        yield state.but(objects=changed, other=("publish" if rest else "go", rest, visits))
    elif at == "go":
        yield state.but(company=state.company - 1, other=("away", (), visits + 1))


def carrier_steps(state, fault):
    """Locks the first object and lets go of it, whatever has become of it."""
    at, word = state.carrier
    if at == "away":
        yield state.but(carriers=1, carrier=("come", 0))
    elif at == "come":
        at = "lock" if fault == "carriers_do_not_wait" else "wait"
        fenced = state if fault == "no_heavy_fence" else state.with_visible(len(state.buffer))
        yield fenced.but(carrier=(at, 0))
    elif at == "wait" and state.announced != PENDING:
        yield state.but(carrier=("lock", 0))
    elif at == "lock" and state.objects[0] % 2 == 0:
        word = state.objects[0]
        yield state.but(objects=(word + 1, state.objects[1]), carrier=("unlock", word))
    elif at == "unlock":
        yield state.but(objects=(word, state.objects[1]), carrier=("go", 0))
    elif at == "go":
        yield state.but(carriers=0, carrier=("gone", 0))


def fault_of(state, following):
    """What is wrong with a state, or an empty string."""
    at, _, read, _, commits = state.session
    if at == "announce" and read[0] != read[1]:
        return "a body has seen the objects differ"
    if not following:
        done = commits + state.other[2]
        if state.objects != (2 * done, 2 * done):
            return f"{done} commits, and {state.objects}"
        if (commits, state.other[2]) != (COMMITS, VISITS):
            return f"nobody goes on: {state.key()}"
    return ""


def explore(fault=None):
    """How many states were reached, and what is wrong with the first wrong one, if any."""
    start = State((0, 0), ALONE, 0, 0, (), ("start", None, (), 0, 0), ("away", (), 0), ("away", 0))
    seen = {start.key()}
    pending = [start]
    while pending:
        state = pending.pop()
        following = [
            *session_steps(state, fault),
            *other_steps(state, fault),
            *carrier_steps(state, fault),
        ]
        if wrong := fault_of(state, following):
            return len(seen), wrong
        for next_state in following:
            if next_state.key() not in seen:
                seen.add(next_state.key())
                pending.append(next_state)
    return len(seen), ""


def main():
    states, wrong = explore()
    print(f"{states} states: {wrong or 'nothing wrong'}")
    failed = bool(wrong)
    for fault, meaning in FAULTS.items():
        _, wrong = explore(fault)
        print(f"{fault} ({meaning}): {'found: ' + wrong if wrong else 'NOT FOUND'}")
        failed |= not wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

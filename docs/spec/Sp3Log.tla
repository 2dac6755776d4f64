------------------------------- MODULE Sp3Log -------------------------------
(***************************************************************************)
(* The log as it lies on media: runs of segments that are recycled after a *)
(* checkpoint, found again by their headers alone, among headers and       *)
(* records of earlier uses and earlier generations; and the superblock in  *)
(* its two copies, which say what of it still counts.                      *)
(*                                                                         *)
(* A cell is what is there whole or not at all: a header or a record whose *)
(* checksum holds.  A segment is C = R+1 cells; a run is contiguous, so    *)
(* its records may lie where a shorter run had a header.  The checksum's   *)
(* seed is modelled by comparing session and generation.                   *)
(*                                                                         *)
(* A transaction is one record that gives the session's own object a new   *)
(* value; there are no dependencies, so persisted is committed here.       *)
(* Sp3Design has the rest of the protocol.  A crash alone must never look  *)
(* like damage, lose what was acknowledged, or bring back what is history. *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANTS T,        \* sessions 1..T
          Segs,     \* segments in the log region
          R,        \* records that fit into a segment behind its header
          MaxRun,   \* segments in a run, at most
          Budget,   \* Budget[life][session]: records
          MaxCrash, MaxCkpt, Kinds, Mut
VARIABLES
  mem, med,  \* cells of the log region as the caches see them, and on media
  L,         \* per session: its log and counters
  home,      \* per session: the transaction whose version is home
  sb, sw,    \* the superblock copies 1 (A) and 2 (B); the one being written
  floor, ckn,   \* volatile: the floor, the number of the durable checkpoint
  ck, rv,
  gg, nc, bad   \* ghosts: life, crashes, verdict
vars == <<mem,med,L,home,sb,sw,floor,ckn,ck,rv,gg,nc,bad>>

Sess == 1..T
C == R+1
Cells == 0..(Segs*C-1)
m(x) == x \in Mut
Max(A) == CHOOSE x \in A : \A y \in A : y <= x
Min(A) == CHOOSE x \in A : \A y \in A : x <= y
Nil == [k |-> "-"]
Header(t, g, lsn, c, n) == [k |-> "h", s |-> t, g |-> g, lsn |-> lsn, c |-> c, n |-> n]
Record(t, g, lsn, st, id, upto) == [k |-> "r", s |-> t, g |-> g, lsn |-> lsn, st |-> st, id |-> id, upto |-> upto]
Id(t, lsn) == gg*100 + t*10 + lsn
Torn == [num |-> -1]
NoRun == [a |-> 0, n |-> 0, lsn |-> 0, last |-> 0, c |-> 0]
Log0 == [pc |-> "idle", runs |-> <<>>, cur |-> NoRun, at |-> 0, end |-> 0, hs |-> TRUE, next |-> 1, own |-> 0, st |-> <<>>, pend |-> {}, dur |-> 0]
CkIdle(n) == [ph |-> "idle", s |-> 0, heads |-> <<>>, cnt |-> n]
Up == [ph |-> "up", acc |-> <<>>, im |-> Torn, c |-> 0]
NoWrite == [c |-> 0, im |-> Torn]

Init == /\ mem = [x \in Cells |-> Nil] /\ med = mem
        /\ L = [t \in Sess |-> Log0] /\ home = [t \in Sess |-> 0]
        /\ sb = [c \in {1,2} |-> [num |-> 1, gen |-> 0, ckn |-> 0, L |-> 0, heads |-> [t \in Sess |-> 1]]]
        /\ sw = NoWrite /\ floor = 0 /\ ckn = 0
        /\ ck = CkIdle(0) /\ rv = Up /\ gg = 0 /\ nc = 0 /\ bad = "ok"
Live == rv.ph = "up" /\ bad = "ok"
Gen == sb[2].gen        \* of the running pool: both copies agree on it

(*------------------------- a session and its log -------------------------*)
SegsOf(r) == {r.a \div C + i : i \in 0..(r.n-1)}
Used == UNION {UNION {SegsOf(L[t].runs[i]) : i \in 1..Len(L[t].runs)} : t \in Sess}
Free(s, n) == s+n <= Segs /\ \A i \in s..(s+n-1) : i \notin Used
\* announce, and make sure that there is room: in the last run, or in a new one of free segments
InLastRun(t) == /\ L[t].at < L[t].end /\ L' = [L EXCEPT ![t].pc = "res"]
InNewRun(t) ==
  /\ L[t].at >= L[t].end \/ MaxRun > 1       \* too large for what is left of the last one
  /\ \E n \in 1..MaxRun, s \in 0..(Segs-1) :
       /\ Free(s, n)
       /\ LET old == L[t].runs
              run == [a |-> s*C, n |-> n, lsn |-> L[t].next, last |-> 0, c |-> ckn]
              closed == IF old = <<>> THEN old ELSE [old EXCEPT ![Len(old)].last = L[t].own]
          IN L' = [L EXCEPT ![t] = [@ EXCEPT !.pc = "res", !.hs = FALSE, !.at = s*C+1, !.end = (s+n)*C,
                        !.cur = run, !.runs = Append(closed, run)]]
Reserve(t) ==
  /\ Live /\ L[t].pc = "idle" /\ L[t].next <= Budget[gg+1][t]
  /\ InLastRun(t) \/ InNewRun(t)
  /\ UNCHANGED <<mem,med,home,sb,sw,floor,ckn,ck,rv,gg,nc,bad>>
\* the attempt fails, or the room was reserved for a body that runs afterwards: the run stays, empty
Withdraw(t) ==
  /\ Live /\ L[t].pc = "res" /\ L' = [L EXCEPT ![t].pc = "idle"]
  /\ UNCHANGED <<mem,med,home,sb,sw,floor,ckn,ck,rv,gg,nc,bad>>
\* take the stamp, store header (once) and record, seal, withdraw
Seal(t) ==
  /\ Live /\ L[t].pc = "res"
  /\ LET l == L[t]
         run == l.cur
         st == Max({l.own, floor}) + 1
         rec == Record(t, Gen, l.next, st, Id(t, l.next), IF m("uptoSealed") THEN l.next-1 ELSE l.dur)
         hd == IF l.hs THEN <<>> ELSE (run.a :> Header(t, Gen, run.lsn, run.c, run.n))
         new == hd @@ (l.at :> rec)
     IN /\ mem' = new @@ mem
        /\ L' = [L EXCEPT ![t] = [@ EXCEPT !.pc = "idle", !.at = @+1, !.hs = TRUE, !.next = @+1, !.own = st, !.st = Append(@, st),
                                           !.pend = @ \cup DOMAIN new]]
        \* only into what is the session's own
        /\ bad' = IF \E x \in DOMAIN new : \A i \in 1..Len(l.runs) : x \div C \notin SegsOf(l.runs[i])
                  THEN "OUTSIDE-ITS-RUN" ELSE bad
  /\ UNCHANGED <<med,home,sb,sw,floor,ckn,ck,rv,gg,nc>>
\* flush and fence; then it is persisted, and with no dependencies committed and acknowledged
Flush(t) ==
  /\ Live /\ L[t].pend # {}
  /\ med' = [x \in Cells |-> IF x \in L[t].pend THEN mem[x] ELSE med[x]]
  /\ L' = [L EXCEPT ![t].pend = {}, ![t].dur = L[t].next-1]
  /\ UNCHANGED <<mem,home,sb,sw,floor,ckn,ck,rv,gg,nc,bad>>
(*------------------------------- checkpoint ------------------------------*)
CkStart ==
  /\ Live /\ ck.ph = "idle" /\ ck.cnt < MaxCkpt
  /\ floor' = Max({floor+1} \cup {L[t].own : t \in Sess})
  /\ ck' = [ck EXCEPT !.ph = "settle", !.s = 1, !.cnt = @+1]
  /\ ckn' = IF m("numberEarly") THEN ckn+1 ELSE ckn
  /\ UNCHANGED <<mem,med,L,home,sb,sw,rv,gg,nc,bad>>
\* nobody announced, everything sealed up to the floor durable
CkSettle ==
  /\ Live /\ ck.ph = "settle"
  /\ LET l == L[ck.s] IN l.pc = "idle" /\ \A n \in (l.dur+1)..(l.next-1) : l.st[n] > floor
  /\ ck' = IF ck.s < T THEN [ck EXCEPT !.s = @+1] ELSE [ck EXCEPT !.ph = "home"]
  /\ UNCHANGED <<mem,med,L,home,sb,sw,floor,ckn,rv,gg,nc,bad>>
\* the newest committed versions, and the first LSN above the floor
HeadOf(t) == Min({n \in 1..(L[t].next-1) : L[t].st[n] > floor} \cup {L[t].next})
CkHome ==
  /\ Live /\ ck.ph = "home"
  /\ home' = [t \in Sess |-> IF L[t].dur > 0 THEN Id(t, L[t].dur) ELSE home[t]]
  /\ ck' = [ck EXCEPT !.ph = IF m("recycleEarly") THEN "recycle" ELSE "A", !.s = 1, !.heads = [t \in Sess |-> HeadOf(t)]]
  /\ UNCHANGED <<mem,med,L,sb,sw,floor,ckn,rv,gg,nc,bad>>
Image == [num |-> Max({sb[1].num, sb[2].num})+1, gen |-> Gen, ckn |-> Max({sb[1].ckn, sb[2].ckn})+1, L |-> floor, heads |-> ck.heads]
\* copy A, fence, copy B, fence; a copy that is being written may be torn by a crash
CkStore ==
  /\ Live /\ ck.ph \in {"A","B"} /\ sw.c = 0
  /\ sw' = [c |-> IF ck.ph = "A" THEN 1 ELSE 2, im |-> IF ck.ph = "A" THEN Image ELSE sb[1]]
  /\ UNCHANGED <<mem,med,L,home,sb,floor,ckn,ck,rv,gg,nc,bad>>
AfterB == IF m("recycleEarly") THEN CkIdle(ck.cnt) ELSE [ck EXCEPT !.ph = "recycle", !.s = 1]
CkFence ==
  /\ Live /\ ck.ph \in {"A","B"} /\ sw.c # 0
  /\ sb' = [sb EXCEPT ![sw.c] = sw.im] /\ sw' = NoWrite
  /\ ckn' = IF ck.ph = "B" /\ ~m("numberEarly") THEN sw.im.ckn ELSE ckn
  /\ ck' = IF ck.ph = "B" THEN AfterB ELSE [ck EXCEPT !.ph = IF m("oneCopy") THEN "recycle" ELSE "B"]
  /\ UNCHANGED <<mem,med,L,home,floor,rv,gg,nc,bad>>
\* a session's runs that hold nothing above the floor; its last one only while nothing is announced
CkRecycle ==
  /\ Live /\ ck.ph = "recycle"
  /\ LET t == ck.s
         l == L[t]
         n == Len(l.runs)
         old == {i \in 1..(n-1) : \A j \in 1..i : l.runs[j].last <= floor}
         cut == IF old = {} THEN 0 ELSE Max(old)
         with_last == n > 0 /\ cut = n-1 /\ l.own <= floor /\ (l.pc = "idle" \/ m("recycleBusy"))
     IN L' = [L EXCEPT ![t] = IF ~with_last THEN [@ EXCEPT !.runs = SubSeq(l.runs, cut+1, n)]
                              ELSE IF l.pc = "idle" THEN [@ EXCEPT !.runs = <<>>, !.cur = NoRun, !.at = 0, !.end = 0, !.hs = TRUE]
                              ELSE [@ EXCEPT !.runs = <<>>]]
  /\ ck' = IF ck.s < T THEN [ck EXCEPT !.s = @+1]
           ELSE IF m("recycleEarly") THEN [ck EXCEPT !.ph = "A"]
           ELSE CkIdle(ck.cnt)
  /\ UNCHANGED <<mem,med,home,sb,sw,floor,ckn,rv,gg,nc,bad>>
(*------------------------------ crash and scan ---------------------------*)
Crash ==
  /\ nc < MaxCrash /\ bad = "ok" /\ rv.ph # "open" /\ nc' = nc+1
  /\ \E kind \in Kinds :
       IF kind = "process" THEN UNCHANGED <<mem,med>>
       ELSE \E keep \in SUBSET {x \in Cells : mem[x] # med[x]} :
              med' = [x \in Cells |-> IF x \in keep THEN mem[x] ELSE med[x]] /\ mem' = med'
  /\ \E found \in (IF sw.c = 0 THEN {Torn} ELSE {sb[sw.c], sw.im, Torn}) :
       sb' = IF sw.c = 0 THEN sb ELSE [sb EXCEPT ![sw.c] = found]
  /\ sw' = NoWrite /\ ck' = CkIdle(ck.cnt) /\ rv' = [Up EXCEPT !.ph = "scan"]
  /\ L' = [t \in Sess |-> [Log0 EXCEPT !.dur = L[t].dur]]    \* ghost: what was acknowledged
  /\ UNCHANGED <<home,floor,ckn,gg,bad>>
\* the valid copy with the larger number; of equal ones B
Current == IF sb[1].num > sb[2].num THEN 1 ELSE 2
Now == sb[Current]
\* ---- what the checksums, the LSN and the stamp accept
SameGen(c) == c.g = Now.gen \/ m("noGeneration")
Valid(c, t) == c.k = "r" /\ (c.s = t \/ m("noSessionSeed")) /\ SameGen(c)
Next1(c, t, lsn, last) == Valid(c, t) /\ (c.lsn = lsn \/ m("noLsn")) /\ c.st > last
\* ---- 1. all headers of this generation: <<cell, header>>
Headers(out) == {x \in Cells \ out : x % C = 0 /\ mem[x].k = "h" /\ SameGen(mem[x])}
BadHeaders(out) == {x \in Cells \ out : x % C = 0 /\ mem[x].k = "h" /\ (mem[x].g > Now.gen \/ (SameGen(mem[x]) /\ mem[x].c > Now.ckn))}
\* ---- 2. one run from its first record: its records above the floor, from the head on
RECURSIVE Walk(_,_,_,_)
Walk(x, t, p, w) ==
  LET h == mem[x] IN
  IF p < h.n*C /\ Next1(mem[x+p], t, w.next, w.last)
  THEN LET c == mem[x+p]
           live == w.next >= Now.heads[t] /\ c.st > Now.L IN
       Walk(x, t, p+1, [w EXCEPT !.next = @+1, !.last = c.st, !.first = IF @ = 0 THEN c.st ELSE @, !.recs = IF live THEN Append(@, c) ELSE @])
  ELSE [w EXCEPT !.pos = p]
WalkRun(x, t) == Walk(x, t, 1, [next |-> mem[x].lsn, last |-> 0, first |-> 0, recs |-> <<>>, pos |-> 1])
\* ---- 3. a session's runs by first LSN, from the one that holds its head on, joined by exact LSN
RunsOf(t, out) == {x \in Headers(out) : mem[x].s = t /\ mem[x].c <= Now.ckn}
Candidates(t, out) == LET rs == RunsOf(t, out)
                          below == {x \in rs : mem[x].lsn <= Now.heads[t]}
                      IN IF below = {} THEN rs ELSE {x \in rs : mem[x].lsn >= Max({mem[y].lsn : y \in below})}
\* of runs with one first LSN, the one that goes on is meant
Best(xs, t) == IF Cardinality(xs) = 1 THEN Min(xs)
               ELSE LET to(x) == WalkRun(x, t).next IN CHOOSE x \in xs : \A y \in xs : to(y) < to(x) \/ (to(y) = to(x) /\ x <= y)
RECURSIVE Chain(_,_,_)
Chain(t, rest, c) ==
  IF rest = {} THEN c
  ELSE LET lsn == Min({mem[x].lsn : x \in rest})
           same == {x \in rest : mem[x].lsn = lsn}
           x == Best(same, t)
           w == WalkRun(x, t)
           c2 == [on |-> x, pos |-> w.pos, next |-> Max({c.next, w.next}), last |-> Max({c.last, w.last}), recs |-> c.recs \o w.recs,
                  live |-> IF w.recs = <<>> THEN c.live ELSE c.live \cup {x}]
       IN IF lsn > c.next THEN c
          ELSE IF c.on # -1 /\ lsn < c.next THEN Chain(t, rest \ same, c)
          ELSE IF c.on # -1 /\ w.first # 0 /\ w.first <= c.last THEN c
          ELSE IF w.next < c2.next THEN c2 ELSE Chain(t, rest \ same, c2)
ChainOf(t, out) == Chain(t, Candidates(t, out), [on |-> -1, pos |-> 0, next |-> Now.heads[t], last |-> 0, recs |-> <<>>, live |-> {}])
\* ---- 4. what looks like a header inside a run that holds a record above the floor is none
Inside(chains) == UNION {UNION {{y \in Cells : y > x /\ y < x + mem[x].n*C /\ y % C = 0} : x \in chains[t].live} : t \in Sess}
RECURSIVE Settled(_)
Settled(out) == LET chains == [t \in Sess |-> ChainOf(t, out)]
                    more == Inside(chains) \cap Headers(out)
                IN IF more = {} THEN [out |-> out, chains |-> chains] ELSE Settled(out \cup more)
\* ---- 5. witnesses behind the end: a record of the session that says how far its log was durable
Beyond(t, c, out) ==
  LET tail == IF c.on = -1 THEN {} ELSE {c.on+p : p \in c.pos..(mem[c.on].n*C-1)}
      later == UNION {{x+p : p \in 1..(mem[x].n*C-1)} : x \in {y \in Candidates(t, out) : y # c.on /\ mem[y].lsn >= c.next}}
  IN {y \in (tail \cup later) \cap Cells : Valid(mem[y], t) /\ mem[y].lsn > c.next}
Damaged(t, c, out) == \E y \in Beyond(t, c, out) : mem[y].upto >= c.next
\* ---- ghost: what the prefix must be
Wrong(t, recs) == \E i \in 1..Len(recs) : recs[i].id # Id(t, Now.heads[t]+i-1)
LsnOf(t, id) == IF id \div 10 = (gg*100 + t*10) \div 10 THEN id % 10 ELSE 0
RvScan ==
  /\ rv.ph = "scan" /\ bad = "ok"
  /\ IF Now.num = -1 THEN bad' = "NO-SUPERBLOCK" /\ UNCHANGED <<rv,med>>
     ELSE LET scan == Settled({})
              acc == [t \in Sess |-> scan.chains[t].recs]
              final(t) == IF acc[t] = <<>> THEN home[t] ELSE acc[t][Len(acc[t])].id
              met == {mem[x].st : x \in {y \in Cells : mem[y].k = "r" /\ SameGen(mem[y])}}
          IN /\ bad' = IF BadHeaders(scan.out) # {} \/ \E t \in Sess : Damaged(t, scan.chains[t], scan.out) THEN "DAMAGE-BUT-ONLY-A-CRASH"
                       ELSE IF \E t \in Sess : Wrong(t, acc[t]) THEN "NOT-THE-PREFIX"
                       ELSE IF \E t \in Sess : LsnOf(t, final(t)) < L[t].dur THEN "ACKNOWLEDGED-LOST" ELSE "ok"
             /\ rv' = [ph |-> "replay", acc |-> acc, c |-> 3-Current,
                       im |-> [num |-> Now.num+1, gen |-> Now.gen+1, ckn |-> Now.ckn+1, L |-> Max({Now.L} \cup met), heads |-> [t \in Sess |-> 1]]]
             /\ med' = mem      \* the log is durable before any home is stored to
  /\ UNCHANGED <<mem,L,home,sb,sw,floor,ckn,ck,gg,nc>>
RvReplay ==
  /\ rv.ph = "replay" /\ bad = "ok"
  /\ home' = [t \in Sess |-> IF rv.acc[t] = <<>> THEN home[t] ELSE rv.acc[t][Len(rv.acc[t])].id]
  /\ rv' = [rv EXCEPT !.ph = "first", !.acc = <<>>]
  /\ UNCHANGED <<mem,med,L,sb,sw,floor,ckn,ck,gg,nc,bad>>
\* the copy that is not current first, then the other
RvStore ==
  /\ rv.ph \in {"first","second"} /\ sw.c = 0 /\ bad = "ok"
  /\ sw' = [c |-> IF rv.ph = "first" THEN rv.c ELSE 3-rv.c, im |-> rv.im]
  /\ UNCHANGED <<mem,med,L,home,sb,floor,ckn,ck,rv,gg,nc,bad>>
RvFence ==
  /\ rv.ph \in {"first","second"} /\ sw.c # 0 /\ bad = "ok"
  /\ sb' = [sb EXCEPT ![sw.c] = sw.im] /\ sw' = NoWrite
  /\ rv' = [rv EXCEPT !.ph = IF @ = "first" /\ ~m("openAfterOne") THEN "second" ELSE "open"]
  /\ UNCHANGED <<mem,med,L,home,floor,ckn,ck,gg,nc,bad>>
RvOpen ==
  /\ rv.ph = "open" /\ bad = "ok"
  /\ rv' = Up /\ gg' = gg+1 /\ L' = [t \in Sess |-> Log0] /\ floor' = rv.im.L /\ ckn' = rv.im.ckn
  /\ UNCHANGED <<mem,med,home,sb,sw,ck,nc,bad>>
(*-------------------------------------------------------------------------*)
Next == \/ \E t \in Sess : Reserve(t) \/ Withdraw(t) \/ Seal(t) \/ Flush(t)
        \/ CkStart \/ CkSettle \/ CkHome \/ CkStore \/ CkFence \/ CkRecycle
        \/ Crash \/ RvScan \/ RvReplay \/ RvStore \/ RvFence \/ RvOpen
Spec == Init /\ [][Next]_vars
(*------------------------------- invariants ------------------------------*)
\* a crash alone never looks like damage
NoFalseDamage == bad # "DAMAGE-BUT-ONLY-A-CRASH"
\* recovery reads exactly this life's records of this session, from the head on without a gap
ExactPrefix == bad # "NOT-THE-PREFIX"
NothingAcknowledgedIsLost == bad # "ACKNOWLEDGED-LOST"
\* at any instant one superblock copy is whole
OneCopyIsWhole == bad # "NO-SUPERBLOCK"
\* a session writes into segments of its own only
InsideItsRun == bad # "OUTSIDE-ITS-RUN"
SegmentsAreExclusive == \A t, u \in Sess : \A i \in 1..Len(L[t].runs), j \in 1..Len(L[u].runs) :
                          <<t,i>> # <<u,j>> => SegsOf(L[t].runs[i]) \cap SegsOf(L[u].runs[j]) = {}
=============================================================================

------------------------------ MODULE Sp3Alloc ------------------------------
(***************************************************************************)
(* Allocation: slots that are made, destroyed and used again; a slab that  *)
(* empties and takes another type.                                         *)
(*                                                                         *)
(* One slab of Z slots that can be free or of class "A" or "B".  A         *)
(* transaction makes one object or destroys one.  The record of a make IS  *)
(* the persistent allocation; a checkpoint writes the bitmap.  A slot is   *)
(* free for its session's next make as soon as its destruction is          *)
(* published, long before that is durable.                                 *)
(*                                                                         *)
(* The log is a sequence per session whose prefix survives, publish and    *)
(* seal are one event, the superblock is one write: Sp3Log and Sp3Design   *)
(* look closer at these.  All transactions are asynchronous.               *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANTS T, Z, Classes,
          Budget,   \* Budget[life][session]: attempts
          MaxCrash, MaxCkpt, Mut
VARIABLES
  S,        \* per session: attempt in progress, stamps, committed records, free list
  log, dur, \* records; how many of them are durable
  cls,      \* the slab's class in DRAM, "free" if it has none
  ent,      \* entries; ghosts: al (it is an object), wid (who wrote the version)
  claimed,  \* slots that are objects, in flight, or in a session's free list
  hb,       \* DRAM bitmap: homes that hold an object
  news,     \* slab carved since the last checkpoint; slab freed at the end of the last one
  floor, ck,
  home, sb, \* media: homes; superblock with the directory record [L, from, cls, bm]
  rv, seq, hist, acked, base, gg, nc, bad
vars == <<S,log,dur,cls,ent,claimed,hb,news,floor,ck,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>

Sess == 1..T
Slots == 1..Z
m(x) == x \in Mut
Max(A) == CHOOSE x \in A : \A y \in A : y <= x
Id(t) == gg*100 + t*10 + S[t].nt + 1
Entry0(alive, w) == [st |-> 0, se |-> 0, at |-> "home", lk |-> 0, al |-> alive, wid |-> w]
None == [pc |-> "idle", op |-> "-", z |-> 0, dep |-> <<0,0>>, stm |-> 0]
Fresh == [own |-> 0, com |-> 0, nt |-> 0, free |-> {}] @@ None
Rest(s) == [own |-> s.own, com |-> s.com, nt |-> s.nt+1, free |-> s.free] @@ None
CkIdle(n) == [ph |-> "idle", td |-> {}, cap |-> <<>>, dirty |-> FALSE, cnt |-> n]
Quiet == [carved |-> FALSE, freed |-> FALSE]

Init == /\ S = [t \in Sess |-> Fresh] /\ log = [t \in Sess |-> <<>>] /\ dur = [t \in Sess |-> 0]
        /\ cls = "free" /\ ent = [z \in Slots |-> Entry0(FALSE, 0)] /\ claimed = {} /\ hb = {}
        /\ news = Quiet /\ floor = 0 /\ ck = CkIdle(0)
        /\ home = [z \in Slots |-> 0] /\ sb = [L |-> 0, from |-> [t \in Sess |-> 1], cls |-> "free", bm |-> {}]
        /\ rv = [ph |-> "up"] /\ seq = 0 /\ hist = {} /\ acked = {} /\ base = [z \in Slots |-> 0]
        /\ gg = 0 /\ nc = 0 /\ bad = "ok"
Live == rv.ph = "up" /\ bad = "ok"
At(t, n) == log[t][n]
Index(t, st) == {n \in 1..Len(log[t]) : At(t,n).st = st}

(*------------------------------ transactions -----------------------------*)
MayBegin(t) == Live /\ S[t].pc = "idle" /\ S[t].nt < Budget[gg+1][t]
\* take a slot from the own free list, else from the slab, carving it if it is free; lock its entry
Make(t) ==
  /\ MayBegin(t)
  /\ \E c \in Classes, z \in Slots :
       LET own == cls = c /\ z \in S[t].free
           carve == cls = "free"
           e == IF carve THEN Entry0(FALSE, 0) ELSE ent[z] IN
       /\ own \/ (cls \in {c, "free"} /\ S[t].free = {} /\ (z \notin claimed \/ carve))
       /\ e.lk = 0
       /\ cls' = c /\ news' = IF carve THEN [news EXCEPT !.carved = TRUE] ELSE news
       /\ claimed' = (IF carve THEN {} ELSE claimed) \cup {z}
       /\ hb' = IF carve THEN {} ELSE hb
       /\ ent' = [y \in Slots |-> IF y = z THEN [e EXCEPT !.lk = t] ELSE IF carve THEN Entry0(FALSE, 0) ELSE ent[y]]
       /\ S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = "held", !.op = "make", !.z = z, !.free = @ \ {z}]]
       /\ bad' = IF e.al THEN "LIVE-OBJECT-OVERWRITTEN" ELSE bad
  /\ UNCHANGED <<log,dur,floor,ck,home,sb,rv,seq,hist,acked,base,gg,nc>>
Destroy(t) ==
  /\ MayBegin(t)
  /\ \E z \in Slots : /\ cls # "free" /\ ent[z].lk = 0 /\ ent[z].al
                      /\ ent' = [ent EXCEPT ![z].lk = t]
                      /\ S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = "held", !.op = "destroy", !.z = z]]
  /\ UNCHANGED <<log,dur,cls,claimed,hb,news,floor,ck,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
\* what holds the slot now is overwritten, be it a tombstone: the destroyer is a predecessor
Stamp(t) ==
  /\ Live /\ S[t].pc = "held"
  /\ LET e == ent[S[t].z]
         blind == m("reuseNoDependency") /\ S[t].op = "make"
         needs == e.st # 0 /\ e.se # t /\ e.st > S[e.se].com /\ ~blind
         st == Max({S[t].own, floor, IF blind THEN 0 ELSE e.st}) + 1
     IN S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = "stamped", !.dep = IF needs THEN <<e.st, e.se>> ELSE <<0,0>>, !.stm = st, !.own = st]]
  /\ UNCHANGED <<log,dur,cls,ent,claimed,hb,news,floor,ck,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
\* validation failed, or the body gave up: what was taken goes back
Abort(t) ==
  /\ Live /\ S[t].pc = "stamped"
  /\ ent' = [ent EXCEPT ![S[t].z].lk = 0]
  /\ S' = [S EXCEPT ![t] = [Rest(@) EXCEPT !.free = IF S[t].op = "make" THEN (IF m("abortKeepsSlot") THEN @ ELSE @ \cup {S[t].z})
                                                    ELSE IF m("abortFreesSlot") THEN @ \cup {S[t].z} ELSE @]]
  /\ UNCHANGED <<log,dur,cls,claimed,hb,news,floor,ck,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
\* publish and seal; a destroyed object's slot is free for the session at once
Publish(t) ==
  /\ Live /\ S[t].pc = "stamped"
  /\ LET s == S[t]
         made == s.op = "make"
         rec == [id |-> Id(t), st |-> s.stm, op |-> s.op, z |-> s.z, c |-> cls, dep |-> s.dep]
     IN /\ ent' = [ent EXCEPT ![s.z] = [st |-> s.stm, se |-> t, at |-> IF made THEN "dram" ELSE "tomb", lk |-> 0, al |-> made, wid |-> Id(t)]]
        /\ log' = [log EXCEPT ![t] = Append(@, rec)]
        /\ hist' = hist \cup {[id |-> Id(t), t |-> t, st |-> s.stm, op |-> s.op, z |-> s.z, c |-> cls, prev |-> ent[s.z].wid, seq |-> seq]}
        /\ seq' = seq+1
        /\ S' = [S EXCEPT ![t] = [Rest(@) EXCEPT !.free = IF made THEN @ ELSE @ \cup {s.z}]]
  /\ UNCHANGED <<dur,cls,claimed,hb,news,floor,ck,home,sb,rv,acked,base,gg,nc,bad>>
\* what a session does not need goes back to the slab (a long free list; close)
GiveBack(t) ==
  /\ Live /\ S[t].pc = "idle" /\ S[t].free # {}
  /\ claimed' = claimed \ S[t].free /\ S' = [S EXCEPT ![t].free = {}]
  /\ UNCHANGED <<log,dur,cls,ent,hb,news,floor,ck,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
Flush(t) ==
  /\ Live /\ dur[t] < Len(log[t]) /\ dur' = [dur EXCEPT ![t] = Len(log[t])]
  /\ UNCHANGED <<S,log,cls,ent,claimed,hb,news,floor,ck,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
Advance(t) ==
  /\ Live
  /\ \E n \in 1..dur[t] :
       /\ At(t,n).st > S[t].com /\ \A k \in 1..(n-1) : At(t,k).st <= S[t].com
       /\ LET d == At(t,n).dep IN IF d[1] = 0 THEN TRUE ELSE d[1] <= S[d[2]].com
       /\ S' = [S EXCEPT ![t].com = At(t,n).st] /\ acked' = acked \cup {At(t,n).id}
  /\ UNCHANGED <<log,dur,cls,ent,claimed,hb,news,floor,ck,home,sb,rv,seq,hist,base,gg,nc,bad>>
(*------------------------------- checkpoint ------------------------------*)
CkStart ==
  /\ Live /\ ck.ph = "idle" /\ ck.cnt < MaxCkpt
  /\ floor' = Max({floor+1} \cup {S[t].own : t \in Sess})
  /\ ck' = [ck EXCEPT !.ph = "settle", !.cnt = @+1]
  /\ UNCHANGED <<S,log,dur,cls,ent,claimed,hb,news,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
Above(t) == {n \in 1..Len(log[t]) : At(t,n).st > sb.L}
CkSettle ==
  /\ Live /\ ck.ph = "settle"
  /\ \A t \in Sess : /\ S[t].pc = "stamped" => S[t].stm > floor
                     /\ \A n \in Above(t) : At(t,n).st <= floor => At(t,n).st <= S[t].com
  /\ ck' = [ck EXCEPT !.ph = "cap", !.td = UNION {{At(t,n).z : n \in {k \in Above(t) : At(t,k).st <= floor}} : t \in Sess}]
  /\ UNCHANGED <<S,log,dur,cls,ent,claimed,hb,news,floor,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
CkCapture ==
  /\ Live /\ ck.ph = "cap"
  /\ IF ck.td = {} THEN ck' = [ck EXCEPT !.ph = "home"]
     ELSE \E z \in ck.td : /\ ent[z].lk = 0
                           /\ ck' = [ck EXCEPT !.td = @ \ {z}, !.cap = IF ent[z].at = "home" THEN @ ELSE (z :> ent[z]) @@ @]
  /\ UNCHANGED <<S,log,dur,cls,ent,claimed,hb,news,floor,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
\* committed, then home; the DRAM bitmap follows what was captured, not what is there now
CkHome ==
  /\ Live /\ ck.ph = "home" /\ \A z \in DOMAIN ck.cap : ck.cap[z].st <= S[ck.cap[z].se].com
  /\ LET objects == {z \in DOMAIN ck.cap : ck.cap[z].at = "dram"} IN
     /\ home' = [z \in Slots |-> IF z \in objects THEN ck.cap[z].wid ELSE home[z]]
     /\ hb' = (hb \ DOMAIN ck.cap) \cup objects
     /\ ck' = [ck EXCEPT !.ph = "sb", !.dirty = news.carved \/ \E z \in DOMAIN ck.cap : (z \in hb) # (z \in objects)]
     /\ news' = [news EXCEPT !.carved = FALSE]
  /\ UNCHANGED <<S,log,dur,cls,ent,claimed,floor,sb,rv,seq,hist,acked,base,gg,nc,bad>>
\* the slab that the last checkpoint freed, then the slabs that changed: it may be one of them again
Freed(r) == [r EXCEPT !.cls = "free", !.bm = {}]
Changed(r) == [r EXCEPT !.cls = cls, !.bm = IF m("liveBitmap") THEN {z \in Slots : ent[z].al} ELSE hb]
Metadata == LET f(r) == IF news.freed THEN Freed(r) ELSE r
                d(r) == IF ck.dirty THEN Changed(r) ELSE r
            IN IF m("freedLast") THEN f(d(sb)) ELSE d(f(sb))
CkSb ==
  /\ Live /\ ck.ph = "sb"
  /\ sb' = [Metadata EXCEPT !.L = floor,
              !.from = [t \in Sess |-> 1 + Cardinality({n \in 1..Len(log[t]) : At(t,n).st <= floor})]]
  /\ news' = [news EXCEPT !.freed = FALSE]
  /\ ck' = [ck EXCEPT !.ph = "swing"]
  /\ UNCHANGED <<S,log,dur,cls,ent,claimed,hb,floor,home,rv,seq,hist,acked,base,gg,nc,bad>>
CkSwing ==
  /\ Live /\ ck.ph = "swing"
  /\ ent' = [z \in Slots |-> IF z \in DOMAIN ck.cap /\ ent[z].lk = 0 /\ ent[z].st = ck.cap[z].st THEN [ent[z] EXCEPT !.at = "home"] ELSE ent[z]]
  /\ ck' = [ck EXCEPT !.ph = "recycle"]
  /\ UNCHANGED <<S,log,dur,cls,claimed,hb,news,floor,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
\* A slab is free when nobody has a slot of it, none is home, and no record above the floor names one
\* (the last one that did left its stamp in the entry).
Empty == /\ cls # "free"
         /\ claimed = {} \/ m("freeClaimed")
         /\ \A z \in Slots : ent[z].lk = 0 /\ (ent[z].st <= floor \/ m("freeAboveFloor"))
         /\ hb = {}
CkRecycle ==
  /\ Live /\ ck.ph = "recycle"
  /\ IF Empty THEN cls' = "free" /\ news' = [news EXCEPT !.freed = TRUE, !.carved = FALSE] ELSE UNCHANGED <<cls,news>>
  /\ ck' = CkIdle(ck.cnt)
  /\ UNCHANGED <<S,log,dur,ent,claimed,hb,floor,home,sb,rv,seq,hist,acked,base,gg,nc,bad>>
(*--------------------------- crash and recovery --------------------------*)
\* any durable prefix or more survives
Crash ==
  /\ nc < MaxCrash /\ Live /\ nc' = nc+1
  /\ \E d \in [Sess -> 0..Max(({Len(log[t]) : t \in Sess}) \cup {0})] :
       /\ \A t \in Sess : d[t] \in dur[t]..Len(log[t])
       /\ rv' = [ph |-> "scan", d |-> d]
  /\ S' = [t \in Sess |-> Fresh] /\ ck' = CkIdle(ck.cnt) /\ news' = Quiet
  /\ UNCHANGED <<log,dur,cls,ent,claimed,hb,floor,home,sb,seq,hist,acked,base,gg,bad>>
RECURSIVE Cut(_)
Cut(d) == LET ok(r) == LET x == r.dep IN IF x[1] <= sb.L THEN TRUE ELSE \E n \in Index(x[2], x[1]) : n <= d[x[2]]
              d2 == [t \in Sess |-> LET out == {n \in sb.from[t]..d[t] : ~ok(At(t,n))} IN
                                    IF out = {} THEN d[t] ELSE (CHOOSE n \in out : \A k \in out : n <= k) - 1]
          IN IF d2 = d THEN d ELSE Cut(d2)
RECURSIVE Replay(_,_)
Replay(Rs, im) == IF Rs = {} THEN im
  ELSE LET r == CHOOSE x \in Rs : \A y \in Rs : x.st <= y.st IN
       Replay(Rs \ {r}, IF r.op = "make" THEN [im EXCEPT !.bm = @ \cup {r.z}, !.home[r.z] = r.id] ELSE [im EXCEPT !.bm = @ \ {r.z}])
\* ---- ghost: who last wrote a slot among those that are there
LastOf(V, z) == LET c == {h \in hist : h.z = z /\ h.id \in V} IN IF c = {} THEN base[z] ELSE
                LET h == CHOOSE x \in c : \A y \in c : y.seq <= x.seq IN IF h.op = "make" THEN h.id ELSE 0
Recover ==
  /\ rv.ph = "scan" /\ bad = "ok"
  /\ LET d == Cut(rv.d)
         A == UNION {{At(t,n) : n \in sb.from[t]..d[t]} : t \in Sess}
         classes == {r.c : r \in A}
         carve == \E r \in A : r.op = "make" /\ r.c # sb.cls
         damage == Cardinality(classes) > 1 \/ (~carve /\ \E r \in A : r.c # sb.cls)
         c == IF carve THEN CHOOSE x \in classes : TRUE ELSE sb.cls
         im == Replay(A, [home |-> home, bm |-> IF carve THEN {} ELSE sb.bm])
         V == {r.id : r \in A} \cup {h.id : h \in {x \in hist : x.st <= sb.L /\ x.id \in acked}}
     IN /\ bad' = IF damage THEN "DAMAGE-BUT-ONLY-A-CRASH"
                  ELSE IF ~(acked \subseteq V) THEN "ACKNOWLEDGED-LOST"
                  ELSE IF \E h \in hist : h.id \in V /\ h.prev # 0 /\ h.prev \div 100 = gg /\ h.prev \notin V THEN "NOT-CLOSED"
                  ELSE IF \E z \in Slots : LET w == LastOf(V, z) IN (z \in im.bm) # (w # 0) \/ (w # 0 /\ im.home[z] # w) THEN "WRONG-OBJECTS"
                  ELSE "ok"
        /\ home' = im.home
        /\ sb' = [L |-> Max({sb.L} \cup {h.st : h \in hist}), from |-> [t \in Sess |-> 1], cls |-> c, bm |-> im.bm]
  /\ rv' = [ph |-> "open"]
  /\ UNCHANGED <<S,log,dur,cls,ent,claimed,hb,news,floor,ck,seq,hist,acked,base,gg,nc>>
\* an empty slab is free again whatever its record says: no record names a slot of it
Open ==
  /\ rv.ph = "open" /\ bad = "ok"
  /\ rv' = [ph |-> "up"] /\ floor' = sb.L /\ cls' = IF sb.bm = {} THEN "free" ELSE sb.cls
  /\ claimed' = sb.bm /\ hb' = sb.bm
  /\ base' = [z \in Slots |-> IF z \in sb.bm THEN home[z] ELSE 0]
  /\ ent' = [z \in Slots |-> Entry0(z \in sb.bm, IF z \in sb.bm THEN home[z] ELSE 0)]
  /\ log' = [t \in Sess |-> <<>>] /\ dur' = [t \in Sess |-> 0] /\ seq' = 0 /\ hist' = {} /\ acked' = {} /\ gg' = gg+1
  /\ UNCHANGED <<S,news,ck,home,sb,nc,bad>>
(*-------------------------------------------------------------------------*)
Next == \/ \E t \in Sess : Make(t) \/ Destroy(t) \/ Stamp(t) \/ Abort(t) \/ Publish(t) \/ GiveBack(t) \/ Flush(t) \/ Advance(t)
        \/ CkStart \/ CkSettle \/ CkCapture \/ CkHome \/ CkSb \/ CkSwing \/ CkRecycle
        \/ Crash \/ Recover \/ Open
Spec == Init /\ [][Next]_vars
(*------------------------------- invariants ------------------------------*)
NoFalseDamage == bad # "DAMAGE-BUT-ONLY-A-CRASH"
NothingAcknowledgedIsLost == bad # "ACKNOWLEDGED-LOST"
\* who uses a slot again stands on who freed it
DependencyClosed == bad # "NOT-CLOSED"
\* bitmap and homes are those of the transactions that are there
RightObjects == bad # "WRONG-OBJECTS"
NoLiveObjectIsOverwritten == bad # "LIVE-OBJECT-OVERWRITTEN"
\* every slot of the slab is an object, in flight, in exactly one free list, or the slab's: none leaks
InFlight == {S[t].z : t \in {u \in Sess : S[u].op = "make"}}
Objects == {z \in Slots : ent[z].al}
SlotsAreAccountedFor == Live /\ cls # "free" =>
  /\ claimed = InFlight \cup Objects \cup UNION {S[t].free : t \in Sess}
  /\ \A t, u \in Sess : t # u => S[t].free \cap S[u].free = {}
  /\ \A t \in Sess : S[t].free \cap (InFlight \cup Objects) = {}
=============================================================================

------------------------------ MODULE Sp3Design ------------------------------
(***************************************************************************)
(* Commit, checkpoint and recovery as the code does them, at the grain of  *)
(* one memory event per action wherever the order of events matters.       *)
(* README.md maps every action to the function it stands for.              *)
(*                                                                         *)
(* Mut = {} is the code.  Each name in Mut undoes one rule; mutants.txt    *)
(* says which invariant must then fail.                                    *)
(*                                                                         *)
(* Values.  An object is Words words; a word holds the id of the last      *)
(* transaction that wrote it (0 = what the pool held when opened), so a    *)
(* wrong replay of a delta is visible.  A write set maps object -> set of  *)
(* words: a proper subset is a delta record, all of Words is an image.     *)
(*                                                                         *)
(* Clocks.  With Phys # {} a clock shows ANY member of Phys at every       *)
(* reading, even a smaller one than before: only what holds without        *)
(* trusting clocks can pass.  With Phys = {} all cores read one clock that *)
(* ticks with every reading; then stamps are a serial order.               *)
(*                                                                         *)
(* Media.  med/home/sb survive power loss.  mem is the log as the caches   *)
(* see it; a power loss keeps an arbitrary subset of the differing slots,  *)
(* a killed process keeps all of mem without making it durable.  The log   *)
(* is a ring of N records here; segments are Sp3Log's matter.              *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANTS T,        \* sessions 1..T
          K,        \* objects 1..K
          Words,    \* words of an object
          N,        \* log capacity of a session in records (circular: slots get reused)
          Budget,   \* Budget[life][session] = number of attempts
          MaxCrash, MaxCkpt,
          Phys,     \* what a clock may show; {}: one clock that ticks with every reading
          Menu,     \* transactions to choose from: Menu[t] = set of [r: objects, w: object -> words]
          Async,    \* TRUE: run_async (the session goes on once the record is sealed)
          LockAt,   \* "enc" | "commit"
          Policy,   \* "speculative" | "conservative"
          Kinds,    \* subset of {"power","process"}
          Mut
VARIABLES
  S,      \* per session: program counter, private state, own/com/ann shared words
  ent,    \* entries: stamp, session, at home?, lock owner, image; ghosts gv (version no) and wid (writer)
  floor,  \* published checkpoint floor
  mem, med, tail, dur,    \* log slots as cached / on media; absolute append and flushed positions
  home, sb,               \* persistent home slots; superblock [L, gen, head]
  ck,     \* checkpoint in progress
  rv,     \* recovery in progress
  clk,    \* the ticking clock (Phys = {})
  hist, acked, base, gg, nc, bad   \* ghosts: validated tx, acknowledged ids, opening image, life number, crash count
vars == <<S,ent,floor,mem,med,tail,dur,home,sb,ck,rv,clk,hist,acked,base,gg,nc,bad>>
logv == <<mem,med,tail,dur>>
ghost == <<hist,acked,base,gg,nc,bad>>

Sess == 1..T
Obj  == 1..K
Slots == 0..(N-1)
Nil == [id |-> 0]
m(x) == x \in Mut
Max(A) == CHOOSE x \in A : \A y \in A : y <= x
Min(A) == CHOOSE x \in A : \A y \in A : x <= y
Put(im, ws, id) == [x \in Words |-> IF x \in ws THEN id ELSE im[x]]
NoDep == [u \in Sess |-> 0]
NoTx == [r |-> {}, w |-> <<>>]
W(t) == DOMAIN S[t].tx.w
Pending == -1      \* announced, no stamp yet

Idle == [pc |-> "idle", td |-> {}, tx |-> NoTx, rd |-> <<>>, fl |-> 0, dep |-> NoDep, stm |-> 0, obs |-> {}, pre |-> {}]
\* back to idle; keeps what outlives a transaction
ToIdle(s) == [own |-> s.own, com |-> s.com, ann |-> 0, nt |-> s.nt, need |-> FALSE] @@ Idle
Fresh == [own |-> 0, com |-> 0, ann |-> 0, nt |-> 0, need |-> FALSE] @@ Idle
CkIdle(c) == [ph |-> "idle", s |-> 0, cap |-> <<>>, td |-> {}, gr |-> {}, cnt |-> c]
Up == [ph |-> "up", q |-> <<>>, ids |-> {}, v |-> {}, top |-> 0]   \* v: ghost, who must be in the image
Img0 == [x \in Words |-> 0]
Entry0(im) == [st |-> 0, se |-> 0, hm |-> TRUE, lk |-> 0, img |-> im, gv |-> 0, wid |-> 0]

Init == /\ S = [t \in Sess |-> Fresh]
        /\ ent = [k \in Obj |-> Entry0(Img0)]
        /\ floor = 0
        /\ mem = [t \in Sess |-> [q \in Slots |-> Nil]] /\ med = mem
        /\ tail = [t \in Sess |-> 0] /\ dur = tail
        /\ home = [k \in Obj |-> Img0] /\ base = home
        /\ sb = [L |-> 0, gen |-> 0, head |-> [t \in Sess |-> 0]]
        /\ ck = CkIdle(0) /\ rv = Up /\ clk = 0
        /\ hist = {} /\ acked = {} /\ gg = 0 /\ nc = 0 /\ bad = "ok"

Live == rv.ph = "up" /\ bad = "ok"
At(t, p) == mem[t][p % N]                 \* record at absolute position p of t's log
LivePos(t) == sb.head[t]..(tail[t]-1)
Room(t) == tail[t] - sb.head[t] < N
\* pinned from the first access to the end of publish (conservative: while it persists, too)
Pinned(t) == \/ S[t].pc \in {"read","lock","ann","res","fl","stamp","val","pub"}
             \/ S[t].pc = "app" /\ Policy = "conservative"
Id(t) == gg*100 + t*10 + S[t].nt + 1
\* readings of the clock, and the clock after one
Readings == IF Phys = {} THEN {clk+1} ELSE Phys
Tick == clk' = IF Phys = {} THEN clk+1 ELSE clk

(*------------------------------ read phase -------------------------------*)
\* Objects observed before anything is locked.  With locks at commit every private copy was made
\* from a version seen earlier; at encounter, copy and lock are one instant.
Looks(tx) == tx.r \cup (IF LockAt = "commit" THEN DOMAIN tx.w ELSE {})
Reserving == IF MaxCkpt = 0 THEN "res" ELSE IF m("noDekker") THEN "fl" ELSE "ann"
AfterRead(tx) == IF DOMAIN tx.w = {} THEN IF Cardinality(tx.r) > 1 THEN "val" ELSE "ro"
                 ELSE IF LockAt = "commit" THEN Reserving ELSE "lock"
Begin(t) ==
  /\ Live /\ S[t].pc = "idle" /\ S[t].nt < Budget[gg+1][t]
  \* an attempt that found the log full waited for room, unpinned and with nothing locked
  /\ S[t].need => Room(t)
  /\ \E tx \in Menu[t] :
       LET first == IF Looks(tx) # {} THEN "read" ELSE AfterRead(tx) IN
       S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = first, !.tx = tx, !.obs = acked,
                                !.td = IF first = "read" THEN Looks(tx) ELSE DOMAIN tx.w]]
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,clk,ghost>>
Read(t) ==
  /\ Live /\ S[t].pc = "read"
  /\ LET k == Min(S[t].td)  e == ent[k]  td2 == S[t].td \ {k}  tx == S[t].tx IN
     /\ e.lk \in {0,t}                                        \* bounded spin, seen as a wait
     /\ S' = [S EXCEPT ![t] = [@ EXCEPT
           !.rd = (k :> [st |-> e.st, se |-> e.se, gv |-> e.gv, wid |-> e.wid, hm |-> e.hm, img |-> e.img]) @@ @,
           !.pc = IF td2 # {} THEN "read" ELSE AfterRead(tx),
           !.td = IF td2 # {} THEN td2 ELSE IF DOMAIN tx.w = {} THEN tx.r ELSE DOMAIN tx.w]]
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,clk,ghost>>
\* An attempt that fails is over: a retry is one more transaction of the budget.  Its stamp, if it
\* took one, stays taken.
Abort(t) == /\ S' = [S EXCEPT ![t] = [ToIdle(@) EXCEPT !.nt = @+1]]
            /\ ent' = [k \in Obj |-> IF ent[k].lk = t THEN [ent[k] EXCEPT !.lk = 0] ELSE ent[k]]

(*------------------------------- the five steps --------------------------*)
\* Dekker: announce, then read the floor (noDekker: the StoreLoad fence is missing, so the read comes first)
Announce(t) ==
  /\ Live /\ S[t].pc = "ann"
  /\ S' = [S EXCEPT ![t] = [@ EXCEPT !.ann = Pending, !.pc = "res"]]
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,clk,ghost>>
\* Step 0.  No room: abort, and wait for it with nothing in hand (reservePinned: wait here instead)
Reserve(t) ==
  /\ Live /\ S[t].pc = "res"
  /\ IF Room(t) THEN /\ S' = [S EXCEPT ![t].pc = IF LockAt = "commit" THEN "lock" ELSE "stamp", ![t].td = W(t)]
                     /\ UNCHANGED ent
     ELSE /\ ~m("reservePinned")
          /\ S' = [S EXCEPT ![t] = [ToIdle(@) EXCEPT !.need = TRUE]]
          /\ ent' = [k \in Obj |-> IF ent[k].lk = t THEN [ent[k] EXCEPT !.lk = 0] ELSE ent[k]]
  /\ UNCHANGED <<floor,logv,home,sb,ck,rv,clk,ghost>>
\* Step 1, the locks, in address order; each on the very version that the private copy was made from
Lock(t) ==
  /\ Live /\ S[t].pc = "lock"
  /\ LET k == Min(S[t].td)  e == ent[k]  td2 == S[t].td \ {k}
         next == IF LockAt = "commit" THEN "stamp" ELSE Reserving IN
     /\ e.lk = 0
     /\ IF LockAt = "commit" /\ e.st # S[t].rd[k].st /\ ~m("lockAnyVersion") THEN Abort(t)
        ELSE /\ ent' = [ent EXCEPT ![k].lk = t]
             /\ S' = [S EXCEPT ![t] = [@ EXCEPT !.td = td2, !.pc = IF td2 # {} THEN "lock" ELSE next]]
  /\ UNCHANGED <<floor,logv,home,sb,ck,rv,clk,ghost>>
\* noDekker only; otherwise the floor is read as the stamp is taken
ReadFloor(t) ==
  /\ Live /\ S[t].pc = "fl"
  /\ S' = [S EXCEPT ![t] = [@ EXCEPT !.fl = floor, !.pc = "ann"]]
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,clk,ghost>>
\* the versions the transaction stands on: <<stamp, session, writer>>
Stands(t) == {<<S[t].rd[k].st, S[t].rd[k].se, S[t].rd[k].wid>> : k \in DOMAIN S[t].rd}
        \cup {<<ent[k].st, ent[k].se, ent[k].wid>> : k \in W(t)}
Flushed(u, st) == \E p \in LivePos(u) : At(u,p).st = st /\ p < dur[u]
Prunable(t, u, st) == \/ u = t
                      \/ st <= S[u].com
                      \/ m("prunePersisted") /\ Flushed(u, st)
Sealing == IF Policy = "conservative" THEN "app" ELSE "pub"
Validating(t) == S[t].tx.r # {} /\ ~m("noValidate")
\* Step 1, track (and prune), and take the stamp, with all locks held and before validation.  One
\* action: a checkpoint that looks in between finds the announcement pending and waits.
\* (stampLate: the stamp is taken after validation instead)
Stamp(t) ==
  /\ Live /\ S[t].pc = "stamp"
  /\ IF m("stampLate") /\ S[t].stm = 0 /\ Validating(t)
     THEN S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = "val", !.td = S[t].tx.r, !.stm = -1]] /\ UNCHANGED clk
     ELSE /\ Tick
          /\ \E j \in Readings :
             LET dd == {v \in Stands(t) : v[1] > 0}
                 kept == {v \in dd : ~Prunable(t, v[2], v[1])}
                 dep == [u \in Sess |-> LET z == {v[1] : v \in {x \in kept : x[2] = u}} IN IF z = {} THEN 0 ELSE Max(z)]
                 src == IF m("stampPruned") THEN kept ELSE dd
                 fl == IF m("noDekker") /\ MaxCkpt # 0 THEN S[t].fl ELSE floor
                 st == Max({j, S[t].own+1, 1} \cup {v[1]+1 : v \in src} \cup (IF m("stampNoFloor") THEN {} ELSE {fl+1}))
                 val == Validating(t) /\ ~m("stampLate")
             IN S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = IF val THEN "val" ELSE Sealing, !.td = IF val THEN S[t].tx.r ELSE W(t),
                                         !.dep = dep, !.stm = st, !.own = st, !.ann = IF MaxCkpt = 0 THEN 0 ELSE st,
                                         !.pre = {v[3] : v \in Stands(t)} \ {0}]]
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,ghost>>
\* Step 2, entry by entry
Valid1(t, k) == LET e == ent[k]  same == e.st = S[t].rd[k].st IN
   IF m("validateOwnLock") THEN (same /\ e.lk = 0) \/ e.lk = t
   ELSE same /\ e.lk \in {0,t}
Validate(t) ==
  /\ Live /\ S[t].pc = "val" /\ S[t].td # {}
  /\ LET k == Min(S[t].td)  td2 == S[t].td \ {k} IN
     IF ~Valid1(t,k) /\ ~m("noValidate") THEN Abort(t)
     ELSE /\ UNCHANGED ent
          /\ S' = [S EXCEPT ![t] = IF td2 # {} THEN [@ EXCEPT !.td = td2]
                                   ELSE IF W(t) = {} THEN [@ EXCEPT !.td = {}, !.pc = "ro"]
                                   ELSE [@ EXCEPT !.td = W(t), !.pc = IF m("stampLate") THEN "stamp" ELSE Sealing]]
  /\ UNCHANGED <<floor,logv,home,sb,ck,rv,clk,ghost>>
\* ---- ghost checks of strict serializability, run when a transaction enters the history
Confl(a,b) == \/ \E k \in (DOMAIN a.w) \cap (DOMAIN b.w) : a.w[k] < b.w[k]
              \/ \E k \in (DOMAIN a.w) \cap (DOMAIN b.r) : a.w[k] <= b.r[k]
              \/ \E k \in (DOMAIN a.r) \cap (DOMAIN b.w) : a.r[k] < b.w[k]
              \/ a.id \in b.obs
RECURSIVE Reach(_,_,_)
Reach(A, E, n) == IF n = 0 THEN A ELSE Reach(A \cup {e[2] : e \in {x \in E : x[1] \in A}}, E, n-1)
Cyclic(H) == LET E == {<<a.id,b.id>> : <<a,b>> \in {p \in H \X H : p[1].id # p[2].id /\ Confl(p[1],p[2])}} IN
             \E h \in H : h.id \in Reach({e[2] : e \in {x \in E : x[1] = h.id}}, E, Cardinality(H))
Judge(H, h) ==
  IF Cyclic(H) THEN "NOT-SERIALIZABLE"
  ELSE IF ~h.ro /\ \E g \in H : g.id \in h.pre /\ g.st >= h.st THEN "STAMP-NOT-TOPOLOGICAL"
  ELSE IF Phys = {} /\ ~h.ro /\ \E g \in H : /\ ~g.ro /\ g.id # h.id
                                             /\ \/ Confl(g,h) /\ g.st >= h.st
                                                \/ Confl(h,g) /\ h.st >= g.st
       THEN "STAMP-NOT-SERIAL" ELSE "ok"
\* Step 3, entry by entry; the new image is the private copy
Waiting(s) == [s EXCEPT !.pc = "wait", !.ann = 0, !.nt = @+1, !.td = {}, !.rd = <<>>, !.obs = {}, !.pre = {}, !.dep = NoDep, !.tx = NoTx]
Publish(t) ==
  /\ Live /\ S[t].pc = "pub"
  /\ (Policy = "conservative" => dur[t] = tail[t])      \* publish only what is persisted
  /\ LET k == Min(S[t].td)  td2 == S[t].td \ {k}  e == ent[k]  ws == S[t].tx.w[k]
         copy == IF LockAt = "commit" THEN S[t].rd[k].img ELSE e.img
         e2 == [e EXCEPT !.st = S[t].stm, !.se = t, !.hm = FALSE, !.lk = 0, !.img = Put(copy, ws, Id(t)), !.gv = @+1, !.wid = Id(t)]
         old == {h \in hist : h.id = Id(t)}
         wg == (k :> e2.gv) @@ (IF old = {} THEN <<>> ELSE (CHOOSE h \in old : TRUE).w)
         h2 == [id |-> Id(t), st |-> S[t].stm, r |-> [x \in DOMAIN S[t].rd |-> S[t].rd[x].gv], w |-> wg,
                obs |-> S[t].obs, pre |-> S[t].pre, ro |-> FALSE, ws |-> S[t].tx.w, t |-> t]
     IN /\ ent' = [ent EXCEPT ![k] = e2]
        /\ hist' = (hist \ old) \cup {h2}
        /\ bad' = IF td2 # {} THEN bad
                  ELSE IF e2.img # Put(e.img, ws, Id(t)) THEN "LOST-UPDATE" ELSE Judge(hist', h2)
        /\ S' = [S EXCEPT ![t] = IF td2 = {} /\ Policy = "conservative" THEN Waiting(@)
                                 ELSE [@ EXCEPT !.td = td2, !.pc = IF td2 # {} THEN "pub" ELSE "app",
                                                !.ann = IF m("withdrawEarly") /\ td2 = {} THEN 0 ELSE @]]
  /\ UNCHANGED <<floor,logv,home,sb,ck,rv,clk,acked,base,gg,nc>>
\* Step 4a: store the record and raise `sealed'; then the announcement goes, unless conservative.
\* An asynchronous session goes on from here.
Seal(t) ==
  /\ Live /\ S[t].pc = "app"
  /\ mem' = [mem EXCEPT ![t][tail[t] % N] = [id |-> Id(t), lsn |-> tail[t], st |-> S[t].stm, g |-> sb.gen, dep |-> S[t].dep, w |-> S[t].tx.w]]
  /\ tail' = [tail EXCEPT ![t] = @+1]
  /\ S' = [S EXCEPT ![t] = IF Policy = "conservative" THEN [@ EXCEPT !.pc = "pub", !.td = W(t)]
                           ELSE IF Async THEN [ToIdle(@) EXCEPT !.nt = @+1] ELSE Waiting(@)]
  /\ hist' = IF Policy # "conservative" THEN hist
             ELSE hist \cup {[id |-> Id(t), st |-> S[t].stm, r |-> [x \in DOMAIN S[t].rd |-> S[t].rd[x].gv],
                    w |-> [k \in W(t) |-> ent[k].gv+1], obs |-> S[t].obs, pre |-> S[t].pre, ro |-> FALSE, ws |-> S[t].tx.w, t |-> t]}
  /\ UNCHANGED <<ent,floor,med,dur,home,sb,ck,rv,clk,acked,base,gg,nc,bad>>
\* Step 4b: flush + fence, by the owner or by any helper
Flush(t) ==
  /\ Live /\ dur[t] < tail[t]
  /\ \E p \in (dur[t]+1)..tail[t] :
       /\ dur' = [dur EXCEPT ![t] = p]
       /\ med' = [med EXCEPT ![t] = [q \in Slots |-> IF \E x \in dur[t]..(p-1) : x % N = q THEN mem[t][q] ELSE @[q]]]
  /\ UNCHANGED <<S,ent,floor,mem,tail,home,sb,ck,rv,clk,ghost>>
\* Step 5: the session's committed stamp moves over its next record(s); owner or helper
Advance(t) ==
  /\ Live
  /\ \E p \in LivePos(t) :
       LET r == At(t,p) IN
       /\ r.st > S[t].com
       /\ \A q \in LivePos(t) : q < p => (At(t,q).st <= S[t].com \/ m("ownOutOfOrder"))  \* own earlier records first
       /\ p < dur[t] \/ m("helperEarly")
       \* committed implies published (conservative persists first)
       /\ S[t].pc # "pub" \/ r.st # S[t].stm
       /\ m("ackAtStep4") \/ \A u \in Sess : r.dep[u] <= S[u].com
       /\ S' = [S EXCEPT ![t].com = r.st] /\ acked' = acked \cup {r.id}
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,clk,hist,base,gg,nc,bad>>
Return(t) ==
  /\ Live /\ S[t].pc = "wait" /\ S[t].com >= S[t].stm
  /\ S' = [S EXCEPT ![t] = ToIdle(@)]
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,clk,ghost>>
\* read-only: no record, but it waits for what it read, its own session's unflushed records included
RoDone(t) ==
  /\ Live /\ S[t].pc = "ro"
  /\ \A v \in Stands(t) : v[1] > 0 => \/ v[1] <= S[v[2]].com
                                      \/ m("roIgnoresOwn") /\ v[2] = t
                                      \/ m("roNoWait")
  /\ LET h == [id |-> Id(t), st |-> 0, r |-> [x \in DOMAIN S[t].rd |-> S[t].rd[x].gv], w |-> <<>>, obs |-> S[t].obs,
               pre |-> {v[3] : v \in Stands(t)} \ {0}, ro |-> TRUE, ws |-> <<>>, t |-> t]
     IN hist' = hist \cup {h} /\ acked' = acked \cup {h.id} \cup h.pre /\ bad' = Judge(hist', h)
  /\ S' = [S EXCEPT ![t] = [ToIdle(@) EXCEPT !.nt = @+1]]
  /\ UNCHANGED <<ent,floor,logv,home,sb,ck,rv,clk,base,gg,nc>>
(*------------------------------- checkpoint ------------------------------*)
\* The last stamps are read one by one, so any of them may be out of date: a stale one is waited for.
CkStart ==
  /\ Live /\ ck.ph = "idle" /\ ck.cnt < MaxCkpt
  /\ Tick /\ \E j \in Readings, known \in SUBSET Sess :
       floor' = IF m("floorMayFall") THEN j ELSE Max({j, floor+1} \cup {S[t].own : t \in known})
  /\ ck' = [ck EXCEPT !.ph = "hs", !.s = 1, !.cnt = @+1]
  /\ UNCHANGED <<S,ent,logv,home,sb,rv,ghost>>
\* look at every session in turn (after the floor is visible)
Past(t) == /\ S[t].ann = 0 \/ S[t].ann > floor
           /\ \A p \in LivePos(t) : At(t,p).st <= floor => At(t,p).st <= S[t].com
CkSettle ==
  /\ Live /\ ck.ph = "hs"
  /\ (Past(ck.s) \/ m("noDekkerWait"))
  /\ ck' = IF ck.s < T THEN [ck EXCEPT !.s = @+1]
           ELSE [ck EXCEPT !.ph = "col", !.td = UNION {UNION {DOMAIN At(t,p).w : p \in {x \in LivePos(t) : At(t,x).st > sb.L /\ At(t,x).st <= floor}} : t \in Sess}]
  /\ UNCHANGED <<S,ent,floor,logv,home,sb,rv,clk,ghost>>
\* capture the newest version of each, object by object (the seqlock read of one entry); what is at
\* home already needs nothing
Grab(k) == [st |-> ent[k].st, se |-> ent[k].se, img |-> ent[k].img]
CkCapture ==
  /\ Live /\ ck.ph = "col"
  /\ IF ck.td = {} THEN ck' = [ck EXCEPT !.ph = "com"]
     ELSE LET k == Min(ck.td) IN
          /\ ent[k].lk = 0 \* else it waits, unpinned
          /\ ck' = [ck EXCEPT !.td = @ \ {k}, !.cap = IF ent[k].hm THEN @ ELSE (k :> Grab(k)) @@ @]
  /\ UNCHANGED <<S,ent,floor,logv,home,sb,rv,clk,ghost>>
\* every captured version committed (wait or help); then a grace period begins
Committed(c) == IF c.st = 0 THEN TRUE ELSE c.st <= S[c.se].com
CkCommitted ==
  /\ Live /\ ck.ph = "com"
  /\ (m("ckUncommitted") \/ \A k \in DOMAIN ck.cap : Committed(ck.cap[k]))
  /\ ck' = [ck EXCEPT !.ph = "grace", !.gr = IF m("noGrace") THEN {} ELSE {t \in Sess : Pinned(t)}]
  /\ UNCHANGED <<S,ent,floor,logv,home,sb,rv,clk,ghost>>
CkPass(t) ==
  /\ Live /\ ck.ph = "grace" /\ t \in ck.gr /\ ~Pinned(t)
  /\ ck' = [ck EXCEPT !.gr = @ \ {t}] /\ UNCHANGED <<S,ent,floor,logv,home,sb,rv,clk,ghost>>
CkGrace ==
  /\ Live /\ ck.ph = "grace" /\ ck.gr = {}
  /\ ck' = IF m("sbFirst") THEN [ck EXCEPT !.ph = "sb"]
           ELSE [ck EXCEPT !.ph = "home", !.td = (DOMAIN ck.cap) \X Words]
  /\ UNCHANGED <<S,ent,floor,logv,home,sb,rv,clk,ghost>>
\* the words reach media one by one, in any order; a reader that still holds the home copy sees it torn
CkHome ==
  /\ Live /\ ck.ph = "home" /\ ck.td # {}
  /\ \E kw \in ck.td :
       LET k == kw[1]  c == ck.cap[k] IN
       /\ home' = [home EXCEPT ![k][kw[2]] = c.img[kw[2]]]
       /\ ck' = [ck EXCEPT !.td = @ \ {kw}]
       /\ bad' = IF \E t \in Sess : Pinned(t) /\ k \in DOMAIN S[t].rd /\ S[t].rd[k].hm /\ S[t].rd[k].img[kw[2]] # c.img[kw[2]]
                 THEN "HOME-OVERWRITTEN-UNDER-READER" ELSE bad
  /\ UNCHANGED <<S,ent,floor,logv,sb,rv,clk,hist,acked,base,gg,nc>>
CkFence ==
  /\ Live /\ ck.ph = "home" /\ ck.td = {}
  /\ ck' = [ck EXCEPT !.ph = IF m("sbFirst") THEN "swing" ELSE "sb", !.td = DOMAIN ck.cap]
  /\ UNCHANGED <<S,ent,floor,logv,home,sb,rv,clk,ghost>>
\* superblock: L := floor, heads past the records <= floor (its two copies are Sp3Log's matter)
NewHead(t) == LET keep == {p \in LivePos(t) : IF m("truncBeyond") THEN At(t,p).st > S[t].com ELSE At(t,p).st > floor} IN
              IF keep = {} THEN tail[t] ELSE Min(keep)
CkSb ==
  /\ Live /\ ck.ph = "sb"
  /\ sb' = [sb EXCEPT !.L = floor, !.head = [t \in Sess |-> NewHead(t)]]
  /\ ck' = IF m("sbFirst") THEN [ck EXCEPT !.ph = "home", !.td = (DOMAIN ck.cap) \X Words]
           ELSE [ck EXCEPT !.ph = "swing", !.td = DOMAIN ck.cap]
  /\ UNCHANGED <<S,ent,floor,logv,home,rv,clk,ghost>>
\* swing entries home: only if still the captured version, and unlocked.  The stamp stays.
CkSwing ==
  /\ Live /\ ck.ph = "swing"
  /\ IF ck.td = {} THEN ck' = CkIdle(ck.cnt) /\ UNCHANGED ent
     ELSE LET k == Min(ck.td)
              ok == ent[k].lk = 0 /\ ent[k].st = ck.cap[k].st IN
          /\ ck' = [ck EXCEPT !.td = @ \ {k}]
          /\ ent' = IF ~ok THEN ent
                    ELSE IF m("swingForgetsStamp") THEN [ent EXCEPT ![k].hm = TRUE, ![k].st = 0, ![k].se = 0]
                    ELSE [ent EXCEPT ![k].hm = TRUE]
  /\ UNCHANGED <<S,floor,logv,home,sb,rv,clk,ghost>>
(*--------------------------- crash and recovery --------------------------*)
Crash ==
  /\ nc < MaxCrash /\ bad = "ok" /\ nc' = nc+1
  /\ \E kind \in Kinds :
       IF kind = "process" THEN UNCHANGED <<mem,med>>
       ELSE \E keep \in SUBSET {x \in Sess \X Slots : mem[x[1]][x[2]] # med[x[1]][x[2]]} :
              /\ med' = [t \in Sess |-> [q \in Slots |-> IF <<t,q>> \in keep THEN mem[t][q] ELSE med[t][q]]]
              /\ mem' = med'
  /\ S' = [t \in Sess |-> Fresh] /\ ck' = CkIdle(ck.cnt) /\ floor' = 0
  /\ ent' = [k \in Obj |-> Entry0(Img0)]
  /\ tail' = [t \in Sess |-> 0] /\ dur' = tail'
  /\ rv' = [Up EXCEPT !.ph = "scan"]
  /\ UNCHANGED <<home,sb,clk,hist,acked,base,gg,bad>>
\* the valid prefix: from the head on, the same generation, the exact next LSN and rising stamps.  A slot
\* that is used again still holds an old record of the SAME generation.
RECURSIVE Scan(_,_,_)
Scan(t, p, prev) ==
  LET r == At(t,p) IN
  IF p >= sb.head[t] + N \/ r = Nil THEN <<>>
  ELSE IF r.g # sb.gen THEN <<>>
  ELSE IF (r.lsn # p \/ r.st <= prev) /\ ~m("staleSlots") THEN <<>>
  ELSE <<r>> \o Scan(t, p+1, r.st)
RECURSIVE Cut(_,_)
\* c[t] = number of records kept.  A dependency <= L is satisfied by the checkpoint.
Cut(P, c) == LET top(u) == IF c[u] = 0 THEN (IF m("cutIgnoresFloor") THEN 0 ELSE sb.L) ELSE P[u][c[u]].st
                 ok(r) == \A u \in Sess : (r.dep[u] <= sb.L /\ ~m("cutIgnoresFloor")) \/ r.dep[u] <= top(u)
                 c2 == [t \in Sess |-> LET b == {i \in 1..c[t] : ~ok(P[t][i])} IN IF b = {} THEN c[t] ELSE Min(b)-1]
             IN IF c2 = c \/ m("cutNoDeps") THEN c ELSE Cut(P, c2)
\* the order in which recovery applies records to one object
RECURSIVE Order(_)
Key(r) == IF m("unordered") THEN r.id ELSE r.st
Order(R) == IF R = {} THEN <<>> ELSE LET r == CHOOSE x \in R : \A y \in R : Key(x) <= Key(y) IN <<r>> \o Order(R \ {r})
RECURSIVE Stores(_,_)
Stores(rs, k) == IF rs = <<>> THEN <<>>
   ELSE LET r == Head(rs)
            RECURSIVE each(_)
            each(ws) == IF ws = {} THEN <<>> ELSE LET x == Min(ws) IN <<<<x, r.id>>>> \o each(ws \ {x})
        IN (IF k \in DOMAIN r.w THEN each(r.w[k]) ELSE <<>>) \o Stores(Tail(rs), k)
\* ---- ghost: judge the image that recovery leaves.  V = ids that must be in it
LastWriter(V, k, x) == LET c == {h \in hist : ~h.ro /\ h.id \in V /\ k \in DOMAIN h.ws /\ k \in DOMAIN h.w /\ x \in h.ws[k]} IN
    IF c = {} THEN base[k][x] ELSE (CHOOSE h \in c : \A g \in c : g.w[k] <= h.w[k]).id
Verdict(V, hm) ==
   IF \E i \in rv.ids : i \div 100 # gg THEN "RESURRECTED"
   ELSE IF \E i \in acked : i \notin V /\ \A h \in hist : h.id = i => ~h.ro THEN "ACKNOWLEDGED-LOST"
   ELSE IF \E h \in hist : h.id \in V /\ ~(h.pre \subseteq V) THEN "NOT-DEPENDENCY-CLOSED"
   ELSE IF \E h, g \in hist : h.id \in V /\ g.t = h.t /\ ~g.ro /\ g.st < h.st /\ g.id \notin V THEN "NOT-SESSION-CLOSED"
   ELSE IF \E k \in Obj : \E x \in Words : hm[k][x] # LastWriter(V, k, x) THEN "WRONG-IMAGE" ELSE "ok"
Below == {h.id : h \in {x \in hist : ~x.ro /\ x.st <= sb.L /\ x.id \in acked}}   \* ghost: committed and folded into the homes
RvScan ==
  /\ rv.ph = "scan" /\ bad = "ok"
  /\ LET P == [t \in Sess |-> Scan(t, sb.head[t], sb.L)]
         c == Cut(P, [t \in Sess |-> Len(P[t])])
         A == UNION {{P[t][i] : i \in 1..c[t]} : t \in Sess}
         met == {mem[x[1]][x[2]].st : x \in {y \in Sess \X Slots : mem[y[1]][y[2]] # Nil /\ mem[y[1]][y[2]].g = sb.gen}}
         ord == Order(A)
     IN /\ rv' = [ph |-> IF m("resetFirst") THEN "sb" ELSE "app", q |-> [k \in Obj |-> Stores(ord, k)], ids |-> {r.id : r \in A}, v |-> {r.id : r \in A} \cup Below,
                  \* the largest stamp met anywhere, dropped records included
                  top |-> Max({sb.L} \cup met)]
        \* what was scanned is made durable BEFORE any home is touched (it may sit in caches only after a kill)
        /\ med' = IF m("noScanFlush") THEN med ELSE mem
  /\ UNCHANGED <<S,ent,floor,mem,tail,dur,home,sb,ck,clk,ghost>>
RvApply ==
  /\ rv.ph = "app" /\ bad = "ok"
  /\ \E k \in Obj : /\ rv.q[k] # <<>>
       /\ home' = [home EXCEPT ![k][Head(rv.q[k])[1]] = Head(rv.q[k])[2]]
       /\ rv' = [rv EXCEPT !.q[k] = Tail(@)]
  /\ UNCHANGED <<S,ent,floor,logv,sb,ck,clk,ghost>>
RvFence ==
  /\ rv.ph = "app" /\ bad = "ok" /\ \A k \in Obj : rv.q[k] = <<>>
  /\ rv' = [rv EXCEPT !.ph = IF m("resetFirst") THEN "open" ELSE "sb"]
  /\ bad' = IF m("resetFirst") THEN Verdict(rv.v, home) ELSE bad
  /\ UNCHANGED <<S,ent,floor,logv,home,sb,ck,clk,hist,acked,base,gg,nc>>
\* the new superblock: generation+1 and empty logs.  Old bytes stay in the slots.
RvSb ==
  /\ rv.ph = "sb" /\ bad = "ok"
  /\ sb' = [L |-> rv.top, gen |-> sb.gen+1, head |-> [t \in Sess |-> 0]]
  /\ rv' = [rv EXCEPT !.ph = IF m("resetFirst") THEN "app" ELSE "open"]
  /\ bad' = IF m("resetFirst") THEN bad ELSE Verdict(rv.v, home)
  /\ UNCHANGED <<S,ent,floor,logv,home,ck,clk,hist,acked,base,gg,nc>>
RvOpen ==
  /\ rv.ph = "open" /\ bad = "ok"
  /\ rv' = Up /\ floor' = sb.L
  /\ ent' = [k \in Obj |-> Entry0(home[k])]
  /\ hist' = {} /\ acked' = {} /\ base' = home /\ gg' = gg+1
  /\ clk' = IF Phys = {} THEN Max({clk, sb.L}) ELSE clk
  /\ UNCHANGED <<S,logv,home,sb,ck,nc,bad>>
\* a crash between the superblock and the opening: everything it needs is done; treat the life as begun
CrashAll == Crash /\ rv.ph # "open"
(*-------------------------------------------------------------------------*)
AllDone == /\ Live /\ ck.ph = "idle" /\ \A t \in Sess : dur[t] = tail[t]
           /\ \A t \in Sess : S[t].pc = "idle" /\ (S[t].nt >= Budget[gg+1][t] \/ (~Room(t) /\ ck.cnt >= MaxCkpt))
Finished == AllDone /\ UNCHANGED vars
Next == \/ \E t \in Sess : \/ Begin(t) \/ Read(t) \/ Lock(t) \/ Reserve(t) \/ Validate(t) \/ Announce(t) \/ ReadFloor(t)
                           \/ Stamp(t) \/ Publish(t) \/ Seal(t) \/ Flush(t) \/ Advance(t) \/ Return(t) \/ RoDone(t) \/ CkPass(t)
        \/ CkStart \/ CkSettle \/ CkCapture \/ CkCommitted \/ CkGrace \/ CkHome \/ CkFence \/ CkSb \/ CkSwing
        \/ CrashAll \/ RvScan \/ RvApply \/ RvFence \/ RvSb \/ RvOpen
        \/ Finished
Spec == Init /\ [][Next]_vars
(*------------------------------- invariants ------------------------------*)
\* strict serializability of everything that was validated
Serializable == bad # "NOT-SERIALIZABLE"
\* no update is made to an outdated copy
NoLostUpdate == bad # "LOST-UPDATE"
\* a predecessor by reading or overwriting has the smaller stamp, whatever the clocks do
StampsAreTopological == bad # "STAMP-NOT-TOPOLOGICAL"
\* with clocks that agree, stamps order reads before later writes too
StampsAreSerial == bad # "STAMP-NOT-SERIAL"
\* nobody reads a home while a checkpoint overwrites it
HomesAreStable == bad # "HOME-OVERWRITTEN-UNDER-READER"
\* what recovery leaves: nothing of another life, everything acknowledged, closed, and replayed right
NothingResurrected == bad # "RESURRECTED"
NothingAcknowledgedIsLost == bad # "ACKNOWLEDGED-LOST"
DependencyClosed == bad \notin {"NOT-DEPENDENCY-CLOSED", "NOT-SESSION-CLOSED"}
RightImage == bad # "WRONG-IMAGE"
\* once a floor has settled, no stamp up to it is in flight
StampsAboveFloor == \A t \in Sess : ck.ph \in {"col","com","grace","home","sb","swing"} /\ S[t].ann > 0 /\ S[t].ann <= floor => S[t].ann <= S[t].com
=============================================================================

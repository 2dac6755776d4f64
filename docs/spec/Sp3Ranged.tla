----------------------------- MODULE Sp3Ranged -----------------------------
(***************************************************************************)
(* Ranged objects: ranges that are held, chunks that are patched, the size *)
(* that changes; all of it through checkpoint, crash and both recoveries.  *)
(*                                                                         *)
(* One ranged object of at most M bytes.  Entry 0 is its header: length    *)
(* and chunk table (the code's tree of nodes is folded into the header).   *)
(* Entries 1..Z are slots for chunks of CB bytes; the log writes words of  *)
(* WB bytes.  A byte holds the id of the transaction that wrote it; zero   *)
(* is zero.  A transaction is a sequence of steps:                         *)
(*                                                                         *)
(*   hold B   takes the range B exclusively         (RangedAccess::take)   *)
(*   whole    takes everything                      (take_whole)           *)
(*   view B   takes B shared                        (RangeHolds::take_view)*)
(*   get B    reads B, all in one chunk             (copy_piece)           *)
(*   put B    writes B, all in one chunk, held      (write_piece)          *)
(*   size n   grows or shrinks, everything held     (grow, shrink)         *)
(*                                                                         *)
(* The ghost abs is what one atomic step at the commit point of each       *)
(* transaction would make of the object.  All that a transaction read must *)
(* agree with it there, what is published must be it, and what recovery    *)
(* leaves must be what the transactions that are there make of it.         *)
(*                                                                         *)
(* Stamping and validation are one event, so are sealing and the last      *)
(* publication, and so are persist and commit; the log is a sequence per   *)
(* session of which any part from the committed prefix on survives.  All   *)
(* transactions are asynchronous.  Sp3Design, Sp3Log and Sp3Alloc look     *)
(* closer at these.                                                        *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANTS T,        \* sessions 1..T
          M, CB, WB, \* bytes of the object, of a chunk, of a word
          Z,        \* slots for chunks
          Len0,     \* the length at first
          Made,     \* the chunks that exist at first; the others are holes
          Menu,     \* Menu[t]: transactions to choose from
          Budget,   \* Budget[life][session]: attempts
          MaxCrash, MaxCkpt,
          Phys,     \* what a clock may show
          Strategies, \* subset of {"stamp","dag"}
          Mut
VARIABLES
  S,        \* per session: the attempt in progress, stamps, what is committed
  ent,      \* entries: stamp, session, lock, at home?, version
  floor, ck,
  log,      \* per session its records
  home, sb, \* media: homes; superblock [L, from, bm]
  rv,
  abs,      \* ghost: value and writer of each item, item 0 being the length
  hist, acked, base, gg, nc, bad \* ghosts: who has a commit point, acknowledged ids, opening values, life, crashes
vars == <<S,ent,floor,ck,log,home,sb,rv,abs,hist,acked,base,gg,nc,bad>>
ghost == <<abs,hist,acked,base,gg,nc,bad>>

Sess == 1..T
Bytes == 1..M
Items == 0..M
Slots == 1..Z
Poss == 1..CB
ChunkOf(b) == ((b-1) \div CB) + 1
Pos(b) == ((b-1) % CB) + 1
WordOf(p) == ((p-1) \div WB) + 1
Words(k) == IF k = 0 THEN {1,2} ELSE 1..WordOf(CB)
Chunks == 1..ChunkOf(M)
ChunksOf(n) == IF n = 0 THEN 0 ELSE ChunkOf(n)
m(x) == x \in Mut
Max(A) == CHOOSE x \in A : \A y \in A : y <= x
Min(A) == CHOOSE x \in A : \A y \in A : x <= y
Gone == <<>>                          \* the version of a slot that holds no chunk
Zeros == [p \in Poss |-> 0]
Over(f, g) == [x \in DOMAIN g |-> IF x \in DOMAIN f THEN f[x] ELSE g[x]]
\* word w of entry k as in `new', the rest as in `old'
Store(old, new, k, w) == IF k = 0 THEN IF w = 1 THEN [old EXCEPT !.len = new.len] ELSE [old EXCEPT !.tab = new.tab]
                         ELSE [p \in Poss |-> IF WordOf(p) = w THEN new[p] ELSE old[p]]
\* what the object says, all items: behind its end there must be zeros too (-1: the table leads nowhere)
Image(hd, slot) == [i \in Items |-> IF i = 0 THEN hd.len
                    ELSE LET z == hd.tab[ChunkOf(i)] IN IF z = 0 THEN 0 ELSE IF slot[z] = Gone THEN -1 ELSE slot[z][Pos(i)]]

\* rs: versions read that validation compares; un: versions read under an exclusive range; two: more
\* than one version was read; ws: slot -> private copy; hw: the header has one; ex, sh: ranges held
None == [pc |-> "idle", p |-> <<>>, ip |-> 1, hd |-> 0, rs |-> <<>>, un |-> {}, two |-> FALSE, ws |-> <<>>, hw |-> FALSE,
         ex |-> {}, sh |-> {}, out |-> <<>>, w |-> <<>>, td |-> {}, stm |-> 0, new |-> <<>>, rec |-> <<>>]
Fresh == [own |-> 0, com |-> 0, cn |-> 0, nt |-> 0] @@ None
Rest(s) == [own |-> s.own, com |-> s.com, cn |-> s.cn, nt |-> s.nt+1] @@ None
Entry0(v) == [st |-> 0, se |-> 0, lk |-> 0, hm |-> TRUE, v |-> v]
CkIdle(n) == [ph |-> "idle", td |-> {}, cap |-> <<>>, cnt |-> n]
Up == [ph |-> "up"]
Header0 == [len |-> Len0, tab |-> [c \in Chunks |-> IF c \in Made THEN c ELSE 0]]
Home0(k) == IF k = 0 THEN Header0 ELSE Zeros
Alive(hm, bm) == [k \in 0..Z |-> IF k = 0 \/ k \in bm THEN hm[k] ELSE Gone]
Unwritten(val) == [v |-> val, w |-> [i \in Items |-> 0]]

Init == /\ S = [t \in Sess |-> Fresh]
        /\ home = [k \in 0..Z |-> Home0(k)] /\ sb = [L |-> 0, from |-> [t \in Sess |-> 1], bm |-> Made]
        /\ ent = [k \in 0..Z |-> Entry0(Alive(home, Made)[k])]
        /\ floor = 0 /\ ck = CkIdle(0) /\ log = [t \in Sess |-> <<>>] /\ rv = Up
        /\ base = Image(Header0, Alive(home, Made)) /\ abs = Unwritten(base)
        /\ hist = {} /\ acked = {} /\ gg = 0 /\ nc = 0 /\ bad = "ok"
Live == rv.ph = "up" /\ bad = "ok"
Id(t) == gg*100 + t*10 + S[t].nt + 1
Free(k, t) == ent[k].lk \in {0,t}
Mode(t, k) == IF k = 0 THEN "update" ELSE S[t].ws[k].m
Patches(t) == {z \in DOMAIN S[t].ws : S[t].ws[z].m = "patch"}
W(s) == DOMAIN s.ws \cup (IF s.hw THEN {0} ELSE {})
\* reads_still_hold: what was read is current, and in nobody else's hands
Holds(t, rs) == \A k \in DOMAIN rs : \/ ent[k].st = rs[k].st /\ Free(k, t)
                                     \/ m("headerUnvalidated") /\ k = 0
                                     \/ m("viewUnvalidated") /\ rs[k].viewed
                                     \/ m("heldLate") /\ S[t].pc = "lock" /\ rs[k].B # {} /\ rs[k].B \subseteq S[t].ex
Writers(out) == {abs.w[i] : i \in DOMAIN out} \ {0}
Sees(out) == \A i \in DOMAIN out : out[i] = abs.v[i]

(*--------------------------------- the body ------------------------------*)
Abort(t) == /\ S' = [S EXCEPT ![t] = Rest(@)]
            /\ ent' = [k \in 0..Z |-> IF ent[k].lk = t THEN [ent[k] EXCEPT !.lk = 0] ELSE ent[k]]
\* everybody reads the header first
Begin(t) ==
  /\ Live /\ S[t].pc = "idle" /\ S[t].nt < Budget[gg+1][t] /\ Free(0, t)
  /\ \E p \in Menu[t] :
       S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = "body", !.p = p, !.hd = ent[0].v, !.out = (0 :> ent[0].v.len),
                 !.rs = (0 :> [st |-> ent[0].st, se |-> ent[0].se, B |-> {}, viewed |-> FALSE])]]
  /\ UNCHANGED <<ent,floor,ck,log,home,sb,rv,ghost>>
Op(t) == S[t].p[S[t].ip]
Running(t, o) == Live /\ S[t].pc = "body" /\ Op(t).o = o
\* s is t's state after its next step; after the last one, commit begins.  A transaction that wrote
\* nothing and read one version that is validated has its commit point where that was last found
\* unchanged.
Step(t, s) ==
  LET last == s.ip = Len(s.p)
      ro == last /\ W(s) = {}
  IN /\ S' = [S EXCEPT ![t] = IF ~last THEN [s EXCEPT !.ip = @+1]
                 ELSE IF ro THEN [s EXCEPT !.pc = IF s.two THEN "val" ELSE "ro", !.new = Writers(s.out)]
                 ELSE [s EXCEPT !.pc = "lock", !.td = {k \in W(s) : k = 0 \/ s.ws[k].m # "make"},
                                !.ex = IF m("releaseEarly") THEN {} ELSE @]]
     /\ bad' = IF ro /\ ~s.two /\ ~Sees(s.out) THEN "NOT-SERIALIZABLE" ELSE bad
\* Who does not get a range (or an entry) gives up after a while, and with it all that it holds
Others(t, B, shared) == \E u \in Sess \ {t} : (S[u].ex \cap B # {} /\ ~m("rangesOverlap")) \/ (~shared /\ S[u].sh \cap B # {})
Range(t) == IF Op(t).o = "whole" THEN Bytes ELSE Op(t).B
GiveUp(t) ==
  /\ Live
  /\ \/ S[t].pc = "body" /\ Op(t).o \in {"hold","whole","view"} /\ ~m("patientForRanges")
        /\ Others(t, Range(t) \ S[t].ex, Op(t).o = "view")
     \/ S[t].pc = "body" /\ Op(t).o = "get" /\ LET z == S[t].hd.tab[ChunkOf(Min(Op(t).B))] IN z # 0 /\ ~Free(z, t)
     \/ S[t].pc = "lock" /\ S[t].td # {} /\ ~Free(Min(S[t].td), t)
  /\ Abort(t) /\ UNCHANGED <<floor,ck,log,home,sb,rv,ghost>>
\* A range behind the end is an error; one that is partly held is taken in its missing parts.  A view
\* gives way to the own transaction's write before that, but not what it showed.
Hold(t) ==
  /\ Running(t, "hold") \/ Running(t, "whole")
  /\ LET B == Range(t)  s == S[t] IN
     IF Op(t).o = "hold" /\ \E b \in B : b > s.hd.len THEN Abort(t) /\ UNCHANGED bad
     ELSE IF s.sh \cap B # {} THEN S' = [S EXCEPT ![t].sh = {}] /\ UNCHANGED <<ent,bad>>
     ELSE /\ ~Others(t, B \ s.ex, FALSE)
          /\ UNCHANGED ent
          /\ Step(t, [s EXCEPT !.ex = @ \cup B])
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,abs,hist,acked,base,gg,nc>>
View(t) ==
  /\ Running(t, "view")
  /\ LET B == Range(t)  s == S[t] IN
     IF \E b \in B : b > s.hd.len THEN Abort(t) /\ UNCHANGED bad
     ELSE /\ ~Others(t, B \ s.ex, TRUE)
          /\ UNCHANGED ent
          /\ Step(t, [s EXCEPT !.sh = @ \cup B])
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,abs,hist,acked,base,gg,nc>>
\* A piece: own bytes; a hole; a version under an exclusive range (read_held); else one that is
\* validated (read_newest).  Either way all that was read before is found unchanged.
Get(t) ==
  /\ Running(t, "get")
  /\ LET B == Op(t).B  s == S[t]  z == s.hd.tab[ChunkOf(Min(B))]
         own == IF z \in DOMAIN s.ws THEN {b \in B : Pos(b) \in DOMAIN s.ws[z].by} ELSE {}
         held == B \subseteq s.ex
         seen == [st |-> ent[z].st, se |-> ent[z].se, B |-> B, viewed |-> B \subseteq s.sh]
         rs2 == IF held THEN s.rs ELSE IF z \in DOMAIN s.rs THEN [s.rs EXCEPT ![z].B = @ \cup B] ELSE (z :> seen) @@ s.rs
     IN IF \E b \in B : b > s.hd.len THEN Abort(t) /\ UNCHANGED bad
        ELSE IF z = 0 THEN UNCHANGED ent /\ Step(t, [s EXCEPT !.two = TRUE, !.out = @ @@ [b \in B |-> 0]])
        ELSE IF own = B THEN UNCHANGED ent /\ Step(t, s)
        ELSE /\ Free(z, t)
             /\ IF ent[z].v = Gone \/ (IF held /\ m("heldNoRecheck") THEN FALSE ELSE ~Holds(t, rs2))
                   \/ (z \in DOMAIN s.rs /\ ~held /\ s.rs[z].st # ent[z].st)
                THEN Abort(t) /\ UNCHANGED bad
                ELSE /\ UNCHANGED ent
                     /\ Step(t, [s EXCEPT !.rs = rs2, !.two = @ \/ ~held,
                                          !.un = IF held THEN @ \cup {<<ent[z].st, ent[z].se>>} ELSE @,
                                          !.out = @ @@ [b \in B \ own |-> ent[z].v[Pos(b)]]])
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,abs,hist,acked,base,gg,nc>>
\* A patch, of any version; into a hole, a new chunk, which changes the table
Put(t) ==
  /\ Running(t, "put")
  /\ LET B == Op(t).B  s == S[t]  c == ChunkOf(Min(B))  z == s.hd.tab[c]
         by == [p \in {Pos(b) : b \in B} |-> Id(t)]
         s2 == [s EXCEPT !.w = [b \in B |-> Id(t)] @@ @]
         slots == {y \in Slots : ent[y].v = Gone /\ ent[y].lk = 0}
     IN IF z # 0
        THEN /\ UNCHANGED ent
             /\ Step(t, [s2 EXCEPT !.ws = IF z \in DOMAIN @ THEN [@ EXCEPT ![z].by = by @@ @]
                                          ELSE (z :> [m |-> "patch", by |-> by, st |-> 0, old |-> ent[z].v]) @@ @])
        ELSE /\ slots # {}
             /\ IF ~Holds(t, s.rs) THEN Abort(t) /\ UNCHANGED bad
                ELSE LET y == Min(slots) IN
                     /\ ent' = [ent EXCEPT ![y].lk = t]
                     /\ Step(t, [s2 EXCEPT !.ws = (y :> [m |-> "make", by |-> by @@ Zeros, st |-> 0, old |-> Gone]) @@ @,
                                           !.hd.tab[c] = y, !.hw = TRUE, !.two = TRUE])
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,abs,hist,acked,base,gg,nc>>
\* shrink: zeros over the end of the last chunk that stays, and the others are destroyed
Size(t) ==
  /\ Running(t, "size")
  /\ LET n == Op(t).n  s == S[t]  len == s.hd.len
         c == ChunksOf(n)  tail == {b \in Bytes : b > n /\ b <= len /\ ChunkOf(b) = c}
         z == IF tail = {} \/ m("tailStays") THEN 0 ELSE s.hd.tab[c]
         cut == [b \in {b \in Bytes : b > n /\ b <= len} |-> 0]
         drop == {s.hd.tab[d] : d \in {x \in Chunks : x > c}} \ {0}
         patch == IF z = 0 THEN <<>>
                  ELSE LET by == [p \in {Pos(b) : b \in tail} |-> 0] IN
                       (z :> [m |-> "patch", by |-> by, st |-> 0, old |-> ent[z].v])
         kill == [d \in drop |-> [m |-> "destroy", by |-> <<>>, st |-> ent[d].st, old |-> Gone]]
     IN /\ \A d \in drop : Free(d, t)
        /\ IF n = len THEN UNCHANGED ent /\ Step(t, [s EXCEPT !.two = TRUE])
           ELSE IF ~Holds(t, s.rs) THEN Abort(t) /\ UNCHANGED bad
           ELSE /\ UNCHANGED ent
                /\ Step(t, [s EXCEPT !.w = (0 :> n) @@ cut @@ @, !.hw = TRUE, !.hd.len = n,
                                     !.hd.tab = [x \in Chunks |-> IF x > c THEN 0 ELSE @[x]],
                                     !.ws = patch @@ kill @@ @])
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,abs,hist,acked,base,gg,nc>>

(*--------------------------------- commit --------------------------------*)
\* A patch's entry is locked at whatever version it has, all others at the one that was seen
Lock(t) ==
  /\ Live /\ S[t].pc = "lock" /\ S[t].td # {}
  /\ LET s == S[t]  k == Min(s.td)
         st == IF k = 0 THEN s.rs[0].st ELSE s.ws[k].st IN
     /\ ent[k].lk = 0
     /\ IF Mode(t, k) # "patch" /\ ent[k].st # st THEN Abort(t)
        ELSE ent' = [ent EXCEPT ![k].lk = t] /\ S' = [S EXCEPT ![t].td = @ \ {k}]
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,ghost>>
Ver(k) == <<ent[k].st, ent[k].se>>
ReadVers(s) == {<<s.rs[k].st, s.rs[k].se>> : k \in DOMAIN s.rs}
Latest(V, u) == LET z == {v[1] : v \in {x \in V : x[2] = u}} IN IF z = {} THEN 0 ELSE Max(z)
Touched(by) == {WordOf(p) : p \in DOMAIN by}
Copy(t, z) == LET w == S[t].ws[z] IN
  CASE w.m = "make" -> w.by
    [] w.m = "destroy" -> Gone
    [] OTHER -> Over(w.by, IF m("patchOverSeen") THEN w.old ELSE ent[z].v)
\* what the log gets of an entry: of a patch, the words that hold its bytes
Change(t, k) ==
  IF k = 0 THEN [m |-> "update", ws |-> {1,2}, v |-> S[t].hd]
  ELSE LET w == S[t].ws[k] IN
       CASE w.m = "make" -> [m |-> "make", ws |-> Words(k), v |-> w.by]
         [] w.m = "destroy" -> [m |-> "destroy", ws |-> {0}, v |-> Gone]
         [] OTHER -> [m |-> "patch", ws |-> Touched(w.by), v |-> IF m("staleWords") THEN Over(w.by, w.old) ELSE Copy(t, k)]
\* Step 1 without the locks, and step 2: the commit point
Stamp(t) ==
  /\ Live /\ S[t].pc = "lock" /\ S[t].td = {}
  /\ LET s == S[t]
         over == {Ver(k) : k \in W(s)}
         oldp == {Ver(z) : z \in Patches(t)}
         all == {v \in ReadVers(s) \cup s.un \cup over : v[1] > 0}
         deps == {v \in all : /\ v[2] # t /\ v[1] > S[v[2]].com
                              /\ ~(m("patchNoDependency") /\ v \in oldp)
                              /\ ~(m("heldNoDependency") /\ v \in s.un)}
         above == {v \in all : ~(m("patchNoStamp") /\ v \in oldp)}
         need == Writers(s.out @@ s.w)
     IN IF (\E z \in Patches(t) : ent[z].v = Gone) \/ ~Holds(t, s.rs)
        THEN Abort(t) /\ UNCHANGED <<abs,hist,bad>>
        ELSE \E j \in Phys :
          LET st == Max({j, s.own+1, floor+1} \cup {v[1]+1 : v \in above})
              rec == [k \in {k \in W(s) : ~(m("sizeNotLogged") /\ k = 0 /\ s.hd.len # ent[0].v.len)} |-> Change(t, k)]
          IN /\ S' = [S EXCEPT ![t] = [@ EXCEPT !.pc = "pub", !.td = W(s), !.stm = st, !.own = st,
                        !.new = [k \in W(s) |-> IF k = 0 THEN s.hd ELSE Copy(t, k)],
                        !.rec = [id |-> Id(t), st |-> st, dep |-> [u \in Sess |-> Latest(deps, u)], w |-> rec]]]
             /\ UNCHANGED ent
             /\ abs' = [v |-> s.w @@ abs.v, w |-> [i \in DOMAIN s.w |-> Id(t)] @@ abs.w]
             /\ hist' = hist \cup {[id |-> Id(t), t |-> t, st |-> st, n |-> Cardinality(hist), w |-> s.w, need |-> need]}
             /\ bad' = IF ~Sees(s.out) THEN "NOT-SERIALIZABLE"
                       ELSE IF \E v \in all : v[1] >= st THEN "STAMP-NOT-TOPOLOGICAL" ELSE bad
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,acked,base,gg,nc>>
\* Step 3, entry by entry; after the last one the ranges are let go and the record is sealed
Publish(t) ==
  /\ Live /\ S[t].pc = "pub"
  /\ LET s == S[t]  k == Min(s.td)  td2 == s.td \ {k} IN
     /\ ent' = [ent EXCEPT ![k] = [st |-> s.stm, se |-> t, lk |-> 0, hm |-> FALSE, v |-> s.new[k]]]
     /\ S' = [S EXCEPT ![t] = IF td2 = {} THEN Rest(@) ELSE [@ EXCEPT !.td = td2]]
     /\ log' = IF td2 = {} THEN [log EXCEPT ![t] = Append(@, s.rec)] ELSE log
  /\ UNCHANGED <<floor,ck,home,sb,rv,ghost>>
\* Steps 4 and 5, by the owner or a helper
Advance(t) ==
  /\ Live /\ S[t].cn < Len(log[t])
  /\ LET r == log[t][S[t].cn + 1] IN
     /\ \A u \in Sess : r.dep[u] <= S[u].com
     /\ S' = [S EXCEPT ![t].cn = @+1, ![t].com = r.st] /\ acked' = acked \cup {r.id}
  /\ UNCHANGED <<ent,floor,ck,log,home,sb,rv,abs,hist,base,gg,nc,bad>>
\* Read-only: validated if more than one version was read; then it waits for what it read
RoValidate(t) ==
  /\ Live /\ S[t].pc = "val"
  /\ IF ~Holds(t, S[t].rs) THEN Abort(t) /\ UNCHANGED bad
     ELSE /\ S' = [S EXCEPT ![t].pc = "ro", ![t].new = Writers(S[t].out)] /\ UNCHANGED ent
          /\ bad' = IF Sees(S[t].out) THEN bad ELSE "NOT-SERIALIZABLE"
  /\ UNCHANGED <<floor,ck,log,home,sb,rv,abs,hist,acked,base,gg,nc>>
RoDone(t) ==
  /\ Live /\ S[t].pc = "ro"
  /\ \A v \in ReadVers(S[t]) \cup (IF m("heldNoDependency") THEN {} ELSE S[t].un) : v[1] > 0 => v[1] <= S[v[2]].com
  /\ acked' = acked \cup S[t].new
  /\ S' = [S EXCEPT ![t] = Rest(@)]
  /\ UNCHANGED <<ent,floor,ck,log,home,sb,rv,abs,hist,base,gg,nc,bad>>

(*------------------------------- checkpoint ------------------------------*)
CkStart ==
  /\ Live /\ ck.ph = "idle" /\ ck.cnt < MaxCkpt /\ \E t \in Sess : log[t] # <<>>
  /\ \E j \in Phys, known \in {{}, Sess} : floor' = Max({j, floor+1} \cup {S[t].own : t \in known})
  /\ ck' = [ck EXCEPT !.ph = "settle", !.cnt = @+1]
  /\ UNCHANGED <<S,ent,log,home,sb,rv,ghost>>
Named == UNION {UNION {DOMAIN log[t][n].w : n \in {x \in sb.from[t]..Len(log[t]) : log[t][x].st <= floor}} : t \in Sess}
CkSettle ==
  /\ Live /\ ck.ph = "settle"
  /\ \A t \in Sess : /\ S[t].pc = "pub" => S[t].stm > floor
                     /\ \A n \in 1..Len(log[t]) : log[t][n].st <= floor => n <= S[t].cn
  /\ ck' = [ck EXCEPT !.ph = "cap", !.td = Named]
  /\ UNCHANGED <<S,ent,floor,log,home,sb,rv,ghost>>
\* the newest version of each, whole, whoever patched it last
CkCapture ==
  /\ Live /\ ck.ph = "cap" /\ ck.td # {}
  /\ LET k == Min(ck.td)
         skip == ent[k].hm \/ (m("ckSkipsNewer") /\ ent[k].st > floor) IN
     /\ ent[k].lk = 0
     /\ ck' = [ck EXCEPT !.td = @ \ {k}, !.cap = IF skip THEN @ ELSE (k :> [st |-> ent[k].st, se |-> ent[k].se, v |-> ent[k].v]) @@ @]
  /\ UNCHANGED <<S,ent,floor,log,home,sb,rv,ghost>>
CkCommitted ==
  /\ Live /\ ck.ph = "cap" /\ ck.td = {}
  /\ m("ckOpenPatches") \/ \A k \in DOMAIN ck.cap : ck.cap[k].st <= S[ck.cap[k].se].com
  /\ ck' = [ck EXCEPT !.ph = "home", !.td = {<<k, w>> \in (DOMAIN ck.cap) \X (1..(CB+2)) : ck.cap[k].v # Gone /\ w \in Words(k)}]
  /\ UNCHANGED <<S,ent,floor,log,home,sb,rv,ghost>>
\* words reach the media in any order
CkHome ==
  /\ Live /\ ck.ph = "home" /\ ck.td # {}
  /\ \E x \in ck.td : /\ home' = [home EXCEPT ![x[1]] = Store(@, ck.cap[x[1]].v, x[1], x[2])]
                      /\ ck' = [ck EXCEPT !.td = @ \ {x}]
  /\ UNCHANGED <<S,ent,floor,log,sb,rv,ghost>>
CkSb ==
  /\ Live /\ ck.ph = "home" /\ ck.td = {}
  /\ LET dead == {k \in DOMAIN ck.cap : ck.cap[k].v = Gone} IN
     sb' = [L |-> floor, bm |-> (sb.bm \ dead) \cup (DOMAIN ck.cap \ (dead \cup {0})),
            from |-> [t \in Sess |-> 1 + Cardinality({n \in 1..Len(log[t]) : log[t][n].st <= floor})]]
  /\ ck' = [ck EXCEPT !.ph = "swing", !.td = DOMAIN ck.cap]
  /\ UNCHANGED <<S,ent,floor,log,home,rv,ghost>>
CkSwing ==
  /\ Live /\ ck.ph = "swing"
  /\ IF ck.td = {} THEN ck' = CkIdle(ck.cnt) /\ UNCHANGED ent
     ELSE LET k == Min(ck.td)  same == ent[k].st = ck.cap[k].st IN
          /\ ck' = [ck EXCEPT !.td = @ \ {k}]
          /\ ent' = IF ent[k].lk = 0 /\ (same \/ m("swingNewer")) THEN [ent EXCEPT ![k].hm = TRUE, ![k].v = ck.cap[k].v] ELSE ent
  /\ UNCHANGED <<S,floor,log,home,sb,rv,ghost>>

(*--------------------------- crash and recovery --------------------------*)
Crash ==
  /\ nc < MaxCrash /\ bad = "ok" /\ nc' = nc+1
  /\ IF rv.ph = "up"
     THEN \E d \in [Sess -> 0..Max({Len(log[t]) : t \in Sess})] :
            /\ \A t \in Sess : d[t] \in S[t].cn..Len(log[t])
            /\ rv' = [ph |-> "scan", d |-> d]
     ELSE rv' = [ph |-> "scan", d |-> rv.d]      \* in recovery: what was scanned had been made durable
  /\ S' = [t \in Sess |-> Fresh] /\ ck' = CkIdle(ck.cnt) /\ floor' = 0 /\ ent' = [k \in 0..Z |-> Entry0(Gone)]
  /\ UNCHANGED <<log,home,sb,abs,hist,acked,base,gg,bad>>
RECURSIVE Cut(_)
Cut(d) == LET top(u) == IF d[u] < sb.from[u] THEN sb.L ELSE log[u][d[u]].st
              ok(r) == \A u \in Sess : r.dep[u] <= sb.L \/ r.dep[u] <= top(u)
              d2 == [t \in Sess |-> LET out == {n \in sb.from[t]..d[t] : ~ok(log[t][n])} IN IF out = {} THEN d[t] ELSE Min(out) - 1]
          IN IF d2 = d \/ m("replayOpen") THEN d ELSE Cut(d2)
Rec(n) == log[n[1]][n[2]]
Before(a, b) == IF m("logOrder") THEN a[1] < b[1] \/ (a[1] = b[1] /\ a[2] < b[2])
                ELSE Rec(a).st < Rec(b).st \/ (Rec(a).st = Rec(b).st /\ a[1] < b[1])
\* the DAG: the own session's records; dependencies; the last earlier writer of each entry
Edges(A) ==
  (IF m("dagNoLog") THEN {} ELSE {e \in A \X A : e[1][1] = e[2][1] /\ e[1][2] + 1 = e[2][2]})
  \cup {e \in A \X A : LET a == e[1]  b == e[2] IN
          a[1] # b[1] /\ Rec(a).st <= Rec(b).dep[a[1]] /\ ~\E x \in A : x[1] = a[1] /\ x[2] > a[2] /\ Rec(x).st <= Rec(b).dep[a[1]]}
  \cup (IF m("dagNoWriters") THEN {}
        ELSE {e \in A \X A : LET a == e[1]  b == e[2] IN
          a[1] # b[1] /\ \E k \in DOMAIN Rec(a).w \cap DOMAIN Rec(b).w :
             Before(a, b) /\ ~\E x \in A : k \in DOMAIN Rec(x).w /\ Before(a, x) /\ Before(x, b)})
\* one store of a record's replay: x = <<record, entry, word>>; a destroyed chunk only leaves the bitmap
Apply(x, hb) ==
  LET k == x[2]  c == Rec(x[1]).w[k] IN
  [hm |-> IF c.m = "destroy" THEN hb.hm ELSE [hb.hm EXCEPT ![k] = Store(@, c.v, k, x[3])],
   bm |-> IF c.m = "make" THEN hb.bm \cup {k} ELSE IF c.m = "destroy" THEN hb.bm \ {k} ELSE hb.bm]
Stores(A) == UNION {UNION {{<<n, k, w>> : w \in Rec(n).w[k].ws} : k \in DOMAIN Rec(n).w} : n \in A}
RECURSIVE InOrder(_,_)
InOrder(left, hb) == IF left = {} THEN hb
  ELSE LET x == CHOOSE x \in left : \A y \in left : x[1] = y[1] \/ Before(x[1], y[1]) IN InOrder(left \ {x}, Apply(x, hb))
RvScan ==
  /\ rv.ph = "scan" /\ bad = "ok"
  /\ \E strategy \in Strategies :
     LET d == Cut(rv.d)
         A == UNION {{<<t, n>> : n \in sb.from[t]..d[t]} : t \in Sess}
     IN rv' = [ph |-> "apply", d |-> rv.d, by |-> strategy, left |-> Stores(A), bm |-> sb.bm,
               edges |-> IF strategy = "dag" THEN Edges(A) ELSE {}, ids |-> {Rec(n).id : n \in A},
               want |-> InOrder(Stores(A), [hm |-> home, bm |-> sb.bm])]
  /\ UNCHANGED <<S,ent,floor,ck,log,home,sb,ghost>>
\* by stamp: each entry's writes in the order of their stamps; by DAG: a record when its predecessors are done
Ready(x) == IF rv.by = "stamp" THEN ~\E y \in rv.left : y[2] = x[2] /\ y[1] # x[1] /\ Before(y[1], x[1])
            ELSE ~\E y \in rv.left : <<y[1], x[1]>> \in rv.edges
RvApply ==
  /\ rv.ph = "apply" /\ bad = "ok"
  /\ \E x \in rv.left : /\ Ready(x)
       /\ LET r == Apply(x, [hm |-> home, bm |-> rv.bm]) IN home' = r.hm /\ rv' = [rv EXCEPT !.left = @ \ {x}, !.bm = r.bm]
  /\ UNCHANGED <<S,ent,floor,ck,log,sb,ghost>>
\* ---- ghost: the object that the transactions in V make, in the order of their commit points
ValueOf(V, i) == LET c == {h \in hist : h.id \in V /\ i \in DOMAIN h.w} IN
                 IF c = {} THEN base[i] ELSE (CHOOSE h \in c : \A g \in c : g.n <= h.n).w[i]
Below == {h.id : h \in {x \in hist : x.st <= sb.L /\ x.id \in acked}}
Verdict(V) ==
  IF rv.want # [hm |-> home, bm |-> rv.bm] THEN "STRATEGIES-DIFFER"
  ELSE IF \E i \in acked : i \div 100 = gg /\ i \notin V THEN "ACKNOWLEDGED-LOST"
  ELSE IF \E h \in hist : h.id \in V /\ \/ ~(h.need \subseteq V)
                                        \/ \E g \in hist : g.t = h.t /\ g.n < h.n /\ g.id \notin V THEN "NOT-CLOSED"
  ELSE IF Image(home[0], Alive(home, rv.bm)) # [i \in Items |-> ValueOf(V, i)] THEN "WRONG-IMAGE" ELSE "ok"
\* the new superblock, its log empty, and the opening
RvDone ==
  /\ rv.ph = "apply" /\ bad = "ok" /\ rv.left = {}
  /\ bad' = Verdict(rv.ids \cup Below)
  /\ sb' = [L |-> Max({sb.L} \cup {h.st : h \in hist}), from |-> [t \in Sess |-> 1], bm |-> rv.bm]
  /\ rv' = Up /\ floor' = sb'.L /\ log' = [t \in Sess |-> <<>>]
  /\ ent' = [k \in 0..Z |-> Entry0(Alive(home, rv.bm)[k])]
  /\ base' = Image(home[0], Alive(home, rv.bm)) /\ abs' = Unwritten(base')
  /\ hist' = {} /\ acked' = {} /\ gg' = gg+1
  /\ UNCHANGED <<S,ck,home,nc>>
(*-------------------------------------------------------------------------*)
AllDone == /\ Live /\ ck.ph = "idle"
           /\ \A t \in Sess : S[t].pc = "idle" /\ S[t].nt >= Budget[gg+1][t] /\ S[t].cn = Len(log[t])
Finished == AllDone /\ UNCHANGED vars
Next == \/ \E t \in Sess : \/ Begin(t) \/ GiveUp(t) \/ Hold(t) \/ View(t) \/ Get(t) \/ Put(t) \/ Size(t)
                           \/ Lock(t) \/ Stamp(t) \/ Publish(t) \/ Advance(t) \/ RoValidate(t) \/ RoDone(t)
        \/ CkStart \/ CkSettle \/ CkCapture \/ CkCommitted \/ CkHome \/ CkSb \/ CkSwing
        \/ Crash \/ RvScan \/ RvApply \/ RvDone
        \/ Finished
Spec == Init /\ [][Next]_vars
(*------------------------------- invariants ------------------------------*)
\* what a transaction read is what is there at its commit point
Serializable == bad # "NOT-SERIALIZABLE"
\* when nobody is publishing, the newest versions are what all commit points make: no patch undoes
\* another one, none is half there, and behind the end there are zeros
NoLostUpdate == Live /\ (\A t \in Sess : S[t].pc # "pub") => Image(ent[0].v, [z \in Slots |-> ent[z].v]) = abs.v
\* whose version was read, or patched, has the smaller stamp
StampsAreTopological == bad # "STAMP-NOT-TOPOLOGICAL"
\* both ways to replay leave the same bytes and bitmaps
StrategiesAgree == bad # "STRATEGIES-DIFFER"
NothingAcknowledgedIsLost == bad # "ACKNOWLEDGED-LOST"
\* with a transaction, all those are there whose bytes it read or wrote over, and its session's earlier ones
DependencyClosed == bad # "NOT-CLOSED"
\* what recovery leaves is what those transactions make: no patch is torn, none undoes another
RightImage == bad # "WRONG-IMAGE"
=============================================================================

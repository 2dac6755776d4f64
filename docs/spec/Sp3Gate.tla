------------------------------- MODULE Sp3Gate -------------------------------
(***************************************************************************)
(* The serial gate: a transaction that has lost K times keeps new attempts *)
(* of others out until it has committed.  This is about progress alone, so *)
(* an attempt is as bad as can be: it fails if anybody commits during it.  *)
(*                                                                         *)
(* Fairness: an attempt that runs ends; who waits at the gate while it is  *)
(* open again and again gets through (in the code by chance, since several *)
(* race for it).  Patience is finite: each time it runs out, an attempt    *)
(* gets past the gate, and of this there is no end, no progress either.    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets
CONSTANTS T,        \* sessions 1..T; each runs one transaction after the other
          K,        \* serial_after_aborts
          Patience, \* how often waiters lose patience in all (nested: whenever they like)
          CanFill,  \* TRUE: commits may fill the log, and only a checkpoint empties it
          Nested,   \* TRUE: session 2's transactions are run inside the body of session 1's
          Mut
VARIABLES pc, lost, fails, need, won, gate, left, full, ck, inner
vars == <<pc,lost,fails,need,won,gate,left,full,ck,inner>>

Sess == 1..T
m(x) == x \in Mut
None == T+1          \* ck: no checkpoint
\* nested: session 1 is in its body, with the gate, and waits for session 2
Init == /\ pc = [t \in Sess |-> "begin"] /\ lost = [t \in Sess |-> FALSE]
        /\ fails = [t \in Sess |-> IF Nested /\ t = 1 THEN K ELSE 0]
        /\ need = [t \in Sess |-> FALSE] /\ won = [t \in Sess |-> FALSE]
        /\ gate = 0 /\ left = Patience /\ full = FALSE /\ ck = {None} /\ inner = ~Nested

Shut(t) == gate \notin {0,t} /\ ~m("noGate")
\* an inner session has something to do only while the body that uses it runs
Here(t) == Nested /\ t = 2 => pc[1] = "run" /\ ~inner
\* Waiting at the gate is between attempts: nothing pinned, nothing locked.
Pinned(t) == pc[t] = "run" \/ (m("waitPinned") /\ pc[t] = "begin" /\ Shut(t))
Run(t) == /\ pc' = [pc EXCEPT ![t] = IF need[t] THEN "space" ELSE "run"]
          /\ lost' = [lost EXCEPT ![t] = FALSE] /\ won' = [won EXCEPT ![t] = FALSE]
          /\ inner' = IF Nested /\ t = 1 THEN FALSE ELSE inner
Pass(t) == /\ pc[t] = "begin" /\ Here(t) /\ ~Shut(t) /\ (gate = t \/ fails[t] < K \/ m("noGate"))
           /\ Run(t) /\ UNCHANGED <<fails,need,gate,left,full,ck>>
Take(t) == /\ pc[t] = "begin" /\ Here(t) /\ gate = 0 /\ fails[t] >= K /\ ~m("noGate")
           /\ gate' = t /\ Run(t) /\ UNCHANGED <<fails,need,left,full,ck>>
LosePatience(t) == /\ pc[t] = "begin" /\ Here(t) /\ Shut(t) /\ (Nested \/ left > 0) /\ ~m("noPatience")
                   /\ left' = IF left > 0 THEN left-1 ELSE left
                   /\ Run(t) /\ UNCHANGED <<fails,need,gate,full,ck>>
\* the log was full last time: wait for room before the body runs again, still unpinned
Space(t) == /\ pc[t] = "space" /\ ~full
            /\ pc' = [pc EXCEPT ![t] = "run"] /\ need' = [need EXCEPT ![t] = FALSE]
            /\ UNCHANGED <<lost,fails,won,gate,left,full,ck,inner>>
Fail(t) == /\ pc' = [pc EXCEPT ![t] = "begin"]
           /\ fails' = [fails EXCEPT ![t] = IF @ < K THEN @+1 ELSE @]
           /\ need' = [need EXCEPT ![t] = full]
           /\ gate' = IF m("gatePerAttempt") /\ gate = t THEN 0 ELSE gate
           /\ UNCHANGED <<lost,won,left,full,ck,inner>>
Commit(t) == /\ pc' = [pc EXCEPT ![t] = "begin"] /\ won' = [won EXCEPT ![t] = TRUE]
             /\ fails' = [fails EXCEPT ![t] = 0]
             /\ lost' = [u \in Sess |-> lost[u] \/ (u # t /\ pc[u] \in {"run","space"} /\ ~Nested)]
             /\ gate' = IF gate = t /\ ~m("gateKept") THEN 0 ELSE gate
             /\ full' \in (IF CanFill THEN {FALSE, TRUE} ELSE {FALSE})
             /\ inner' = (IF Nested /\ t = 2 THEN TRUE ELSE inner)
             /\ UNCHANGED <<need,left,ck>>
Finish(t) == /\ pc[t] = "run" /\ (t = 1 => inner)
             /\ IF full \/ lost[t] THEN Fail(t) ELSE Commit(t)
\* a checkpoint waits until everyone who is pinned has unpinned
CkStart == /\ full /\ ck = {None} /\ ck' = {t \in Sess : Pinned(t)} /\ UNCHANGED <<pc,lost,fails,need,won,gate,left,full,inner>>
CkPass(t) == /\ t \in ck /\ ~Pinned(t) /\ ck' = ck \ {t} /\ UNCHANGED <<pc,lost,fails,need,won,gate,left,full,inner>>
CkDone == /\ ck = {} /\ full' = FALSE /\ ck' = {None} /\ UNCHANGED <<pc,lost,fails,need,won,gate,left,inner>>
Next == \/ \E t \in Sess : Pass(t) \/ Take(t) \/ LosePatience(t) \/ Space(t) \/ Finish(t) \/ CkPass(t)
        \/ CkStart \/ CkDone
Fair == /\ \A t \in Sess : /\ SF_vars(Pass(t)) /\ SF_vars(Take(t)) /\ SF_vars(Space(t))
                           /\ WF_vars(Finish(t)) /\ WF_vars(CkPass(t))
                           /\ Nested => WF_vars(LosePatience(t))
        /\ WF_vars(CkStart) /\ WF_vars(CkDone)
Spec == Init /\ [][Next]_vars /\ Fair
\* every session commits again and again
Progress == \A t \in Sess : []<>won[t]
=============================================================================

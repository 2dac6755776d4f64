---------------------------- MODULE Sp3DesignMC ----------------------------
\* Small instances of Sp3Design: transaction menus and budgets.
EXTENDS Sp3Design
tx(r, w) == [r |-> r, w |-> w]
d1 == tx({}, 1 :> {1})                   \* delta: word 1 of object 1
d2 == tx({}, 1 :> {2})                   \* delta: word 2 of object 1
im == tx({}, 1 :> {1,2})                 \* image of object 1
rm == tx({1}, 1 :> {2})                  \* read-modify-write of object 1
rw == tx({1}, 2 :> {1})                  \* read 1, write 2
wr == tx({2}, 1 :> {2})                  \* read 2, write 1
bo == tx({}, (1 :> {1}) @@ (2 :> {2}))   \* deltas of both
ro == tx({1,2}, <<>>)                    \* read-only
r1 == tx({1}, <<>>)
o2 == tx({}, 2 :> {1})                   \* blind write of object 2
MAll   == [t \in 1..T |-> {d1, rw, wr, bo, ro}]
MSer   == [t \in 1..T |-> {rm, rw, wr, ro}]
MSer3  == [t \in 1..T |-> IF t = 1 THEN {rw} ELSE IF t = 2 THEN {wr, bo} ELSE {ro}]
MCk    == [t \in 1..T |-> {d1, d2}]
MCk2   == [t \in 1..T |-> IF t = 1 THEN {d1, rw} ELSE {d2, r1}]
MHot   == [t \in 1..T |-> IF t = 1 THEN {d1} ELSE {d2, im}]
MRo    == [t \in 1..T |-> IF t = 1 THEN {d1, r1} ELSE {o2, rw, r1}]
MDep3  == [t \in 1..T |-> IF t = 1 THEN {d1} ELSE IF t = 2 THEN {rw} ELSE {tx({2}, 2 :> {2})}]
MAs    == [t \in 1..T |-> IF t = 1 THEN {d1, r1} ELSE {o2, rm}]
MOwn   == [t \in 1..T |-> IF t = 1 THEN {o2, rm} ELSE {d1}]
MD1 == [t \in 1..T |-> {d1}]
All(n) == [t \in 1..T |-> n]
B1 == <<All(1),All(1),All(1)>>
B2 == <<All(2),All(1),All(1)>>
B21 == <<All(2),All(1)>>
B22 == <<All(2),All(2),All(1)>>
B3 == <<All(3),All(1),All(1)>>
B31 == <<[t \in 1..T |-> IF t = 1 THEN 3 ELSE 1], All(0)>>
B20 == <<[t \in 1..T |-> IF t = 1 THEN 2 ELSE 1], All(0)>>
B211 == <<[t \in 1..T |-> IF t = 1 THEN 2 ELSE 1], All(1), All(1)>>
B200 == <<[t \in 1..T |-> IF t = 1 THEN 2 ELSE 1], All(0), All(0)>>
MStale == [t \in 1..T |-> IF t = 1 THEN {d1} ELSE {rw}]
=============================================================================

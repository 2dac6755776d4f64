---------------------------- MODULE Sp3RangedMC ----------------------------
\* Small instances of Sp3Ranged: transactions, menus and budgets.
EXTENDS Sp3Ranged
hold(B) == <<[o |-> "hold", B |-> B]>>
view(B) == <<[o |-> "view", B |-> B]>>
get(B) == <<[o |-> "get", B |-> B]>>
put(B) == <<[o |-> "put", B |-> B]>>
size(n) == <<[o |-> "whole"], [o |-> "size", n |-> n]>>
write(B) == hold(B) \o put(B)
locked(B) == hold(B) \o get(B) \o put(B)     \* read in order to change, under lock()
change(B) == get(B) \o hold(B) \o put(B)     \* the same without
viewed(B) == view(B) \o get(B) \o hold(B) \o put(B)
across(A, B) == hold(A \cup B) \o put(A) \o put(B)
reset == size(0) \o size(2)
\* neighbours in one chunk, and the same byte
MWords == [t \in 1..T |-> {write({1}), write({2})}]
\* neighbours alone
MSides == [t \in 1..T |-> {write({t})}]
\* every way to read in order to change, neighbours, and a reader
MHeld  == [t \in 1..T |-> {locked({1}), change({1}), viewed({1}), write({2}), hold({1}) \o get({1}) \o get({2})}]
\* ranges taken in both orders
MOrders == [t \in 1..T |-> IF t = 1 THEN {hold({1}) \o hold({2}) \o put({1})} ELSE {hold({2}) \o hold({1}) \o put({2})}]
\* writes across two chunks, and what was read in one written to the other
MChunks == [t \in 1..T |-> IF t = 1 THEN {across({2},{3}), write({1})}
                           ELSE {across({2},{3}), hold({1,3}) \o get({1}) \o put({3})}]
\* a chunk that is destroyed, made again in its slot, patched and read meanwhile
MHoles == [t \in 1..T |-> IF t = 1 THEN {reset, write({1})} ELSE {write({2}), change({2}), get({1})}]
\* a size that changes under writers and readers
MSize  == [t \in 1..T |-> IF t = 1 THEN {size(1), size(2), size(4)}
                          ELSE {write({2}), write({3}), locked({2}), hold({2}) \o get({2})}]
All(n) == [t \in 1..T |-> n]
B1 == <<All(1),All(0),All(0)>>
B11 == <<All(1),All(1),All(0)>>
B21 == <<[t \in 1..T |-> IF t = 1 THEN 2 ELSE 1], All(0), All(0)>>
B2 == <<All(2),All(0),All(0)>>
=============================================================================

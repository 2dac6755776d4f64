----------------------------- MODULE Sp3AllocMC -----------------------------
\* Small instances of Sp3Alloc: how many attempts each session may make in each life.
EXTENDS Sp3Alloc
B4 == <<<<4>>, <<1>>>>
B21 == <<<<2,1>>, <<1,0>>>>
=============================================================================

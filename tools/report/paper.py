"""What the papers state in numbers. Their figures are pictures only; nothing here is read off one.

Ratios are of throughput, from section IV of the SP3 paper and section 5.3 of the thesis on range
locks.
"""

# SP3 over another system: (lowest, highest, average) of the five workloads.
SP3_OVER = {
    (1, "pmdk"): (0.3427, 3.0165, 1.2740),
    (1, "mnemosyne"): (0.8752, 3.2026, 1.9594),
    (16, "pmdk"): (0.7883, 51.4964, 17.2330),
    (16, "mnemosyne"): (1.8763, 16.4753, 6.1399),
}

# 16 cores over one: (lowest, highest, average).
SCALING_16 = {
    "sp3": (0.61, 13.23, 10.11),
    "pmdk": (0.35, 3.61, 1.13),
    "mnemosyne": (0.70, 15.68, 5.59),
}

# Recovery with 24 threads and a checkpoint every 5 s, after 10 GB of logs.
RECOVERY_SECONDS = 30
RECOVERY_THREADS = 24
RECOVERY_CHECKPOINT_MS = 5000

SETUP = (
    "The paper measured on two Xeons of 12 cores at 2.2 GHz, with clflush, 500 ns added to each "
    "persistence, entries of 128 bytes, zipf 0.99 and half inserts."
)

LOCKS_W1 = "The thesis states for W1: four times the operations of the list, twelve times Song's."
LOCKS_W2 = "The thesis states for W2: two to nine times the list, two to six times Song's."
LOCKS_HEIGHT = "The thesis finds that heights beyond 10 gain nothing."

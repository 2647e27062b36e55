"""The seeds of each simulation.

SEEDS=10000 runs more, SEEDS_FROM=200 others than the first. A test that is marked `seeds(count)` is one test,
which is called with each of `count` seeds; a failure message contains the seed, and the command to run it
alone.
"""

import os

SEEDS = int(os.environ.get("SEEDS", "200"))
SEEDS_FROM = int(os.environ.get("SEEDS_FROM", "0"))
# Time limits of a test, and per seed, which takes milliseconds: the machine may be busy with other work.
TEST_S_MAX = 120
SEED_S_MAX = 0.5

"""Which seeds of each simulation are tried.

SEEDS=10000 asks for more, SEEDS_FROM=200 for others than the first. A test that is marked `seeds(count)` is
one test, which is called with each of `count` seeds; when it fails, its message says with which one, and how
to run that alone.
"""

import os

SEEDS = int(os.environ.get("SEEDS", "200"))
SEEDS_FROM = int(os.environ.get("SEEDS_FROM", "0"))
# A test takes so long at most, and for each seed, which takes milliseconds, so much more: the machine may be
# busy with other work.
TEST_S_MAX = 120
SEED_S_MAX = 0.5

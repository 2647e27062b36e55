"""How many runs of each simulation there are: SEEDS=10000 asks for more of each."""

import os

SEEDS = int(os.environ.get("SEEDS", "1000"))

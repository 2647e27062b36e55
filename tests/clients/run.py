"""The entry point of `make clients`; `python tests/clients/run.py --help` lists its options."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.clients.harness.command_line import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())

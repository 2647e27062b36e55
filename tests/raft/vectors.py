"""Published test vectors of a Raft implementation, which are not part of this project.

The environment variable `WARREN_RAFT_VECTORS` names a folder with the test data of etcd's raft library:
`quorum/testdata`, `confchange/testdata` and `testdata`. Without it their tests are skipped.
"""

import os
from pathlib import Path

import pytest

VARIABLE = "WARREN_RAFT_VECTORS"


def vectors(folder: str) -> list[object]:
    """Return a parameter for each file of a folder, or one that is skipped."""
    root = os.environ.get(VARIABLE)
    if root is None:
        reason = f"{VARIABLE} does not name a folder of published vectors"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id=f"no-{VARIABLE}")]
    found = sorted((Path(root) / folder).glob("*.txt"))
    assert found, f"{VARIABLE}: no vectors in {Path(root) / folder}"
    return [pytest.param(path, id=path.stem) for path in found]

"""Creates tests/fixtures/store-N-metadata-M.tar.gz: a data directory as this version of Warren writes it.

Run it when a format has a new version, and keep the fixtures of all earlier versions: new versions of Warren
will be started on such directories. The contents are declared in tests/integration/test_formats.py.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]


def main() -> int:
    """Let a broker fill a directory, and pack it; it consists mostly of zeros, which compress well."""
    from tests.integration.test_formats import fill

    path = FIXTURES / name()
    if path.exists():
        print(f"{path.relative_to(ROOT)} is there already: fixtures are made once", file=sys.stderr)
        return 1
    FIXTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        fill(data, Path(folder))
        (data / "warren.lock").unlink()
        with tarfile.open(path, "w:gz") as archive:
            archive.add(data, "data")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
    return 0


def name() -> str:
    """Return the name of the fixture for the formats that this version writes."""
    from warren.journal.file_format import VERSION as METADATA_VERSION
    from warren.store.record import VERSION as STORE_VERSION

    return f"store-{STORE_VERSION}-metadata-{METADATA_VERSION}.tar.gz"


if __name__ == "__main__":
    sys.exit(main())

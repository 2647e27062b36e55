"""Builds the source distribution and a wheel into dist/, and tries the wheel in an empty environment."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BUILD = (
    "import setuptools.build_meta as backend\n"
    "print(backend.build_sdist('dist'))\n"
    "print(backend.build_wheel('dist'))\n"
)


def main() -> int:
    """Build both, then install the wheel where nothing of the project is in reach and ask its version."""
    DIST.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", BUILD], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = DIST.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        install = [
            python,
            "-m",
            "pip",
            "install",
            "-qq",
            "-r",
            str(ROOT / "requirements" / "runtime.txt"),
            str(wheel),
        ]
        subprocess.run(install, cwd=folder, env=environment, check=True)
        version = [str(Path(folder) / "bin" / "warren"), "--version"]
        subprocess.run(version, cwd=folder, env={**environment, "WARREN_COMPILED": "1"}, check=True)
    for path in sorted(DIST.iterdir()):
        print(f"dist/{path.name}  {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

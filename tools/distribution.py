"""Builds the source distribution and a wheel into dist/, and tests the wheel in an empty environment."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from environment import BUILD_WHEEL

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BUILD = "import setuptools.build_meta as backend; backend.build_sdist('dist')"
PIP = ("-m", "pip", "--disable-pip-version-check", "-qq")


def main() -> int:
    """Build the wheel from the source distribution, and install it out of reach of the project's sources."""
    DIST.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", BUILD], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (source,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(source, folder)
        (unpacked,) = Path(folder).iterdir()
        print("Compiling the wheel from the source distribution", flush=True)
        subprocess.run([sys.executable, "-c", BUILD_WHEEL, str(DIST)], cwd=unpacked, check=True)
    (wheel,) = DIST.glob("*.whl")
    print("Installing it into an empty environment", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / "bin"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        packages = ["-r", str(ROOT / "requirements" / "runtime.txt"), str(wheel)]
        subprocess.run(
            [scripts / "python", *PIP, "install", *packages], cwd=folder, env=environment, check=True
        )
        subprocess.run([scripts / "warren", "--version"], cwd=folder, env=environment, check=True)
    for path in (source, wheel):
        print(f"dist/{path.name}  {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Builds the web interface from ui/ into the package, with the installed Node and npm.

Requires only the Python that runs it. With --optional, a machine without Node is not an error.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "ui"
OLDEST = (20, 19)
# npm writes this file when it has installed all packages of the lock file.
INSTALLED = SOURCE / "node_modules" / ".package-lock.json"
LOCK = SOURCE / "package-lock.json"
SECONDS_MAX = 600


def main() -> int:
    """Build the interface; a failure is printed as one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optional", action="store_true", help="go on where it cannot be built")
    chosen = parser.parse_args()
    reason = why_not() or build()
    if reason:
        print(f"The web interface is not built: {reason}", file=sys.stderr)
    return 0 if chosen.optional else bool(reason)


def why_not() -> str:
    """Return what is missing for a build; empty if nothing is."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "it needs Node and npm, and the broker works without it"
    written = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()
    found = re.match(r"v(\d+)\.(\d+)", written)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        return f"it needs Node {OLDEST[0]}.{OLDEST[1]} or newer, and this is {written or 'none'}"
    return ""


def build() -> str:
    """Install missing build tools, and build; returns the error, or an empty string."""
    print("Building the web interface")
    commands = [["npm", "run", "build"]]
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < LOCK.stat().st_mtime:
        commands.insert(0, ["npm", "ci", "--no-audit", "--no-fund"])
    for command in commands:
        try:
            ended = subprocess.run(
                command, cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                timeout=SECONDS_MAX, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{' '.join(command)} took more than {SECONDS_MAX} s"
        if ended.returncode:
            print("\n".join(ended.stdout.splitlines()[-15:]), file=sys.stderr)
            return f"{' '.join(command)} failed"
    return ""


if __name__ == "__main__":
    sys.exit(main())

"""Makes an environment that Warren runs in: interpreted from src/, or compiled and installed from a wheel.

Requires only the Python that runs it. `make` calls it when the stamp of the environment is out of date.
"""

from __future__ import annotations  # lets an older Python get as far as the version check

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
# The build requirements of `make dist` as well.
BUILD_WHEEL = (
    "import sys, setuptools.build_meta as backend; "
    "backend.build_wheel(sys.argv[1], {'--global-option': ['--quiet']})"
)
# Written into the environment for `make run` and the tests: which build is installed, or why there is none.
MARKER = "warren-build"


def main() -> int:
    """Create the environment of the command line; a failure is printed as one line after the output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["interpreted", "compiled", "packages", "spark", "in-front"])
    parser.add_argument("environment", type=Path)
    parser.add_argument("lists", nargs="*", help="files under requirements/")
    parser.add_argument("--of", type=Path, help="the environment that has what is not in the lists")
    chosen = parser.parse_args()
    if sys.version_info < OLDEST:
        return _fail(f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed; this is {sys.version.split()[0]}")
    if chosen.action == "in-front":
        return _put_in_front(chosen.environment, chosen.of, chosen.lists)
    try:
        _create(chosen.environment)
        _install_lists(chosen.environment, chosen.lists)
        if chosen.action in ("interpreted", "spark"):
            _install_interpreted(chosen.environment)
        elif chosen.action == "compiled":
            _install_compiled(chosen.environment)
    except subprocess.CalledProcessError as failure:
        if chosen.action == "spark":
            return _leave_out(chosen.environment, "its packages could not be installed")
        return _fail(f"this failed: {shlex.join(map(str, failure.cmd))}")
    return 0


def _leave_out(environment: Path, reason: str) -> int:
    """Skip the optional environment of a suite, and record the reason for the test run."""
    print(f"{environment} is not tested: {reason}")
    environment.mkdir(exist_ok=True)
    (environment / MARKER).write_text(f"{reason}\n")
    return 0


def _put_in_front(environment: Path, base: Path, lists: list[str]) -> int:
    """Install the packages of the lists in front of those of the environment `base`, which stays as it is."""
    marker, requirements = base / MARKER, ROOT / "requirements" / lists[0]
    found = marker.read_text().strip() if marker.exists() else "not made"
    if found == "interpreted" and _is_in_front(environment, base, requirements):
        return 0
    shutil.rmtree(environment, ignore_errors=True)
    if found != "interpreted":
        return _leave_out(environment, found)
    print(f"Installing {requirements.name} into {environment}, in front of {base}")
    try:
        venv.create(environment, with_pip=False)
        # The path of `base` is added last, since pip would otherwise replace its packages.
        _run(
            _python(base), "-m", "pip", "--python", _python(environment), "install", "-qq",
            "--disable-pip-version-check", "--no-input", "--no-deps", "-r", str(requirements),
        )  # fmt: skip
    except subprocess.CalledProcessError:
        shutil.rmtree(environment, ignore_errors=True)
        return _leave_out(environment, f"{requirements.name} could not be installed")
    behind = f"import site; site.addsitedir({str(_packages(base))!r})\n"
    (_packages(environment) / "behind.pth").write_text(behind)
    (environment / MARKER).write_text("interpreted\n")
    return 0


def _is_in_front(environment: Path, base: Path, requirements: Path) -> bool:
    """True if the environment is complete."""
    behind = _packages(environment) / "behind.pth"
    return (
        behind.exists()
        and repr(str(_packages(base))) in behind.read_text()
        and _is_installed(environment, requirements)
        and _succeeds(_python(environment), "-c", "import warren, pyarrow")
    )


def _packages(environment: Path) -> Path:
    """Return the directory of its packages."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment.absolute())}))


def _fail(reason: str) -> int:
    print(f"warren: {reason}", file=sys.stderr)
    return 1


def _python(environment: Path) -> str:
    return str(environment.absolute() / "bin" / "python")


def _run(*command: str, **variables: str) -> None:
    subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=True)


def _create(environment: Path) -> None:
    """Create a virtual environment with pip; one that does not run is created again."""
    python = _python(environment)
    if Path(python).exists() and _succeeds(python, "-m", "pip", "--version"):
        return
    print(f"Making {environment} with Python {sys.version.split()[0]}")
    shutil.rmtree(environment, ignore_errors=True)
    try:
        venv.create(environment, with_pip=True)
    except subprocess.CalledProcessError:
        raise SystemExit(
            _fail("this Python has no ensurepip; on Debian and Ubuntu: apt-get install python3-venv")
        ) from None


def _install_lists(environment: Path, lists: list[str]) -> None:
    """Install the pinned lists; without missing packages, pip is not called and no network is needed."""
    missing = [name for name in lists if not _is_installed(environment, ROOT / "requirements" / name)]
    if missing:
        print(f"Installing {', '.join(missing)} into {environment}")
        flags = [flag for name in missing for flag in ("-r", str(ROOT / "requirements" / name))]
        _pip(environment, *flags)


def _is_installed(environment: Path, requirements: Path) -> bool:
    wanted = [line for line in requirements.read_text().splitlines() if line and not line.startswith("#")]
    program = (
        "import sys\nfrom importlib.metadata import version\n"
        "for line in sys.argv[1:]:\n"
        "    name, _, exact = line.partition('==')\n"
        "    assert version(name) == exact.partition(';')[0]\n"
    )
    return _succeeds(_python(environment), "-c", program, *wanted)


def _succeeds(*command: str) -> bool:
    """True if `command` succeeds; its output is discarded."""
    return subprocess.run(command, capture_output=True).returncode == 0


def _pip(environment: Path, *arguments: str, **variables: str) -> None:
    _run(
        _python(environment), "-m", "pip", "install", "-qq", "--disable-pip-version-check",
        "--no-input", *arguments, **variables,
    )  # fmt: skip


def _install_interpreted(environment: Path) -> None:
    """Install Warren from src/ in editable mode: processes use edited files at once."""
    _drop_old_name(environment)
    _pip(environment, "--no-build-isolation", "--no-deps", "--editable", ".", WARREN_PURE="1")
    (environment / MARKER).write_text("interpreted\n")


def _install_compiled(environment: Path) -> None:
    """Install Warren from a wheel, compiled if there is a C compiler, else interpreted with a message."""
    reason = _why_not_compile()
    _drop_stale_build()
    variables = {"WARREN_PURE": "1"} if reason else {"WARREN_PURE": "0"} | _compiler_cache()
    print("Packing Warren without compiling it" if reason else "Compiling Warren, some minutes", flush=True)
    wheels = ROOT / "build" / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    # setup.py is called directly, since pip shows either no progress, or the whole output of setuptools.
    _run(_python(environment), "-c", BUILD_WHEEL, str(wheels), **variables)
    (wheel,) = wheels.glob("warren_broker-*.whl")
    _drop_old_name(environment)
    _pip(environment, "--no-deps", "--no-index", "--force-reinstall", str(wheel))
    (environment / MARKER).write_text(f"interpreted: {reason}\n" if reason else "compiled\n")


def _drop_old_name(environment: Path) -> None:
    """Uninstall the distribution `warren`, the former name of this project, which has the same files."""
    if any(_packages(environment).glob("warren-*.dist-info")):
        quiet = ("-qq", "--disable-pip-version-check", "--yes")
        _run(_python(environment), "-m", "pip", "uninstall", *quiet, "warren")


def _why_not_compile() -> str:
    """Return why C extensions cannot be compiled: empty if a file that includes Python.h compiles."""
    if os.environ.get("WARREN_PURE") == "1":
        return "WARREN_PURE=1 is set"
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        return f"there is no C compiler ({compiler[0]})"
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.c"
        probe.write_text("#include <Python.h>\n")
        command = [*compiler, "-I", sysconfig.get_path("include"), "-c", str(probe), "-o", f"{probe}.o"]
        if subprocess.run(command, capture_output=True).returncode:
            return "the C compiler does not find Python.h (on Debian: apt-get install python3-dev)"
    return ""


def _compiler_cache() -> dict[str, str]:
    """Return the variables with which ccache, where it is installed, finds what any checkout compiled."""
    if shutil.which("ccache") is None or "ccache" in os.environ.get("CC", ""):
        return {}
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return {"CC": f"ccache {compiler}", "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}


def _drop_stale_build() -> None:
    """Remove files from build/lib* whose source was deleted: setuptools would package them."""
    for built in (ROOT / "build").glob("lib*/**/*"):
        if built.is_dir():
            continue
        folder = re.sub(r"^build/lib[^/]*", "src", str(built.relative_to(ROOT).parent))
        module = ROOT / folder / built.name.split(".")[0]
        if built.suffix != ".so" or not module.with_suffix(".pxd").exists():
            built.unlink()


if __name__ == "__main__":
    sys.exit(main())

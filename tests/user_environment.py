"""An environment like that of a user: packages of chosen lists, the Warren that is tested, and nothing else.

The environments of tests have more packages, so what works in them may fail after `make run`. This one
consists of links to their packages, and is created quickly, without a network.
"""

import sysconfig
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import warren

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
# The packages that `make run` installs beside Warren, and those that programs in the guide use.
AS_MADE = ("runtime", "guide")
PACKAGES = ("warren", "pyspark_warren")
_COMMAND = "#!{python}\nimport sys\nfrom warren.cli.main import main\nsys.exit(main())\n"


def user_environment(folder: Path, *more: str, lists: tuple[str, ...] = AS_MADE) -> Path:
    """Create it in `folder`, with packages `more` and their dependencies; returns the folder of programs."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    for name in (*_listed(lists), *more):
        _link(distribution(name), site)
    assert warren.__file__
    source = Path(warren.__file__).resolve().parents[1]
    for package in PACKAGES:
        (site / package).symlink_to(source / package)
    command = folder / "bin" / "warren"
    command.write_text(_COMMAND.format(python=folder / "bin" / "python"))
    command.chmod(0o755)
    return command.parent


def _listed(lists: tuple[str, ...]) -> list[str]:
    lines = [line for name in lists for line in (REQUIREMENTS / f"{name}.txt").read_text().splitlines()]
    return [line.partition("==")[0] for line in lines if line and not line.startswith("#")]


def _link(found: Distribution, site: Path) -> None:
    assert found.files is not None
    for top in {file.parts[0] for file in found.files}:
        target = Path(str(found.locate_file(top)))
        # Programs are beside the packages, not among them.
        if top != ".." and top != "__pycache__" and not (site / top).exists():
            (site / top).symlink_to(target)

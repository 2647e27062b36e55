"""An environment as a user gets it: packages of chosen lists, the Warren that is tested, and nothing else.

The environments of tests have more, so what works in them may not work after `make run`. This one is made of
links to what they have, in a moment and without a network.
"""

import sysconfig
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import warren

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
# What `make run` installs beside Warren: what it runs with, and what programs of the guide are written with.
AS_MADE = ("runtime", "guide")
PACKAGES = ("warren", "pyspark_warren")
_COMMAND = "#!{python}\nimport sys\nfrom warren.cli.main import main\nsys.exit(main())\n"


def user_environment(folder: Path, *more: str, lists: tuple[str, ...] = AS_MADE) -> Path:
    """Make it in `folder`, with packages `more` and what those need; its programs are in the answer."""
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

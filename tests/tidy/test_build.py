"""A build reports its progress: a line for each module."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """\
[build-system]
requires = ["setuptools", "cython"]
build-backend = "setuptools.build_meta"
[project]
name = "few"
version = "1"
"""
BUILD = "import sys; sys.path.insert(0, sys.argv[1]); import environment; exec(environment.BUILD_WHEEL)"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_each_module_is_a_line_with_its_number_whether_it_was_translated_before_or_not(
    tmp_path: Path,
) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    package = tmp_path / "src" / "few"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in ("one", "two"):
        (package / f"{name}.py").write_text("def grown(size):\n    return size + 1\n")
        (package / f"{name}.pxd").write_text("cpdef long grown(long size) except? -1\n")
    # A store of translated modules that is empty at first: that of the user may have these already.
    variables = {**os.environ, "WARREN_PURE": "0", "CYTHON_CACHE_DIR": str(tmp_path / "cache")}
    program = BUILD.replace("sys.argv[1]", repr(str(ROOT / "tools")))
    for translated in ("Cythonizing", "Found compiled"):
        shutil.rmtree(tmp_path / "build", ignore_errors=True)
        built = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "dist")],
            cwd=tmp_path, env=variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert built.returncode == 0, built.stderr
        assert sorted(re.findall(rf"\[(\d)/2\] {translated}", built.stdout)) == ["1", "2"]
        assert re.findall(r"\[(\d)/2\] Compiled few\.(?:one|two)", built.stdout) == ["1", "2"]
        # The messages of setuptools about copied files are not printed.
        assert len(built.stdout.splitlines()) <= 8

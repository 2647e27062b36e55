"""Compiles every module that has a `.pxd` beside it, and those in C, so that no list has to be maintained.

A build takes minutes on a busy machine, so it prints a line for each module that is translated to C and
compiled.
"""

import os
from itertools import count
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
ARGUMENTS = ["-O3", "-g0", "-fno-strict-aliasing", "-Wno-unreachable-code", "-Wno-unused-function"]
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # the .pxd declares the C types; annotations are for mypy
    "nonecheck": True,  # None instead of an object is an exception, not a crash
    "binding": False,
}


def modules() -> list[Extension]:
    """One extension for each `.py` under src/ with a `.pxd` of the same name, unless a C module
    replaces it.
    """
    headers = sorted(SOURCE.rglob("*.pxd"))
    return [
        Extension(
            _name(header),
            [str(header.with_suffix(".py"))],
            extra_compile_args=ARGUMENTS,
            include_dirs=[str(SOURCE)],
            libraries=["dl"],
        )
        for header in headers
        if header.stem != "__init__" and not header.with_suffix(".h").exists()
    ]


def modules_in_c() -> list[Extension]:
    """One extension for each `.c` under src/; left out where the system lacks functions that it calls."""
    return [
        Extension(
            _name(source),
            [str(source)],
            extra_compile_args=[*ARGUMENTS, "-pthread"],
            extra_link_args=["-pthread"],
            optional=True,
        )
        for source in sorted(SOURCE.rglob("*.c"))
    ]


def _name(source: Path) -> str:
    return ".".join(source.with_suffix("").relative_to(SOURCE).parts)


def extensions() -> list[Extension]:
    """No extensions with WARREN_PURE=1, else the modules translated by Cython."""
    if os.environ.get("WARREN_PURE") == "1":
        return []
    from Cython.Build import cythonize

    compiled: list[Extension] = cythonize(
        modules(),
        compiler_directives=DIRECTIVES,
        build_dir="build/cython",
        cache=True,
        include_path=[str(SOURCE)],
        nthreads=os.cpu_count() or 1,
    )
    return compiled + modules_in_c()


class BuildModules(build_ext):
    """Compiles in parallel: a build takes as long as its largest module."""

    def initialize_options(self) -> None:
        """Use as many threads as there are processors."""
        super().initialize_options()
        self.parallel = os.cpu_count() or 1
        self._done = count(1)

    def build_extension(self, ext: Extension) -> None:
        """Compile one module in its own thread, and print its number."""
        super().build_extension(ext)
        print(f"[{next(self._done)}/{len(self.extensions)}] Compiled {ext.name}", flush=True)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildModules})

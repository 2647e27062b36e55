"""Compiles every module that has a `.pxd` beside it, and those in C: nothing to list, nothing to forget.

That takes minutes on a busy machine, so each module is a line: once it is C, and once it is compiled.
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
    "annotation_typing": False,  # the .pxd says what the C types are; annotations are for mypy
    "nonecheck": True,  # None in place of an object is an exception, not a crash
    "binding": False,
}


def modules() -> list[Extension]:
    """One extension for each `.py` under src/ with a `.pxd` of the same name, unless C stands in for it."""
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
    """One extension for each `.c` under src/: left out where the system lacks what it calls."""
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
    """Nothing with WARREN_PURE=1, else the modules by way of Cython."""
    if os.environ.get("WARREN_PURE") == "1":
        return []
    from Cython.Build import cythonize

    compiled: list[Extension] = cythonize(
        modules(),
        compiler_directives=DIRECTIVES,
        build_dir="build/cython",
        include_path=[str(SOURCE)],
        nthreads=os.cpu_count() or 1,
    )
    return compiled + modules_in_c()


class BuildModules(build_ext):
    """One C compiler for each processor: a cold build takes as long as its largest module."""

    def initialize_options(self) -> None:
        """As many at a time as there are processors."""
        super().initialize_options()
        self.parallel = os.cpu_count() or 1
        self._done = count(1)

    def build_extension(self, ext: Extension) -> None:
        """Compile one module, in a thread of its own, and say which one of how many."""
        super().build_extension(ext)
        print(f"[{next(self._done)}/{len(self.extensions)}] Compiled {ext.name}", flush=True)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildModules})

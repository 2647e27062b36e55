"""A format that is written is proven to be read: there is a fixture of each version."""

from tests.tidy.sources import ROOT
from tools.make_fixture import FIXTURES, name


def test_the_formats_that_are_written_have_a_fixture() -> None:
    path = FIXTURES / name()
    assert path.exists(), f"{path.relative_to(ROOT)} is missing: python tools/make_fixture.py makes it"

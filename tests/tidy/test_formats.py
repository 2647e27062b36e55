"""Every format version has a fixture, from which reading it is tested."""

from tests.tidy.sources import ROOT
from tools.make_fixture import FIXTURES, name


def test_the_present_formats_have_a_fixture() -> None:
    path = FIXTURES / name()
    assert path.exists(), f"{path.relative_to(ROOT)} is missing: python tools/make_fixture.py makes it"

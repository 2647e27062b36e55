"""Every planned mutation can be applied: a renaming in the source must not disable one."""

import tomllib

from tests.tidy.sources import ROOT, report, text

MUTATIONS = ROOT / "tests" / "mutation" / "mutations.toml"


def test_the_text_that_a_mutation_replaces_occurs_once_and_its_tests_exist() -> None:
    found = []
    for mutation in tomllib.loads(text(MUTATIONS))["mutation"]:
        path = ROOT / "src" / "warren" / mutation["file"]
        count = text(path).count(mutation["old"]) if path.is_file() else 0
        if count != 1:
            found.append(f"{mutation['name']}: its old text stands {count} times in {mutation['file']}")
        missing = [test for test in mutation["tests"] if not (ROOT / test.partition("::")[0]).exists()]
        found += [f"{mutation['name']}: there is no {test}" for test in missing]
    assert not found, report(found)

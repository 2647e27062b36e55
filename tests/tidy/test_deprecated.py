"""Every deprecated name is listed in the guide with its replacement."""

from tests.tidy.sources import ROOT, report, text

from warren.cli.deprecated_names import COMMANDS, OPTIONS
from warren.management.deprecated_fields import DEPRECATED_FIELDS
from warren.management.prometheus.sources import UNPREFIXED
from warren.management.routes import ROUTES
from warren.node.config import DEPRECATED_KEYS

PAGE = ROOT / "docs" / "guide" / "deprecated.md"


def rows() -> set[tuple[str, str]]:
    """Each deprecated name of the page with the current one."""
    found = set()
    for line in text(PAGE).splitlines():
        if line.startswith("|"):
            *_, old, new = (cell.strip() for cell in line.strip("|").split("|"))
            found |= {(name.strip(" `"), new.strip("`")) for name in old.split(",")}
    return found


def missing(pairs: set[tuple[str, str]]) -> list[str]:
    return [f"{old}: {new}" for old, new in sorted(pairs - rows())]


def test_deprecated_settings_and_metrics_are_listed_in_the_guide() -> None:
    families = [family for source in UNPREFIXED for family in source.families if family.deprecated_name]
    found = missing({*DEPRECATED_KEYS.items(), *((one.deprecated_name, one.name) for one in families)})
    assert families
    assert not found, report(found)


def test_deprecated_commands_and_options_are_listed_in_the_guide() -> None:
    pairs = {(f"warren {group} {old}", f"warren {group} {new}") for (group, old), new in COMMANDS.items()}
    pairs |= {
        (f"warren {group} {command} {old}", new)
        for (group, command), renamed in OPTIONS.items()
        for old, new in renamed.items()
    }
    assert not missing(pairs), report(missing(pairs))


def test_deprecated_fields_and_paths_are_listed_in_the_guide() -> None:
    # Handlers declare them, and routes name the handlers.
    assert any(route.is_deprecated for route in ROUTES)
    pairs = {pair for renamed in DEPRECATED_FIELDS.values() for pair in renamed.items()}
    assert not missing(pairs), report(missing(pairs))
    assert "…/queues/{vhost}/{queue}/return" in text(PAGE)

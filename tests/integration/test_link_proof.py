"""Links between Warren and RabbitMQ lose nothing while they are cut and both ends are killed.

`make prove-links` does the same with 200,000 messages and a network that is gone for a minute.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.crash.recording import why_impossible
from tests.links.both_ways import SLOW_CUTS, SMALL_CUTS, BothWays
from tests.links.brokers import LinkEnd, PowerLossEnd, RabbitMQEnd, WarrenEnd, started
from tests.links.links import SET_UPS
from tests.links.proof import SLOW, SMALL, Proof
from tests.rabbitmq import is_installed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
needs_rabbitmq = (pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here"))
TWO_WARRENS = "Warren to Warren"
needs_recorder = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "-")


def _folders(tmp_path: Path) -> tuple[Path, Path]:
    """Empty folders of two brokers."""
    near, far = tmp_path / "from", tmp_path / "to"
    near.mkdir()
    far.mkdir()
    return near, far


def brokers(direction: str, tmp_path: Path) -> tuple[LinkEnd, LinkEnd]:
    near, far = _folders(tmp_path)
    if direction == "to RabbitMQ":
        return WarrenEnd(near), RabbitMQEnd(far)
    if direction == "from RabbitMQ":
        return RabbitMQEnd(near), WarrenEnd(far)
    return PowerLossEnd(near, seed=1), PowerLossEnd(far, seed=2)


PROOFS = [
    *(
        pytest.param(kind, direction, marks=needs_rabbitmq)
        for kind in SET_UPS
        for direction in ("to RabbitMQ", "from RabbitMQ")
    ),
    pytest.param("shovel", TWO_WARRENS, marks=needs_recorder),
    pytest.param("federated exchange", TWO_WARRENS, marks=(needs_recorder, pytest.mark.long)),
    pytest.param("federated queue", TWO_WARRENS, marks=(needs_recorder, pytest.mark.long)),
]


@pytest.mark.parametrize(("kind", "direction"), PROOFS)
def test_nothing_is_lost_while_a_link_is_cut_and_its_ends_are_killed(
    kind: str, direction: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        source, destination = brokers(direction, tmp_path)
        for end in (source, destination):
            stack.enter_context(started(end))
        size = SLOW if kind == "federated exchange" and destination.federates_slowly else SMALL
        outcome = Proof(source, destination, size, print).run(SET_UPS[kind])
    print(outcome)
    outcome.check(size.messages)


@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here")
def test_orders_flow_both_ways_while_both_links_are_cut_and_none_comes_back(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ends = brokers("to RabbitMQ", tmp_path)
        for end in ends:
            stack.enter_context(started(end))
        both = BothWays(ends, SLOW_CUTS if any(end.federates_slowly for end in ends) else SMALL_CUTS, print)
        outcomes = both.run()
    for source, outcome in outcomes.items():
        print(source, outcome)
        outcome.check(both.messages)
        assert outcome.cuts > 1

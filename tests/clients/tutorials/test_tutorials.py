"""The seven tutorials that users of RabbitMQ begin with, by four client interfaces, as real processes."""

import uuid

import pytest
from tests.clients.tutorials.programs import CLIENTS, Tutorial

QUIET_S = 0.3


@pytest.fixture(params=CLIENTS)
def tutorial(request: pytest.FixtureRequest, broker_uri: str) -> Tutorial:
    """Each client in turn."""
    return Tutorial(request.param, broker_uri)


@pytest.fixture
def name() -> str:
    """A name for a queue or an exchange that no other test uses."""
    return f"tutorial-{uuid.uuid4().hex[:12]}"


def test_hello_world_arrives(tutorial: Tutorial, name: str) -> None:
    with tutorial.started("receive", name) as receiver:
        assert tutorial.run("send", name, "Hello", "wörld") == ["sent 2"]
        assert receiver.lines(2) == ["got Hello", "got wörld"]


def test_tasks_are_sent_to_idle_workers(tutorial: Tutorial, name: str) -> None:
    with tutorial.started("work", name) as one, tutorial.started("work", name) as other:
        tutorial.run("assign", name, "long......................", "a", "b", "c")
        first, second = (one, other) if one.line().startswith("began long") else (other, one)
        done = [line for line in second.lines(5 if second is one else 6) if line.startswith("done")]
        assert done[-3:] == ["done a", "done b", "done c"] or len(done) == 3
        assert first.line().startswith("done long")


def test_a_task_of_a_killed_worker_is_done_by_another(tutorial: Tutorial, name: str) -> None:
    with tutorial.started("work", name) as mortal:
        tutorial.run("assign", name, "heavy" + "." * 100)
        assert mortal.line().startswith("began heavy")
        mortal.kill()
    with tutorial.started("work", name) as heir:
        assert heir.line().startswith("began heavy")


def test_every_subscriber_receives_each_message(tutorial: Tutorial, name: str) -> None:
    with (
        tutorial.started("listen", name, "fanout", "") as one,
        tutorial.started("listen", name, "fanout", "") as two,
    ):
        assert tutorial.run("emit", name, "fanout", "ignored") == ["emitted 1"]
        assert one.line() == two.line() == "got ignored about ignored"


def test_messages_are_routed_by_key(tutorial: Tutorial, name: str) -> None:
    with (
        tutorial.started("listen", name, "direct", "error") as errors,
        tutorial.started("listen", name, "direct", "info", "warning", "error") as everything,
    ):
        tutorial.run("emit", name, "direct", "info", "warning", "error", "debug")
        assert everything.lines(3) == [f"got {key} about {key}" for key in ("info", "warning", "error")]
        assert errors.line() == "got error about error"
        assert not errors.has_more(QUIET_S)
        assert not everything.has_more(QUIET_S)


def test_topics_are_matched_by_pattern(tutorial: Tutorial, name: str) -> None:
    with (
        tutorial.started("listen", name, "topic", "*.orange.*") as orange,
        tutorial.started("listen", name, "topic", "*.*.rabbit", "lazy.#") as lazy,
    ):
        wanted = ("quick.orange.rabbit", "lazy.pink.rabbit", "lazy.orange.new.rabbit", "lazy")
        tutorial.run("emit", name, "topic", "quick.brown.fox", *wanted)
        assert orange.line() == "got quick.orange.rabbit about quick.orange.rabbit"
        assert lazy.lines(4) == [f"got {key} about {key}" for key in wanted]
        assert not orange.has_more(QUIET_S)
        assert not lazy.has_more(QUIET_S)


def test_a_call_is_answered(tutorial: Tutorial, name: str) -> None:
    with tutorial.started("serve", name):
        assert tutorial.run("call", name, "4", "10", "22") == [
            "answer 4 3",
            "answer 10 55",
            "answer 22 17711",
        ]


def test_publishes_are_confirmed_or_returned(tutorial: Tutorial, name: str) -> None:
    assert tutorial.run("confirm", name, "200") == ["confirmed 200", "returned NO_ROUTE"]

"""The audit log names who changed what, and contains no secret."""

import logging

import pytest

from warren.metadata import commands
from warren.metadata.commands import CommandContext
from warren.metadata.machine import Metadata
from warren.node.audit_log import AuditLog
from warren.session.events.event_publisher import EventPublisher

MARKER = "s3cret-marker"


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata()
    AuditLog(metadata, EventPublisher(lambda: None, lambda _: None, node_name="n"))
    return metadata


def lines(
    caplog: pytest.LogCaptureFixture, metadata: Metadata, *asked: commands.MetadataCommand
) -> list[str]:
    caplog.clear()
    for command in asked:
        metadata.apply(command, CommandContext(index=1, now=0, user="alice"))
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def test_a_change_is_logged_with_the_user_who_made_it(
    caplog: pytest.LogCaptureFixture, metadata: Metadata
) -> None:
    caplog.set_level(logging.DEBUG, "warren.audit")
    user = commands.PutUser(name="bob", password_hash=MARKER.encode(), hashing_algorithm="")
    uri = commands.SetGlobalParameter(name="upstream", value={"uri": f"amqp://u:{MARKER}@host"})
    bad = commands.SetPermissions(user="bob", vhost="/", configure="(", write="", read="")
    found = lines(caplog, metadata, commands.PutVhost(name="/"), user, uri, bad)
    assert "INFO user 'alice': user.created: name 'bob'" in found
    assert "INFO user 'alice': parameter.set: name 'upstream', component 'global'" in found
    assert found[-1].startswith("INFO user 'alice': set permissions refused: ")
    assert MARKER not in "".join(found)


def test_a_refusal_is_logged_without_erlang_terms(
    caplog: pytest.LogCaptureFixture, metadata: Metadata
) -> None:
    wrong = commands.SetPolicy(
        vhost="/", name="p", pattern="^a", apply_to="all", priority=0, definition={"max-lenght": 1}
    )
    caplog.set_level(logging.INFO, "warren.audit")
    found = lines(caplog, metadata, commands.PutVhost(name="/"), wrong)
    assert found[-1] == (
        "INFO user 'alice': set policy refused: unknown policy setting: max-lenght (did you mean max-length?)"
    )


def test_changes_of_queues_are_logged_at_debug_level_only(
    caplog: pytest.LogCaptureFixture, metadata: Metadata
) -> None:
    queue = commands.DeclareQueue(vhost="/", name="q")
    caplog.set_level(logging.INFO, "warren.audit")
    assert lines(caplog, metadata, commands.PutVhost(name="/"), queue)[8:] == []
    caplog.set_level(logging.DEBUG, "warren.audit")
    [line] = lines(caplog, metadata, commands.DeleteQueue(vhost="/", name="q"))
    assert line == "DEBUG user 'alice': queue.deleted: name 'q', vhost '/'"


def test_no_erlang_term_is_logged(caplog: pytest.LogCaptureFixture, metadata: Metadata) -> None:
    caplog.set_level(logging.DEBUG, "warren.audit")
    vhost = commands.PutVhost(name="/", description="shop", tags=("a",))
    queue = commands.DeclareQueue(vhost="/", name="q", arguments={"x-max-length": 5})
    found = lines(caplog, metadata, vhost, queue)
    assert "description 'shop'" in found[-2]
    assert "arguments ['x-max-length = 5']" in found[-1]
    assert not [line for line in found if "<<" in line or "=>" in line]

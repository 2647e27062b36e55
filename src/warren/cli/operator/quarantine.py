"""Commands for quarantined data: found on the disk at a start, and not named by the metadata."""

from warren.cli.operator.command_types import CustomCommand, ListCommand, OperatorCommand, RequestCommand
from warren.cli.operator.management_client import filled
from warren.cli.operator.parameters import named
from warren.cli.operator.session import Arguments, Session


def _remove(session: Session, arguments: Arguments) -> None:
    session.api.send("DELETE", filled("/warren/quarantine/{item}", arguments))
    session.say(f"{arguments['item']}: deleted")


QUARANTINE: tuple[OperatorCommand, ...] = (
    ListCommand(
        group="quarantine",
        name="list",
        text="List quarantined data, its size and its path.",
        path="/warren/quarantine",
        columns=("id", "kind", "vhost", "messages", "bytes", "acknowledged", "path"),
    ),
    RequestCommand(
        group="quarantine",
        name="acknowledge",
        text="Acknowledge all quarantined data: the health check passes until there is more.",
        method="POST",
        path="/warren/quarantine/acknowledge",
        says="quarantine: acknowledged",
    ),
    CustomCommand(
        group="quarantine",
        name="remove",
        text="Delete a quarantined item permanently.",
        takes=(named("item"),),
        does=_remove,
    ),
)

"""What a start has found on the disk and the metadata do not name."""

from warren.cli.operator.api import filled
from warren.cli.operator.command import Change, Command, Listing, Task
from warren.cli.operator.session import Arguments, Session
from warren.cli.operator.taking import named


def _remove(session: Session, arguments: Arguments) -> None:
    session.api.send("DELETE", filled("/warren/quarantine/{item}", arguments))
    session.say(f"{arguments['item']}: removed for good")


QUARANTINE: tuple[Command, ...] = (
    Listing(
        group="quarantine",
        name="list",
        text="What is kept, how much it is, and where.",
        path="/warren/quarantine",
        columns=("id", "kind", "vhost", "messages", "octets", "acknowledged", "path"),
    ),
    Change(
        group="quarantine",
        name="acknowledge",
        text="Know of all of it: the check is good again until there is more.",
        method="POST",
        path="/warren/quarantine/acknowledge",
        says="quarantine: acknowledged",
    ),
    Task(
        group="quarantine",
        name="remove",
        text="Remove something of it for good.",
        takes=(named("item"),),
        does=_remove,
    ),
)

"""Commands that enable and disable tracing of a virtual host."""

from warren.cli.operator.command_types import CustomCommand, OperatorCommand, Run
from warren.cli.operator.management_client import filled
from warren.cli.operator.session import Arguments, Session


def _switch(*, is_on: bool) -> Run:
    def does(session: Session, arguments: Arguments) -> None:
        path = filled("/vhosts/{vhost}", arguments)
        # The GET request fails if the virtual host does not exist, which the PUT request would create.
        session.api.get(path)
        session.api.send("PUT", path, {"tracing": is_on})
        session.say(
            f"vhost {arguments['vhost']}: tracing to amq.rabbitmq.trace {'enabled' if is_on else 'disabled'}"
        )

    return does


TRACING: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="trace",
        name="on",
        known_as="trace_on",
        text="Enable tracing: copy every message to the exchange amq.rabbitmq.trace.",
        is_in_vhost=True,
        does=_switch(is_on=True),
    ),
    CustomCommand(
        group="trace",
        name="off",
        known_as="trace_off",
        text="Disable tracing.",
        is_in_vhost=True,
        does=_switch(is_on=False),
    ),
)

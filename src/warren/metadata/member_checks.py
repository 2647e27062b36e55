"""Checks what a command says of a member of the cluster before it is written: name, addresses, numbers."""

from collections.abc import Iterator

from warren.limits_metadata import CLUSTER_ID_SIZE, MEMBER_NAME_SIZE_MAX, MEMBER_NUMBER_MAX, MEMBER_PORT_MAX
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp


def member_refusal(command: FormCluster | AdmitMember | MemberUp) -> str | None:
    """The reason why `command` describes no member; None if it does."""
    return next(_refusals(command), None)


def _refusals(command: FormCluster | AdmitMember | MemberUp) -> Iterator[str]:
    if isinstance(command, FormCluster) and len(command.cluster_id) != CLUSTER_ID_SIZE:
        yield f"the id of a cluster has {CLUSTER_ID_SIZE} bytes, not {len(command.cluster_id)}"
    if not isinstance(command, MemberUp):
        yield from _of_name("the name of a member", command.name)
    yield from _of_name("the host of a member", command.host)
    yield from _of_port(command.cluster_port)
    if not isinstance(command, AdmitMember):
        if (command.amqp_host is None) != (command.amqp_port is None):
            yield "an address for clients has a host and a port"
        if command.amqp_host is not None:
            yield from _of_name("the host for clients", command.amqp_host)
        if command.amqp_port is not None:
            yield from _of_port(command.amqp_port)
    if not 0 < command.incarnation <= MEMBER_NUMBER_MAX:
        yield f"{command.incarnation} is no number of a run"
    if not 0 <= command.feature_level <= MEMBER_NUMBER_MAX:
        yield f"{command.feature_level} is no feature level"


def _of_name(what: str, name: str) -> Iterator[str]:
    size = len(name.encode("utf-8", "surrogatepass"))
    if not size:
        yield f"{what} is empty"
    elif size > MEMBER_NAME_SIZE_MAX:
        yield f"{what} has {size} bytes, more than {MEMBER_NAME_SIZE_MAX}"


def _of_port(port: int) -> Iterator[str]:
    if not 0 < port <= MEMBER_PORT_MAX:
        yield f"{port} is no port"

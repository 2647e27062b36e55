"""Commands for the cluster: its status, joining and leaving it, its former members, and maintenance."""

import re
from collections.abc import Callable
from pathlib import Path

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand
from warren.cli.operator.completion import name_completion
from warren.cli.operator.failures import UNREACHABLE, USAGE, Failure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.parameters import flag, named
from warren.cli.operator.session import Arguments, Session
from warren.cli.operator.waiting import wait

_MEMBERS = ("name", "state", "role", "link", "address", "version")
_UNAVAILABLE = ("node", "vhost", "queues", "names")
_ADDRESS = re.compile(r"(\[[^\]]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_NODE_TYPES = ("disc", "disk", "ram")
# A node starts again in a second or two; one with much to erase, or on a busy machine, takes longer.
_RESTART_S_MAX = 60.0


def _status(session: Session, arguments: Arguments) -> None:
    found = cluster_of(session)
    if session.is_json:
        session.print_json(found)
        return
    session.print_facts(
        {
            "cluster": found["cluster_name"],
            "id": found["cluster_id"] or "none: this node has met no other",
            "asked": found["node"],
            "leader": found["leader"] or "none",
            "feature level": found["feature_level"],
        }
    )
    session.print_rows(_MEMBERS, [_member(member) for member in found["members"]])
    if found["unavailable"]:
        rows = [(row["node"], row["vhost"], row["count"], _names(row)) for row in found["unavailable"]]
        session.print_rows(_UNAVAILABLE, rows)
    for problem in found["problems"]:
        session.say(problem)
    if not found["problems"]:
        session.say("no problems")


def cluster_of(session: Session) -> Row:
    """Return the cluster as the node sees it that the commands reach."""
    found: Row = session.api.get("/warren/cluster")
    return found


def _member(member: Row) -> tuple[object, ...]:
    state = "up" if member["is_up"] else "down"
    if member["is_draining"]:
        state += ", maintenance"
    role = "leader" if member["is_leader"] else member["role"]
    address = f"{member['host']}:{member['cluster_port']}" if member["host"] else ""
    return member["name"], state, role, member["link"], address, member["version"] or ""


def _names(row: Row) -> str:
    more = row["count"] - len(row["names"])
    return ", ".join(row["names"]) + (f" and {more} more" if more else "")


def _join(session: Session, arguments: Arguments) -> None:
    host, port = _address(arguments["member"])
    body = {"host": host, "reset": arguments["reset"]} | ({} if port is None else {"port": port})
    answer: Row = session.api.send("PUT", "/warren/cluster/members", body)
    if answer["joined"]:
        await_restart(session, lambda found: len(found["members"]) > 1)
    if arguments["ram"]:
        session.note("--ram has no effect: every node keeps its data on disk")
    session.say(
        f"joined the cluster of {host}"
        if answer["joined"]
        else "the node is already a member of this cluster"
    )


def await_restart(session: Session, is_over: Callable[[Row], bool]) -> None:
    """Wait until the node answers again, of whose cluster `is_over` says that it is as it should become."""

    def missing() -> str:
        try:
            found = cluster_of(session)
        except Failure as failure:
            if failure.status == UNREACHABLE:
                raise
            # It has other users now.
            return ""
        return "" if is_over(found) else "the node has not started again"

    wait(session, _RESTART_S_MAX, missing)


def _address(member: str) -> tuple[str, int | None]:
    """Return host and port of HOST, HOST:PORT, [HOST]:PORT or one of these after NAME@."""
    text = member.rpartition("@")[2]
    if text.count(":") > 1 and not text.startswith("["):
        # An IPv6 address.
        return text, None
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise Failure(f"the member must be HOST, HOST:PORT or the name of a node, not {member!r}", USAGE)
    host, port = found.groups()
    return host.strip("[]"), int(port) if port else None


def _leave(session: Session, arguments: Arguments) -> None:
    query = "?accept-loss=true" if arguments["accept_loss"] else ""
    session.api.send("DELETE", filled("/warren/cluster/members/{name}", _this_node(session)) + query)
    await_restart(session, lambda found: len(found["members"]) == 1)
    session.say("the node has left the cluster, and is empty")


def _forget(session: Session, arguments: Arguments) -> None:
    if arguments["offline"]:
        raise Failure("--offline is not supported: see 'warren cluster recover --help'", USAGE)
    if arguments["name"] == _this_node(session)["name"]:
        raise Failure("a node does not forget itself: use 'warren cluster leave'")
    session.api.send("DELETE", filled("/warren/cluster/members/{name}", arguments))
    session.say(f"member {arguments['name']}: forgotten")


def _drain(session: Session, arguments: Arguments) -> None:
    name = _chosen_node(session, arguments)
    session.api.send("PUT", filled("/warren/nodes/{name}/maintenance", {"name": name}))
    session.say(f"node {name}: in maintenance mode, without clients")


def _revive(session: Session, arguments: Arguments) -> None:
    name = _chosen_node(session, arguments)
    session.api.send("DELETE", filled("/warren/nodes/{name}/maintenance", {"name": name}))
    session.say(f"node {name}: accepts clients")


def _chosen_node(session: Session, arguments: Arguments) -> str:
    """Return the name of the node of the option --node, and else of the one that the commands reach."""
    name: str = arguments["node"] or _this_node(session)["name"]
    return name


def _this_node(session: Session) -> Row:
    """Return the name of the node that the commands reach."""
    return {"name": session.api.get("/overview", [("columns", "node")])["node"]}


def _await_nodes(session: Session, arguments: Arguments) -> None:
    wanted = arguments["count"]

    def missing(found: Row) -> str:
        there = sum(member["is_up"] for member in found["members"])
        return "" if there >= wanted else f"{there} of {wanted} nodes are up"

    _await(session, arguments["timeout"], missing)
    session.say(f"nodes that are up: at least {wanted}")


def _await_quorum(session: Session, arguments: Arguments) -> None:
    _await(session, arguments["timeout"], _missing_for_quorum)
    session.say("a majority of the voters and one more are up, or all of them")


def _missing_for_quorum(found: Row) -> str:
    """Return what is missing for one voter more than a majority, or for all of them; empty if nothing is."""
    voters = [member for member in found["members"] if member["role"] == "voter"]
    there = sum(member["is_up"] for member in voters)
    wanted = min(len(voters) // 2 + 2, len(voters))
    if found["leader"] is None:
        return "no leader is known"
    return "" if there >= wanted else f"{there} of {wanted} voters are up"


def _await(session: Session, timeout_s: float, missing: Callable[[Row], str]) -> None:
    """Wait until nothing is missing in the status of the cluster. Raises Failure after `timeout_s`."""

    def missing_now() -> str:
        problem = missing(cluster_of(session))
        return f"{problem}; see 'warren cluster status'" if problem else ""

    wait(session, timeout_s, missing_now)


def _change_type(session: Session, arguments: Arguments) -> None:
    session.note("node types have no effect: every node keeps its data on disk")


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--alive", default="", metavar="NAME,…", help="Other members that will join again.")
@click.option(
    "--accept-loss", "is_loss_accepted", is_flag=True, help="Recover; without this flag nothing is changed."
)
def recover(directory: Path, alive: str, *, is_loss_accepted: bool) -> None:
    """Make a stopped member the only one; for a cluster whose majority is lost for good.

    DIRECTORY is the data directory of the member, best of the one with the latest change. Without
    --accept-loss the command shows what would be lost. All other members are removed, and the cluster gets
    another id, so that none of them comes back by accident. Queues on them stay listed, and are unavailable.
    """
    # It imports what a broker needs, which commands for a running one do not load.
    from warren.cli.lost_majority import recover_cluster

    recover_cluster(directory, [name for name in alive.split(",") if name], is_loss_accepted=is_loss_accepted)


_NODE = click.Option(
    ["-n", "--node"],
    metavar="NAME",
    help="a member that is up [default: the node of --uri]",
    shell_complete=name_completion("/nodes"),
)

CLUSTER: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="cluster",
        name="status",
        text="Show the members as this node sees them, what is unavailable, and why.",
        does=_status,
    ),
    CustomCommand(
        group="cluster",
        name="join",
        known_as="join_cluster",
        text="Join the cluster of MEMBER, which is HOST, HOST:PORT, or the name of a node.",
        takes=(
            named("member"),
            flag("--reset", text="give up what this node has; without it, joining is refused if it has any"),
            click.Option(["--ram"], is_flag=True, hidden=True),
            click.Option(["--disc"], is_flag=True, hidden=True),
        ),
        does=_join,
    ),
    CustomCommand(
        group="cluster",
        name="leave",
        text="Put this node into maintenance mode, and have it leave its cluster; it is empty then.",
        takes=(flag("--accept-loss", text="leave even if queues are lost with this node"),),
        does=_leave,
    ),
    CustomCommand(
        group="cluster",
        name="forget",
        known_as="forget_cluster_node",
        text="Remove a member that is down and will not come back; its queues stay unavailable.",
        takes=(named("name"), click.Option(["--offline"], is_flag=True, hidden=True)),
        does=_forget,
    ),
    CustomCommand(
        group="cluster",
        name="drain",
        known_as="drain",
        text="Put a node into maintenance mode: it closes its clients and accepts none.",
        takes=(_NODE,),
        does=_drain,
    ),
    CustomCommand(
        group="cluster",
        name="revive",
        known_as="revive",
        text="End the maintenance mode of a node.",
        takes=(_NODE,),
        does=_revive,
    ),
    CustomCommand(
        group="cluster",
        name="await",
        known_as="await_online_nodes",
        text="Wait until COUNT nodes of the cluster are up.",
        takes=(click.Argument(["count"], type=click.IntRange(1), metavar="COUNT"),),
        is_waiting=True,
        does=_await_nodes,
    ),
    CustomCommand(
        group="cluster",
        name="await-quorum",
        known_as="await_online_quorum_plus_one",
        text="Wait until this node can stop, and a majority of the others agrees on changes.",
        is_waiting=True,
        does=_await_quorum,
    ),
    CustomCommand(
        group="cluster",
        name="change-node-type",
        known_as="change_cluster_node_type",
        text="Do nothing: every node keeps its data on disk. For scripts of RabbitMQ.",
        takes=(click.Argument(["type"], type=click.Choice(_NODE_TYPES), metavar="TYPE"),),
        does=_change_type,
    ),
)

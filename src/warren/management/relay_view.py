"""Port: the shovels and federation links of a node, as the HTTP API sees and steers them."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import StrEnum

from msgspec import Struct

from warren.metadata.commands import Json
from warren.metadata.users import User
from warren.metrics.time_series import TimeSeries
from warren.relay.status import LinkKey, LinkState, LinkStatus


class StepState(StrEnum):
    """What a dry run has found about one step."""

    # Nothing is left to do: it exists as it is needed.
    EXISTS = "exists"
    # It would be made.
    CREATE = "create"
    # A right is missing, or it cannot be made; `text` says which and why.
    REFUSED = "refused"
    # It could not be examined, because an end cannot be reached.
    UNKNOWN = "unknown"


class DryRunStep(Struct, frozen=True, kw_only=True):
    """One thing that a shovel or a link would do when it starts."""

    # The end at which it would be done: source, destination, upstream or local.
    end: str
    # The address of that end, without credentials.
    uri: str
    # Such as "declare queue", "bind" or "consume", and the name of what it concerns.
    action: str
    name: str
    state: StepState
    # One sentence about the outcome; empty if there is nothing to say.
    text: str = ""


class RelayView(Struct, frozen=True, kw_only=True):
    """The links of the node; the defaults are those of a node without any."""

    # The statuses of all links, in any order.
    statuses: Callable[[], Collection[LinkStatus]] = tuple
    # The keys of all links, in any order, and the state and the status of one; None if there is no such link.
    link_keys: Callable[[], Collection[LinkKey]] = tuple
    state: Callable[[LinkKey], LinkState | None] = lambda key: None
    status: Callable[[LinkKey], LinkStatus | None] = lambda key: None
    # The samples of a link, by LINK_COLUMNS; None if it was not sampled yet.
    history: Callable[[LinkKey], TimeSeries | None] = lambda key: None
    # Begins a link anew at once, for the user who asks for it; False if there is no such link.
    restart: Callable[[LinkKey, str], bool] = lambda key, user: False
    # The definitions of the shovels in the configuration, by name; they belong to no virtual host.
    static_shovels: Mapping[str, Mapping[str, Json]] = {}
    # The steps of a shovel with a definition, in a virtual host, with the rights of a user; ValueError if it
    # is not valid. None: this node has no dry runs.
    check_shovel: Callable[[str, Mapping[str, Json], User], Awaitable[list[DryRunStep]]] | None = None
    # The steps of all links that an exchange or queue of a virtual host has by its policy; the second
    # argument is its kind, exchange or queue.
    check_federation: Callable[[str, str, str], list[DryRunStep]] | None = None

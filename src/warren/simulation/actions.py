"""What can happen to a simulated broker: actions, drawn from a seed, each of which repeats alone.

An action contains the seed of everything that chance decides during it, so that a run can leave some out and
the others stay what they were.
"""

import random
from enum import Enum

from msgspec import Struct


class Kind(Enum):
    """The kinds of actions."""

    CONNECT = "connect"
    CUT = "cut"
    CLOSE = "close"
    CLOSE_CHANNEL = "close-channel"
    DECLARE = "declare"
    DELETE = "delete"
    PURGE = "purge"
    POLICY = "policy"
    TARGET = "target"
    PUBLISH = "publish"
    PUBLISH_UNCONFIRMED = "publish-unconfirmed"
    ROUTE = "route"
    UNBIND = "unbind"
    TRANSACTION = "transaction"
    CONSUME = "consume"
    CANCEL = "cancel"
    GET = "get"
    ACK = "ack"
    REQUEUE = "requeue"
    REJECT = "reject"
    PASS = "pass"
    SETTLE = "settle"
    TIME = "time"
    JUMP = "jump"
    FILL_DISK = "fill-disk"
    EMPTY_DISK = "empty-disk"
    FAIL_DISK = "fail-disk"
    KILL = "kill"
    CUT_POWER = "cut-power"
    STOP = "stop"
    OPERATE = "operate"
    INSPECT = "inspect"


# How often each kind is drawn, relative to the others.
_WEIGHTS = {
    Kind.CONNECT: 8, Kind.CUT: 2, Kind.CLOSE: 1, Kind.CLOSE_CHANNEL: 2, Kind.DECLARE: 8, Kind.DELETE: 1,
    Kind.PURGE: 1, Kind.POLICY: 1, Kind.TARGET: 3,
    Kind.PUBLISH: 16, Kind.PUBLISH_UNCONFIRMED: 4, Kind.ROUTE: 8,
    Kind.UNBIND: 1, Kind.OPERATE: 2,
    Kind.TRANSACTION: 4, Kind.CONSUME: 6, Kind.CANCEL: 1, Kind.GET: 5, Kind.ACK: 10, Kind.REQUEUE: 4,
    Kind.REJECT: 2, Kind.PASS: 16, Kind.SETTLE: 4, Kind.TIME: 4, Kind.JUMP: 1, Kind.FILL_DISK: 1,
    Kind.EMPTY_DISK: 2, Kind.FAIL_DISK: 1, Kind.KILL: 2, Kind.CUT_POWER: 3, Kind.STOP: 1, Kind.INSPECT: 1,
}  # fmt: skip
_SEEDS = 1 << 32


class Action(Struct, frozen=True):
    """One thing that happens, to the client and the queue that it names, as far as it needs them."""

    kind: Kind
    client: int
    queue: int
    count: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind.value} client={self.client} queue={self.queue} n={self.count} seed={self.seed}"


def draw(seed: int, count: int, client_count: int) -> list[Action]:
    """Draw `count` actions."""
    chance = random.Random(seed)
    kinds = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=count)
    return [
        Action(
            kind,
            chance.randrange(client_count),
            chance.randrange(1 << 16),
            chance.choice((1, 1, 2, 3, 8, 40)),
            chance.randrange(_SEEDS),
        )
        for kind in kinds
    ]

"""The table of permissions: what each operation requires by RabbitMQ's rules, and users to test it with.

A case is tested with a user who has exactly the permissions in the table, and with one user for each of them
who has all others. Each case has names of its own, so that cases do not affect each other.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

VHOST = "rights"
ADMINISTRATOR = "rights-administrator"
PASSWORD = "secret"
CONFIGURE, WRITE, READ = ACCESSES = ("configure", "write", "read")
# A topic permission: the exchange, and the routing key that it allows.
TOPIC_WRITE, TOPIC_READ = "topic write", "topic read"

Action = Callable[[BlockingChannel, "Case"], object]


@dataclass(frozen=True)
class Case:
    """One operation: `needs` are pairs of access and name; with `any_of`, one of them is sufficient."""

    name: str
    action: Action
    needs: tuple[tuple[str, str], ...] = ()
    # Declares the objects that must exist before, as the administrator.
    exists: Action = lambda channel, case: None
    any_of: bool = False
    # Topic permissions by exchange: patterns for write and read access.
    topics: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Names that have no prefix of the case: amq.default, amq.gen.
    fixed: frozenset[str] = frozenset()
    # The equivalent HTTP request: method, path below /api, body.
    http: tuple[str, str, object] | None = None

    def of(self, name: str) -> str:
        """Return `name` with the prefix of this case."""
        return name if name.startswith("amq.") else f"{self.name}.{name}"


@dataclass(frozen=True)
class Attempt:
    """One user for one case."""

    case: Case
    # The permission that the user lacks; None if none.
    without: tuple[str, str] | None

    @property
    def user(self) -> str:
        if self.without is None:
            return f"{self.case.name}+"
        return f"{self.case.name}-{self.without[0].replace(' ', '.')}.{self.without[1]}"

    @property
    def is_allowed(self) -> bool:
        return self.without is None

    def patterns(self) -> dict[str, str]:
        """Return the permissions of the user."""
        had = [need for need in self.case.needs if need != self.without]
        if self.case.any_of:
            had = had[:1] if self.without is None else []
        return {
            access: "^("
            + "|".join(_pattern(self.case.of(name)) for kind, name in had if kind == access)
            + ")$"
            for access in ACCESSES
        }


def _pattern(name: str) -> str:
    return r"amq\.gen.*" if name == "amq.gen" else re.escape(name)


def declare_q(channel: BlockingChannel, case: Case) -> None:
    channel.queue_declare(case.of("q"))


def declare_x(channel: BlockingChannel, case: Case, *names: str, kind: str = "direct") -> None:
    for name in names or ("x",):
        channel.exchange_declare(case.of(name), kind)


def declare_both(channel: BlockingChannel, case: Case) -> None:
    declare_q(channel, case)
    declare_x(channel, case)


def bound(channel: BlockingChannel, case: Case) -> None:
    declare_both(channel, case)
    channel.queue_bind(case.of("q"), case.of("x"), "k")


def two_exchanges(channel: BlockingChannel, case: Case) -> None:
    declare_x(channel, case, "x", "source")


def two_bound(channel: BlockingChannel, case: Case) -> None:
    two_exchanges(channel, case)
    channel.exchange_bind(case.of("x"), case.of("source"), "k")


def topic(channel: BlockingChannel, case: Case) -> None:
    declare_q(channel, case)
    declare_x(channel, case, "x", kind="topic")
    declare_x(channel, case, "other")


def publish(channel: BlockingChannel, exchange: str, key: str) -> None:
    channel.confirm_delivery()
    channel.basic_publish(exchange, key, b"m")


def publish_in_transaction(channel: BlockingChannel, case: Case) -> None:
    channel.tx_select()
    channel.basic_publish(case.of("x"), "k", b"m")
    channel.tx_commit()


def declare_with(channel: BlockingChannel, case: Case) -> None:
    channel.queue_declare(case.of("q"), arguments={"x-dead-letter-exchange": case.of("dlx")})


def declare_x_with(channel: BlockingChannel, case: Case) -> None:
    channel.exchange_declare(case.of("x"), "direct", arguments={"alternate-exchange": case.of("ae")})


def answer_directly(channel: BlockingChannel, case: Case) -> None:
    channel.basic_consume("amq.rabbitmq.reply-to", lambda *_: None, auto_ack=True)


def use_own_queue(channel: BlockingChannel, case: Case) -> None:
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_consume(name, lambda *_: None)


def modes(channel: BlockingChannel, case: Case) -> None:
    channel.basic_qos(prefetch_count=1)
    channel.basic_recover(requeue=True)
    channel.confirm_delivery()


_QUEUE = f"/queues/{VHOST}/" + "{q}"
_EXCHANGE = f"/exchanges/{VHOST}/" + "{x}"
_BINDING = f"/bindings/{VHOST}/e/" + "{x}/q/{q}"
_PEEK = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
_MESSAGE = {"properties": {}, "routing_key": "k", "payload": "m", "payload_encoding": "string"}

CASES = (
    Case(
        "queue.declare",
        declare_q,
        ((CONFIGURE, "q"),),
        http=("PUT", _QUEUE, {"durable": False, "auto_delete": False}),
    ),
    Case("queue.declare-again", declare_q, ((CONFIGURE, "q"),), exists=declare_q),
    Case("queue.declare-own", use_own_queue, ((CONFIGURE, "amq.gen"), (READ, "amq.gen"))),
    Case(
        "queue.declare-passive",
        lambda channel, case: channel.queue_declare(case.of("q"), passive=True),
        ((CONFIGURE, "q"), (WRITE, "q"), (READ, "q")),
        exists=declare_q,
        any_of=True,
    ),
    Case(
        "queue.declare-dlx",
        declare_with,
        ((CONFIGURE, "q"), (READ, "q"), (WRITE, "dlx")),
        http=("PUT", _QUEUE, {"durable": False, "arguments": {"x-dead-letter-exchange": "{dlx}"}}),
    ),
    Case("queue.declare-dlx-again", declare_with, ((CONFIGURE, "q"),), exists=declare_with),
    Case(
        "queue.delete",
        lambda channel, case: channel.queue_delete(case.of("q")),
        ((CONFIGURE, "q"),),
        exists=declare_q,
        http=("DELETE", _QUEUE, None),
    ),
    Case(
        "queue.purge",
        lambda channel, case: channel.queue_purge(case.of("q")),
        ((READ, "q"),),
        exists=declare_q,
        http=("DELETE", _QUEUE + "/contents", None),
    ),
    Case(
        "queue.bind",
        lambda channel, case: channel.queue_bind(case.of("q"), case.of("x"), "k"),
        ((WRITE, "q"), (READ, "x")),
        exists=declare_both,
        http=("POST", _BINDING, {"routing_key": "k", "arguments": {}}),
    ),
    Case(
        "queue.unbind",
        lambda channel, case: channel.queue_unbind(case.of("q"), case.of("x"), "k"),
        ((WRITE, "q"), (READ, "x")),
        exists=bound,
        http=("DELETE", _BINDING + "/k", None),
    ),
    Case(
        "queue.bind-topic",
        lambda channel, case: channel.queue_bind(case.of("q"), case.of("x"), "a.b"),
        ((WRITE, "q"), (READ, "x"), (TOPIC_READ, "x")),
        exists=topic,
        topics={"x": ("^$", r"^a\.")},
    ),
    Case(
        "basic.get",
        lambda channel, case: channel.basic_get(case.of("q")),
        ((READ, "q"),),
        exists=declare_q,
        http=("POST", _QUEUE + "/get", _PEEK),
    ),
    Case(
        "basic.consume",
        lambda channel, case: channel.basic_consume(case.of("q"), lambda *_: None),
        ((READ, "q"),),
        exists=declare_q,
    ),
    Case("basic.consume-reply-to", answer_directly),
    Case(
        "basic.publish",
        lambda channel, case: publish(channel, case.of("x"), "k"),
        ((WRITE, "x"),),
        exists=declare_x,
        http=("POST", _EXCHANGE + "/publish", _MESSAGE),
    ),
    Case("basic.publish-default", lambda channel, case: publish(channel, "", "k"), ((WRITE, "amq.default"),)),
    Case("basic.publish-transaction", publish_in_transaction, ((WRITE, "x"),), exists=declare_x),
    Case(
        "basic.publish-topic",
        lambda channel, case: publish(channel, case.of("x"), "a.b"),
        ((WRITE, "x"), (TOPIC_WRITE, "x")),
        exists=topic,
        topics={"x": (r"^a\.", "^$")},
    ),
    Case(
        "basic.publish-topic-of-vhost",
        lambda channel, case: publish(channel, case.of("x"), VHOST),
        ((WRITE, "x"), (TOPIC_WRITE, "x")),
        exists=topic,
        topics={"x": ("^{vhost}$", "^$")},
    ),
    Case(
        "exchange.declare",
        declare_x,
        ((CONFIGURE, "x"),),
        http=("PUT", _EXCHANGE, {"type": "direct", "durable": False}),
    ),
    Case("exchange.declare-again", declare_x, ((CONFIGURE, "x"),), exists=declare_x),
    Case(
        "exchange.declare-passive",
        lambda channel, case: channel.exchange_declare(case.of("x"), passive=True),
        ((CONFIGURE, "x"), (WRITE, "x"), (READ, "x")),
        exists=declare_x,
        any_of=True,
    ),
    Case("exchange.declare-ae", declare_x_with, ((CONFIGURE, "x"), (READ, "x"), (WRITE, "ae"))),
    Case("exchange.declare-ae-again", declare_x_with, ((CONFIGURE, "x"),), exists=declare_x_with),
    Case(
        "exchange.delete",
        lambda channel, case: channel.exchange_delete(case.of("x")),
        ((CONFIGURE, "x"),),
        exists=declare_x,
        http=("DELETE", _EXCHANGE, None),
    ),
    Case(
        "exchange.bind",
        lambda channel, case: channel.exchange_bind(case.of("x"), case.of("source"), "k"),
        ((WRITE, "x"), (READ, "source")),
        exists=two_exchanges,
    ),
    Case(
        "exchange.unbind",
        lambda channel, case: channel.exchange_unbind(case.of("x"), case.of("source"), "k"),
        ((WRITE, "x"), (READ, "source")),
        exists=two_bound,
    ),
    Case(
        "exchange.bind-topic",
        lambda channel, case: channel.exchange_bind(case.of("other"), case.of("x"), "a.b"),
        ((WRITE, "other"), (READ, "x"), (TOPIC_READ, "x")),
        exists=topic,
        topics={"x": ("^$", r"^a\.")},
    ),
    Case("basic.qos-recover-confirm", modes),
)  # fmt: skip


def tries(case: Case) -> Iterator[Attempt]:
    """Yield the attempts of all users for `case`."""
    yield Attempt(case, None)
    if case.any_of:
        yield Attempt(case, ("any", "thing"))
        return
    for need in case.needs:
        yield Attempt(case, need)


ALL = tuple(tried for case in CASES for tried in tries(case))


def definitions() -> dict[str, list[dict[str, object]]]:
    """Return the users of all cases with their permissions, and an administrator, in one virtual host."""
    document: dict[str, list[dict[str, object]]] = {
        "vhosts": [{"name": VHOST}],
        "users": [_user(ADMINISTRATOR)],
        "permissions": [{"user": ADMINISTRATOR, "vhost": VHOST} | dict.fromkeys(ACCESSES, ".*")],
        "topic_permissions": [],
    }
    for tried in ALL:
        document["users"].append(_user(tried.user))
        document["permissions"].append({"user": tried.user, "vhost": VHOST, **tried.patterns()})
        for exchange, (write, read) in tried.case.topics.items():
            missing = tried.without[0] if tried.without is not None else ""
            document["topic_permissions"].append(
                {
                    "user": tried.user,
                    "vhost": VHOST,
                    "exchange": tried.case.of(exchange),
                    "write": "^$" if missing == TOPIC_WRITE else write,
                    "read": "^$" if missing == TOPIC_READ else read,
                }
            )
    return document


def _user(name: str) -> dict[str, object]:
    hashed = b"salt" + hashlib.sha256(b"salt" + PASSWORD.encode()).digest()
    return {
        "name": name,
        "password_hash": base64.b64encode(hashed).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": "management",
    }


def connected(port: int, user: str) -> pika.BlockingConnection:
    """Open a connection as `user`."""
    credentials = pika.PlainCredentials(user, PASSWORD)
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, VHOST, credentials, heartbeat=0)
    )


def refusals(
    port: int, cases: tuple[Case, ...] = CASES, prepared: Callable[[Case], None] = lambda case: None
) -> dict[str, str]:
    """Return the error that each user of `cases` gets from the broker on `port`; empty if allowed.

    `prepared` is called when the objects of a case have been declared.
    """
    reported: dict[str, str] = {}
    administrator = connected(port, ADMINISTRATOR)
    for case in cases:
        for tried in tries(case):
            prepare(administrator, case)
            prepared(case)
            connection = connected(port, tried.user)
            try:
                case.action(connection.channel(), case)
                reported[tried.user] = ""
            except ChannelClosedByBroker as error:
                text = re.sub(r"amq\.gen-[\w-]+", "amq.gen", error.reply_text)
                reported[tried.user] = f"{error.reply_code} {text}"
            connection.close()
    administrator.close()
    return reported


def prepare(administrator: pika.BlockingConnection, case: Case) -> None:
    """Delete the objects of `case`, and declare those that must exist before it."""
    channel = administrator.channel()
    for name in ("q",):
        channel.queue_delete(case.of(name))
    for name in ("x", "source", "other"):
        channel.exchange_delete(case.of(name))
    case.exists(channel, case)
    channel.close()

"""Generates random scripts with few names, so that their operations interact."""

from __future__ import annotations

import re

from hypothesis import strategies as st

# The last is limited by policies of the definitions.
QUEUES = ["q0", "q1", "q2", "policy-short-capped"]
# Bindings between exchanges use these two only, so that a script removes them.
OWN_EXCHANGES = ["x0", "x1"]
EXCHANGES = [*OWN_EXCHANGES, "amq.direct", "amq.fanout", "amq.topic", "amq.headers"]
KEYS = ["", "k", "a.b", "a", "q0", "q1"]
PATTERNS = ["", "k", "a.b", "a", "#", "*", "a.*", "#.b", "*.#", "q0"]
TAGS = ["s", "t", "u"]
PARTS, PART_LENGTH_MAX = 4, 10

_NAME = re.compile(r'\b(queue|routing_key)="(?:q\d|policy[\w-]*)"')

_channel = st.sampled_from(["C> 1", "C> 1", "C> 1", "C> 2", "C2> 1", "C2> 2"])
_queue = st.sampled_from([*QUEUES, "q0", "q0"])
_exchange = st.sampled_from(EXCHANGES)
_flag = st.booleans()

_ARGUMENTS = [
    '"x-max-length": 0',
    '"x-max-length": 1',
    '"x-max-length": 3',
    '"x-max-length-bytes": 5',
    '"x-overflow": "reject-publish"',
    '"x-overflow": "reject-publish-dlx"',
    '"x-dead-letter-exchange": ""',
    '"x-dead-letter-exchange": "amq.fanout"',
    '"x-dead-letter-exchange": "x0"',
    '"x-dead-letter-routing-key": "q1"',
    '"x-dead-letter-routing-key": "q0"',
    '"x-max-priority": 3',
    '"x-single-active-consumer": true',
    '"x-message-ttl": 0',
    '"x-message-ttl": 60000',
]
_HEADERS = ["", ' headers={"a": 1}', ' headers={"CC": ["q1", "k"]}', ' headers={"BCC": ["q2"], "a": 2}']


@st.composite
def _table(draw: st.DrawFn) -> str:
    chosen = draw(
        st.lists(st.sampled_from(_ARGUMENTS), max_size=3, unique_by=lambda entry: entry.split(":")[0])
    )
    return "{" + ", ".join(sorted(chosen)) + "}"


def _flags(draw: st.DrawFn, *names: str) -> str:
    return "".join(f" {name}=true" for name in names if draw(st.integers(0, 4)) == 0)


@st.composite
def _declare(draw: st.DrawFn) -> str:
    flags = _flags(draw, "durable", "auto_delete", "exclusive")
    return f'{draw(_channel)} queue.declare queue="{draw(_queue)}"{flags} arguments={draw(_table())}'


@st.composite
def _declare_exchange(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["direct", "fanout", "topic", "headers"]))
    name = draw(st.sampled_from(OWN_EXCHANGES))
    flags = _flags(draw, "auto_delete", "internal")
    alternate = draw(st.sampled_from(["", "", ' arguments={"alternate-exchange": "amq.fanout"}']))
    return f'{draw(_channel)} exchange.declare exchange="{name}" type="{kind}"{flags}{alternate}'


@st.composite
def _bind(draw: st.DrawFn) -> str:
    verb = draw(st.sampled_from(["bind", "bind", "bind", "unbind"]))
    exchange, key = draw(_exchange), draw(st.sampled_from(PATTERNS))
    arguments = draw(
        st.sampled_from(["{}", "{}", '{"x-match": "any", "a": 1}', '{"x-match": "all", "a": 1}'])
    )
    if draw(st.integers(0, 3)):
        ends = f'queue="{draw(_queue)}" exchange="{exchange}"'
        return f'{draw(_channel)} queue.{verb} {ends} routing_key="{key}" arguments={arguments}'
    own = st.sampled_from(OWN_EXCHANGES)
    ends = f'destination="{draw(own)}" source="{draw(own)}"'
    return f'{draw(_channel)} exchange.{verb} {ends} routing_key="{key}" arguments={arguments}'


@st.composite
def _publish(draw: st.DrawFn) -> str:
    place = f'routing_key="{draw(_queue)}"'
    if draw(_flag):
        place = f'exchange="{draw(_exchange)}" routing_key="{draw(st.sampled_from(KEYS))}"'
    mandatory = _flags(draw, "mandatory")
    priority = draw(st.sampled_from(["", "", " priority=1", " priority=3", " priority=9"]))
    mode = draw(st.sampled_from(["", " delivery_mode=2"]))
    headers = draw(st.sampled_from(_HEADERS))
    # None that elapses: RabbitMQ expires messages only at the head of a queue, Warren each one on time.
    expiration = draw(st.sampled_from(["", "", "", ' expiration="60000"']))
    times = draw(st.sampled_from(["", "", "3 times "]))
    channel = draw(_channel).replace("> ", f"> {times}")
    return f'{channel} publish {place}{mandatory}{mode}{priority}{expiration}{headers} body="%d"'


@st.composite
def _consume(draw: st.DrawFn) -> str:
    flags = _flags(draw, "no_ack", "exclusive")
    tag = draw(st.sampled_from(TAGS))
    priority = draw(st.sampled_from(["", "", "", ' arguments={"x-priority": 1}']))
    return f'{draw(_channel)} basic.consume queue="{draw(_queue)}" consumer_tag="{tag}"{flags}{priority}'


@st.composite
def _settle(draw: st.DrawFn) -> str:
    verb = draw(st.sampled_from(["ack", "ack", "nack", "reject"]))
    multiple = _flags(draw, "multiple") if verb != "reject" else ""
    requeue = f" requeue={str(draw(_flag)).lower()}" if verb != "ack" else ""
    # Usually a tag that is unacknowledged, sometimes one that is not.
    tag = f"tag({draw(st.integers(0, 2))})" if draw(st.integers(0, 9)) else str(draw(st.integers(0, 5)))
    return f"{draw(_channel)} basic.{verb} delivery_tag={tag}{multiple}{requeue}"


@st.composite
def _other(draw: st.DrawFn) -> str:
    channel, queue = draw(_channel), draw(_queue)
    return draw(
        st.sampled_from(
            [
                f'{channel} basic.cancel consumer_tag="{draw(st.sampled_from(TAGS))}"',
                f"{channel} basic.recover requeue=true",
                f"{channel} basic.qos prefetch_count={draw(st.integers(0, 2))}{_flags(draw, 'global')}",
                f'{channel} queue.purge queue="{queue}"',
                f'{channel} queue.delete queue="{queue}"{_flags(draw, "if_unused", "if_empty")}',
                f'{channel} exchange.delete exchange="x0"{_flags(draw, "if_unused")}',
                f'{channel} queue.declare queue="{queue}" passive=true',
                f'{channel} exchange.declare exchange="{draw(_exchange)}" passive=true',
                f"{channel} basic.recover-async requeue=true",
                f"{channel} confirm.select",
                f"{channel} tx.select",
                f"{channel} tx.commit",
                f"{channel} tx.rollback",
                f"{channel} channel.close reply_code=200",
                f"{channel.split()[0]} disconnect",
            ]
        )
    )


@st.composite
def _get(draw: st.DrawFn) -> str:
    return f'{draw(_channel)} basic.get queue="{draw(_queue)}"{_flags(draw, "no_ack")}'


@st.composite
def scripts(draw: st.DrawFn) -> list[str]:
    """A script that begins with declarations; each message has its own body.

    Half of the scripts use one queue only, so that more happens to it.
    """
    steps = st.one_of(
        _declare(), _bind(), _bind(), _publish(), _publish(), _publish(), _consume(), _consume(), _get(),
        _get(), _settle(), _settle(), _settle(), _other(), _other(),
    )  # fmt: skip
    lines = [draw(_declare()), draw(_declare()), draw(_declare_exchange()), draw(_declare_exchange())]
    # Several short lists make a longer script on average than one long list, and shrink as well.
    for _ in range(PARTS):
        lines += draw(st.lists(steps, max_size=PART_LENGTH_MAX))
    if draw(_flag):
        lines = [_NAME.sub(r'\1="q0"', line) for line in lines]
    return [line % place if line.endswith('body="%d"') else line for place, line in enumerate(lines)]

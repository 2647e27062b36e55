"""What RabbitMQ 4.3.6 and Warren answer otherwise than 3.10.8 to the cases of `parameter_cases`.

Warren accepts what either version accepts. It checks arguments of queues and consumers when the shovel
declares and consumes, as 3.10.8 does, so that definitions of 3.10.8 can be imported.
"""

from typing import Final

from tests.oracle.parameter_cases import URI, Cases

_UPSTREAM: Final[dict[str, object]] = {"uri": URI}
_ACCEPTED: Final[tuple[str, ...]] = ()

# Keys that 3.10.8 does not know; both RabbitMQ 4.3.6 and Warren answer with these errors.
LATER_SHOVELS: Final[Cases] = [
    ({"internal": True}, _ACCEPTED),
    ({"internal": 5}, ("internal should be boolean, actually was 5",)),
    ({"internal_owner": {"name": "q", "kind": "queue", "virtual_host": "/"}}, _ACCEPTED),
    ({"internal_owner": {}}, _ACCEPTED),
    (
        {"internal_owner": {"kind": "x"}},
        ('kind should be one of [<<"exchange">>,<<"queue">>], actually was <<"x">>',),
    ),
    (
        {"internal_owner": {"name": 5, "kind": "queue", "virtual_host": 7, "z": 1}},
        (
            'Unrecognised terms [{<<"z">>,1}] in internal_owner',
            "virtual_host should be binary, actually was 7",
            "name should be binary, actually was 5",
        ),
    ),
    ({"src-consumer-name": "t"}, _ACCEPTED),
    ({"src-consumer-name": 5}, ("src-consumer-name should be binary, actually was 5",)),
    ({"src-predeclared": True}, _ACCEPTED),
    ({"src-predeclared": 1}, ("src-predeclared should be boolean, actually was 1",)),
    ({"dest-predeclared": True}, _ACCEPTED),
    ({"src-delete-after-duration": 60}, _ACCEPTED),
    (
        {"src-delete-after-duration": 0},
        ("src-delete-after-duration should be a positive integer (seconds), actually was 0",),
    ),
    (
        {"src-delete-after-duration": 10**12},
        ("src-delete-after-duration is 1000000000000 seconds, which exceeds the maximum supported duration",),
    ),
    ({"src-protocol": "local", "dest-protocol": "local"}, _ACCEPTED),
    ({"src-protocol": "local", "src-delete-after": 5}, _ACCEPTED),
]
LATER_UPSTREAMS: Final[Cases] = [
    ({**_UPSTREAM, "queue-type": "quorum"}, _ACCEPTED),
    ({**_UPSTREAM, "queue-type": 5}, ("queue-type should be binary, actually was 5",)),
    (
        {**_UPSTREAM, "queue-type": "stream"},
        ('queue-type should be one of [<<"classic">>,<<"quorum">>], actually was <<"stream">>',),
    ),
]

# Arguments with unknown names, which RabbitMQ 4.3.6 and Warren accept, as basic.consume and queue.declare do.
_UNKNOWN_ARGUMENTS: Final[Cases] = [
    ({"src-queue-args": {"nosuch": 1}}, _ACCEPTED),
    ({"dest-queue-args": {"nosuch": 1}}, _ACCEPTED),
    ({"src-consumer-args": {"nosuch": 1}}, _ACCEPTED),
    (
        {
            "dest-publish-properties": {"content_type": 5, "timestamp": "x", "zz": 1},
            "src-queue-args": {"zz": 1},
            "reconnect-delay": "x",
        },
        (
            'Unrecognised terms [{<<"zz">>,1}] in dest-publish-properties',
            'timestamp should be a number, actually was <<"x">>',
            "content_type should be binary, actually was 5",
            'reconnect-delay should be a number, actually was <<"x">>',
        ),
    ),
]
SHOVELS_OF_WARREN: Final = _UNKNOWN_ARGUMENTS
SHOVELS_OF_RABBITMQ_4: Final[Cases] = [
    *_UNKNOWN_ARGUMENTS,
    (
        {"src-queue-args": {"x-max-length": -5}},
        ("invalid arg 'x-max-length' in src-queue-args: {value_negative,-5}",),
    ),
    (
        {"dest-queue-args": {"x-max-length": -5}},
        ("invalid arg 'x-max-length' in dest-queue-args: {value_negative,-5}",),
    ),
    (
        {"src-consumer-args": {"x-priority": "a"}},
        ("invalid arg 'x-priority' in src-consumer-args: \"expected integer, got longstr\"",),
    ),
]

# An address of this node in a vhost that the user may not use: as in a shovel, which 3.10.8 refuses, too.
_NO_ACCESS: Final[Cases] = [({"uri": "amqp:///nosuch"}, ('user "guest" may not connect to vhost "nosuch"',))]
UPSTREAMS_OF_WARREN: Final = _NO_ACCESS
# RabbitMQ 4 has no mirrored queues, and their key is unknown.
UPSTREAMS_OF_RABBITMQ_4: Final[Cases] = [
    *_NO_ACCESS,
    ({**_UPSTREAM, "ha-policy": ""}, ('Unrecognised terms [{<<"ha-policy">>,<<>>}] in n',)),
    ({**_UPSTREAM, "ha-policy": 5}, ('Unrecognised terms [{<<"ha-policy">>,5}] in n',)),
]

# The errors of another library for patterns, and keys of mirrored queues, which are not known.
POLICIES_OF_RABBITMQ_4: Final[Cases] = [
    (
        {"federation-upstream-pattern": "("},
        (
            'could not compile pattern ( to a regular expression. Error: {"missing closing parenthesis",',
            "                                                             1}",
        ),
    ),
    ({"federation-upstream": 5, "ha-mode": "x"}, ("5 is not a valid federation upstream name",)),
]


def answered(cases: Cases, differing: Cases) -> Cases:
    """`cases` with the errors that `differing` has for some of them."""
    others = {str(value): errors for value, errors in differing}
    found = [(value, others.pop(str(value), errors)) for value, errors in cases]
    assert not others, f"{list(others)} are no cases"
    return found

"""Methods compared with the code of the installed RabbitMQ: equal flags, equal refusals, equal texts.

No broker is started: Erlang loads `rabbit_framing_amqp_0_9_1` and answers for a file of payloads.
"""

import base64
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from warren.errors import FrameError
from warren.wire.methods import METHODS, decode_method
from warren.wire.strings import encode_text

LIBRARIES = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/plugins/rabbit_common-*/ebin"))
pytestmark = [
    pytest.mark.rabbitmq,
    pytest.mark.skipif(not LIBRARIES or shutil.which("erl") is None, reason="no rabbitmq-server here"),
]

# For each line `name payload` one line: `ok`, `refused TEXT` or `crashed`; texts and payloads in base64.
ANSWER = """
Answer = fun(Line) ->
    [Name, Payload] = string:split(Line, " "),
    case catch rabbit_framing_amqp_0_9_1:decode_method_fields(list_to_atom(Name), base64:decode(Payload)) of
        {'EXIT', {amqp_error, frame_error, Text, _}} -> ["refused ", base64:encode(list_to_binary(Text))];
        {'EXIT', _} -> "crashed";
        _ -> "ok"
    end
end,
{ok, Cases} = file:read_file(os:getenv("CASES")),
Lines = string:split(string:trim(binary_to_list(Cases), trailing, "\\n"), "\\n", all),
ok = file:write_file(os:getenv("ANSWERS"), [[Answer(Line), "\\n"] || Line <- Lines]),
halt().
"""
FLAGS = """
Framing = rabbit_framing_amqp_0_9_1,
[case catch Framing:lookup_method_name({Class, Method}) of
    Name when is_atom(Name) ->
        io:format("~s ~b ~s ~s~n", [Name, Class bsl 16 bor Method, Framing:method_has_content(Name),
            Framing:is_method_synchronous(Framing:method_record(Name))]);
    _ -> ok
end || Class <- lists:seq(0, 255), Method <- lists:seq(0, 255)],
halt().
"""


def erlang(expression: str, **environment: str) -> str:
    command = ["erl", "-noshell", "-pa", str(LIBRARIES[-1]), "-eval", expression]
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "ERL_CRASH_DUMP": "/dev/null",
        **environment,
    }
    return subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=100, check=True
    ).stdout


def known(name: str) -> str:
    """RabbitMQ's name of a method of Warren."""
    return name.replace("-", "_")


def ours(payload: bytes) -> str:
    try:
        decode_method(payload)
    except FrameError as error:
        return f"refused {base64.b64encode(encode_text(error.message)).decode()}"
    return "ok"


def payloads(random: Random) -> list[bytes]:
    """Methods that are sound, cut short, too long, and damaged in a byte."""
    whole = [
        method(**{field: sample(random, default) for field, default in method._defaults}).encode()
        for method in METHODS.values()
        for _ in range(8)
    ]
    cut = [data[: random.randint(4, len(data))] for data in whole]
    longer = [data + random.randbytes(random.randint(1, 3)) for data in whole]
    damaged = []
    for data in whole * 3:
        changed = bytearray(data + b"\0")
        changed[random.randrange(4, len(changed))] = random.choice(b"\x00\x01\x03\x7f\x80\xc3\xff")
        damaged.append(bytes(changed[: len(data)]))
    return whole + cut + longer + damaged


def sample(random: Random, default: object) -> object:
    if isinstance(default, bool):
        return random.random() < 0.5
    if isinstance(default, int):
        return random.randint(0, 255)
    if isinstance(default, str):
        return random.choice(["", "a", "jobs", "é", "日本", "\udcff", "\udcc0\udc80"])
    return random.choice([{}, {"a": True}, {"a": [1, None, "x"], "b": {"c": 2}}])


def test_methods_and_their_flags_equal_those_of_rabbitmq() -> None:
    found = {
        name: (int(index), content == "true", synchronous == "true")
        for name, index, content, synchronous in map(str.split, erlang(FLAGS).splitlines())
    }
    assert found == {
        known(method.name): (method.index, method.has_content, method.is_synchronous)
        for method in METHODS.values()
    }


@pytest.mark.parametrize("seed", range(3))
def test_refusals_have_the_text_of_rabbitmq(seed: int, tmp_path: Path) -> None:
    tried = payloads(Random(seed))
    cases, answers = tmp_path / "cases", tmp_path / "answers"
    cases.write_text(
        "".join(
            f"{known(METHODS[int.from_bytes(payload[:4], 'big')].name)} "
            f"{base64.b64encode(payload[4:]).decode()}\n"
            for payload in tried
        )
    )
    erlang(ANSWER, CASES=str(cases), ANSWERS=str(answers))
    given = answers.read_text().splitlines()
    assert len(given) == len(tried)
    for payload, answer in zip(tried, given, strict=True):
        if answer == "crashed":
            # A malformed field table closes the connection of RabbitMQ without a text; Warren describes the
            # error.
            assert ours(payload).startswith("refused"), payload
        else:
            assert ours(payload) == answer, payload

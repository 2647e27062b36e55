"""Static shovels of the classic configuration: both forms, declarations, tables, and what is refused."""

from decimal import Decimal

import pytest

from warren.model.erlang_reader import Term, read_terms
from warren.model.erlang_terms import Atom
from warren.node.classic_shovels import ClassicShovel, classic_shovels
from warren.node.term_values import InvalidTerm, shown, table_of
from warren.wire import methods
from warren.wire.table import Int32

PRESENT = """[{test_shovel,
 [{source,
   [{protocol, amqp091},
    {uris, ["amqp://localhost/%2f?heartbeat=5", <<"amqp://other">>]},
    {declarations,
     [{'queue.declare', [exclusive, auto_delete]},
      {'exchange.declare', [{exchange, <<"x">>}, {type, <<"topic">>}, auto_delete, {durable, false}]},
      {'queue.bind', [{queue, <<>>}, {exchange, <<"x">>}, {routing_key, <<"to">>}, {nowait, true}]}]},
    {queue, <<>>}, {prefetch_count, 10}, {delete_after, 'queue-length'},
    {consumer_args, [{<<"x-priority">>, signedint, 5}]}]},
  {destination,
   [{uris, ["amqp://"]},
    {declarations, ['queue.declare',
     {'queue.declare', [{queue, <<"q">>}, {arguments, [{<<"x-max-length">>, long, 5}]}]}]},
    {publish_fields, [{exchange, <<"x">>}, {routing_key, <<"from">>}]},
    {publish_properties, [{delivery_mode, 2}, {content_type, <<"shovelled">>},
                          {headers, [{<<"h">>, longstr, <<"v">>}]}]},
    {add_forward_headers, true}, {add_timestamp_header, true}]},
  {ack_mode, on_publish}, {reconnect_delay, 2}]}]."""
OLDER = """[{test_shovel,
 [{sources, [{broker, "amqp://a"}, {declarations, ['queue.declare']}]},
  {destinations, [{brokers, ["amqp://b", "amqp://c"]}]},
  {queue, <<>>}, {prefetch_count, 7}, {ack_mode, no_ack},
  {publish_fields, [{exchange, <<"x">>}]},
  {publish_properties, [{cluster_id, <<"c">>}]},
  {add_forward_headers, true}]}]."""


def unheard(warning: str) -> None:
    raise AssertionError(warning)


def term(text: str) -> Term:
    [found] = read_terms(text)
    return found


def shovel(text: str) -> ClassicShovel:
    [found] = classic_shovels(term(text), unheard).values()
    return found


def test_the_present_form_is_read() -> None:
    found = shovel(PRESENT)
    source, destination = found.definition.source, found.definition.destination
    assert source.uris == ("amqp://localhost/%2f?heartbeat=5", "amqp://other")
    assert (source.queue, source.prefetch_count, source.delete_after) == ("", 10, "queue-length")
    assert source.consumer_arguments == {"x-priority": 5}
    assert isinstance(source.consumer_arguments["x-priority"], Int32)
    assert (destination.exchange, destination.exchange_key) == ("x", "from")
    assert destination.publish_properties == {
        "delivery_mode": 2,
        "content_type": "shovelled",
        "headers": {"h": "v"},
    }
    assert destination.adds_forward_headers
    assert destination.adds_timestamp_header
    assert (found.definition.ack_mode, found.definition.reconnect_delay_s) == ("on-publish", 2)


def test_declarations_are_methods_in_their_order() -> None:
    found = shovel(PRESENT)
    assert found.source_declarations == (
        methods.QueueDeclare(exclusive=True, auto_delete=True),
        methods.ExchangeDeclare(exchange="x", type="topic", auto_delete=True),
        methods.QueueBind(queue="", exchange="x", routing_key="to"),
    )
    assert found.destination_declarations == (
        methods.QueueDeclare(),
        methods.QueueDeclare(queue="q", arguments={"x-max-length": 5}),
    )


def test_the_older_form_is_read() -> None:
    found = shovel(OLDER)
    source, destination = found.definition.source, found.definition.destination
    assert (source.uris, source.queue, source.prefetch_count) == (("amqp://a",), "", 7)
    assert destination.uris == ("amqp://b", "amqp://c")
    assert (destination.exchange, destination.exchange_key) == ("x", None)
    assert destination.publish_properties == {"cluster_id": "c"}
    assert destination.adds_forward_headers
    assert found.definition.ack_mode == "no-ack"
    assert found.source_declarations == (methods.QueueDeclare(),)


def test_defaults_are_those_that_rabbitmq_documents() -> None:
    for text in (
        '[{s, [{source, [{uris, ["amqp://"]}, {queue, <<"q">>}]}, {destination, [{uris, ["amqp://"]}]}]}].',
        '[{s, [{sources, [{broker, "amqp://"}]}, {destinations, [{broker, "amqp://"}]}, {queue, <<"q">>}]}].',
    ):
        definition = shovel(text).definition
        assert (definition.ack_mode, definition.reconnect_delay_s) == ("on-confirm", 5)
        assert (definition.source.prefetch_count, definition.source.delete_after) == (1000, "never")
        assert (definition.destination.exchange, definition.destination.exchange_key) == (None, None)


def test_names_and_addresses_are_shown_as_those_of_a_parameter() -> None:
    shown_keys = shovel(PRESENT).parameter
    assert shown_keys["src-queue"] == ""
    assert (shown_keys["src-protocol"], shown_keys["dest-exchange-key"]) == ("amqp091", "from")
    assert "dest-queue" not in shown_keys


def test_a_key_that_no_form_has_is_ignored_with_a_warning() -> None:
    warnings: list[str] = []
    text = PRESENT.replace("{ack_mode, on_publish}", "{ack_mode, on_publish}, {colour, red}")
    text = text.replace("{prefetch_count, 10}", "{prefetch_cuont, 10}")
    assert classic_shovels(term(text), warnings.append)
    assert sorted(warnings) == [
        "shovel 'test_shovel': colour has no effect: it is not a key of a static shovel",
        "shovel 'test_shovel': source: prefetch_cuont has no effect: it is not a key of a static shovel",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("invalid_config", "shovels has to be a list, not invalid_config"),
        ("[{<<\"name\">>, []}]", "shovels: each entry has to be {name, [{key, value}, …]}"),
        ("[{test_shovel, invalid}]", "shovel 'test_shovel': the shovel has to be a list, not invalid"),
        ("[{s, []}]", "shovel 's': neither source nor sources is given"),
        ("[{s, [{sources, [{broker, \"amqp://\"}]}]}]", "shovel 's': destinations is not given"),
        ("[{s, [{source, []}]}]", "shovel 's': the shovel: destination is not given"),
        ("[{s, [{a, b, c}]}]", "shovel 's': the shovel: each entry has to be {key, value}, not {a,b,c}"),
        ("[{s, [{queue, <<>>}, {queue, <<>>}]}]", "shovel 's': the shovel: queue is given twice"),
    ],
)  # fmt: skip
def test_a_list_that_is_not_one_of_shovels_is_refused(text: str, error: str) -> None:
    with pytest.raises(InvalidTerm) as caught:
        classic_shovels(term(f"{text}."), unheard)
    assert str(caught.value).startswith(error)


def test_a_shovel_that_is_defined_twice_is_refused() -> None:
    [one] = term(OLDER)  # type: ignore[misc, union-attr]
    with pytest.raises(InvalidTerm, match="shovel 'test_shovel' is defined twice"):
        classic_shovels([one, one], unheard)


# Replacements in the older form, and the error they lead to: the cases of RabbitMQ's own tests.
BROKEN_OLDER = (
    ("[{broker, \"amqp://a\"}, {declarations, ['queue.declare']}]", "invalid", "sources has to be a list"),
    ('{broker, "amqp://a"}, ', "", "sources: broker is not given"),
    ('{broker, "amqp://a"}', "{brokers, invalid}", "source: the addresses have to be a list"),
    ('{broker, "amqp://a"}', "{brokers, [42]}", "source: an address has to be a string, not 42"),
    ('{broker, "amqp://a"}', "{brokers, []}", "source: it has to have 1 to 100 addresses, not 0"),
    ('"amqp://a"', '"invalid://"', "unexpected_uri_scheme"),
    ('"amqp://a"', '"invalid"', "no_scheme"),
    ('"amqp://a"', '"amqp://u:secret@h?heartbeat=text"', "heartbeat"),
    ("['queue.declare']", "invalid", "declarations has to be a list, not invalid"),
    ("['queue.declare']", "[42]", "source: declarations: 42 is none of exchange.declare"),
    ("['queue.declare']", "['basic.publish']", "source: declarations: 'basic.publish' is none of"),
    ("['queue.declare']", "[{'queue.declare', 42}]", "queue.declare: its fields has to be a list, not 42"),
    ("['queue.declare']", "[{'queue.declare', [invalid]}]", "queue.declare has no field invalid"),
    ("['queue.declare']", "[{'queue.declare', [{queue, q}]}]", "queue has to be a binary"),
    ("['queue.declare']", "[{'queue.declare', [{durable, 1}]}]", "durable has to be true or false, not 1"),
    ("['queue.declare']", f"[{{'queue.declare', [{{queue, <<\"{'q' * 256}\">>}}]}}]", "queue.declare:"),
    ("{prefetch_count, 7}", "{prefetch_count, invalid}", "prefetch_count has to be an integer that is not"),
    ("{prefetch_count, 7}", "{prefetch_count, -5}", "prefetch_count has to be an integer that is not"),
    ("no_ack", "invalid", "ack_mode has to be no_ack or on_publish or on_confirm, not invalid"),
    ("{queue, <<>>}", "{queue, invalid}", "source: queue has to be a binary"),
    ('[{cluster_id, <<"c">>}]', "invalid", "publish_properties has to be a list, not invalid"),
    ('[{cluster_id, <<"c">>}]', "[invalid]", "publish_properties: each entry has to be {key, value}"),
    ('[{cluster_id, <<"c">>}]', "[{colour, 1}]", "publish_properties: colour is no property of a message"),
    ('[{cluster_id, <<"c">>}]', "[{delivery_mode, 300}]", "publish_properties: delivery_mode:"),
    ('[{exchange, <<"x">>}]', "[{colour, 1}]", "publish_fields: colour is no field of basic.publish"),
    ('[{exchange, <<"x">>}]', "[{immediate, true}]", "immediate is not implemented"),
    ("{add_forward_headers, true}", "{add_forward_headers, 1}", "has to be true or false, not 1"),
    ("{add_forward_headers, true}", "{reconnect_delay, soon}", "reconnect_delay has to be a number"),
    ("{add_forward_headers, true}", "{delete_after, sometimes}", "has to be never or queue-length"),
)


@pytest.mark.parametrize(("old", "new", "error"), BROKEN_OLDER)
def test_a_wrong_value_is_refused_with_its_key(old: str, new: str, error: str) -> None:
    assert old in OLDER
    with pytest.raises(InvalidTerm) as caught:
        classic_shovels(term(OLDER.replace(old, new)), unheard)
    assert str(caught.value).startswith("shovel 'test_shovel': ")
    assert error in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("end", ["source", "destination"])
def test_an_end_that_speaks_amqp_1_0_is_refused_with_the_reason(end: str) -> None:
    old = "{protocol, amqp091}" if end == "source" else '[{uris, ["amqp://"]},'
    new = "{protocol, amqp10}" if end == "source" else '[{protocol, amqp10}, {uris, ["amqp://"]},'
    with pytest.raises(InvalidTerm) as caught:
        classic_shovels(term(PRESENT.replace(old, new)), unheard)
    reason = f"{end}: protocol: AMQP 1.0 is not supported, only amqp091 and local"
    assert str(caught.value) == f"shovel 'test_shovel': {reason}"


def test_addresses_have_to_be_a_list() -> None:
    text = PRESENT.replace('{uris, ["amqp://"]}', '{uris, "amqp://"}')
    with pytest.raises(InvalidTerm, match="have to be a list"):
        classic_shovels(term(text), unheard)


def test_a_prefetch_that_amqp_cannot_express_is_the_largest_one() -> None:
    assert shovel(OLDER.replace("7}", "70000}")).definition.source.prefetch_count == 65_535


def test_every_type_of_a_field_table_is_read() -> None:
    table = table_of("t", term(
        '[{<<"s">>, longstr, <<"v">>}, {<<"i">>, signedint, -1}, {<<"l">>, long, 9}, {<<"t">>, bool, true},'
        ' {<<"d">>, double, 1.5}, {<<"f">>, float, 2}, {<<"n">>, void, undefined}, {<<"x">>, binary, <<1>>},'
        ' {<<"T">>, timestamp, 7}, {<<"D">>, decimal, {2, 150}}, {<<"a">>, array, [{long, 1}]},'
        ' {<<"F">>, table, [{<<"k">>, short, 3}]}].'
    ))  # fmt: skip
    assert table == {
        "s": "v", "i": -1, "l": 9, "t": True, "d": 1.5, "f": 2.0, "n": None, "x": b"\x01", "T": 7,
        "D": Decimal("1.50"), "a": [1], "F": {"k": 3},
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ['[{<<"k">>, 1}]', "[{k, long, 1}]", '[{<<"k">>, long, <<"1">>}]', '[{<<"k">>, nonsense, 1}]',
     '[{<<"k">>, <<"long">>, 1}]', '[{<<"k">>, array, [1]}]'],
)  # fmt: skip
def test_a_table_that_has_other_entries_is_refused(text: str) -> None:
    with pytest.raises(InvalidTerm):
        table_of("t", term(f"{text}."))


def test_terms_in_errors_are_short_and_without_credentials() -> None:
    assert shown(["amqp://u:secret@host", Atom("it s"), b"\xff"]) == '["amqp://host",\'it s\',<<"\\xff">>]'
    assert len(shown(["x" * 1000])) == 101

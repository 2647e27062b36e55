"""Names: their notation in texts, stripping of line ends, and generation."""

from warren.model.names import ExchangeName, QueueName, generated_name, stripped


def test_names_are_written_as_rabbitmq_writes_them() -> None:
    assert str(QueueName("v", "q")) == "queue 'q' in vhost 'v'"
    assert str(ExchangeName("/", "")) == "exchange '' in vhost '/'"


def test_a_queue_and_an_exchange_of_one_name_differ() -> None:
    assert QueueName("v", "a") != ExchangeName("v", "a")


def test_line_ends_are_removed_from_names() -> None:
    assert stripped("a\nb\r\0c") == "ab\0c"


def test_a_generated_name_has_22_characters_after_its_prefix() -> None:
    assert generated_name("amq.gen", bytes(range(240, 256))) == "amq.gen-8PHy8_T19vf4-fr7_P3-_w"

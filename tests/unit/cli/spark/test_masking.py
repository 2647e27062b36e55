"""Passwords, and nothing else, are masked in the output of commands."""

import pytest

from warren.cli.spark.masking import masked

HOST = "broker:5672/%2f"


@pytest.mark.parametrize(
    ("password", "text", "reported"),
    [
        (
            "s3cret",
            "cannot reach amqp://u:s3cret@broker:5672/%2f now",
            "cannot reach amqp://u:***@broker:5672/%2f now",
        ),
        ("s3cret", "with s3cret, 's3cret' and s3cret.", "with ***, '***' and ***."),
        # Part of another word, so it is not masked.
        ("or", "orders or workers for authors", "orders *** workers for authors"),
        ("a", "a queue was not found", "*** queue was not found"),
        ("e", "the queue orders/east", "the queue orders/east"),
        # The password as given, decoded, and encoded in other ways.
        ("p%40ss%2Fw", "p%40ss%2Fw p@ss/w p%40ss%2fw p%40ss/w", "*** *** *** ***"),
        ("p+1", "p+1 p%2B1", "*** ***"),
        ("p%20q", "p q p+q p%20q", "*** *** ***"),
        ("$x", "a$x $x!", "a$x ***!"),
        # Names of settings reveal nothing.
        ("u", "user u at broker", "user u at broker"),
        ("broker", "no connection to broker:5672", "no connection to broker:5672"),
    ],
)
def test_a_password_is_masked_where_it_is_a_word(password: str, text: str, reported: str) -> None:
    assert masked(text, [f"amqp://u:{password}@{HOST}", "http://broker:15672", "false"]) == reported


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            "see amqps://a:b@c/d, http://e:f@g and amqp://h:1/x",
            "see amqps://a:***@c/d, http://e:***@g and amqp://h:1/x",
        ),
        ("amqp://a:b@c@d:1/x", "amqp://a:***@d:1/x"),
        ("amqp://a:%40%2f@d,amqp://b:c@d", "amqp://a:***@d,amqp://b:***@d"),
        ("amqp://a:b/c@d", "amqp://a:***@d"),
        ("mailto a@b, at http://host:80/x", "mailto a@b, at http://host:80/x"),
    ],
)
def test_the_password_of_any_uri_is_masked(text: str, reported: str) -> None:
    assert masked(text, []) == reported

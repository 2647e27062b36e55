"""Permissions that a web server decides: what is asked, kept and forgotten."""

from functools import partial

import pytest
from tests.unit.access.dependencies import finished

from warren.access.authorize import Authorizer, check_vhost
from warren.access.web_grants import WebDecision, WebQuestion, WebQuestionKind, WebUser, for_request, web_user
from warren.errors import AccessRefused, NotAllowed, Undecided
from warren.limits_access import WEB_ANSWERS_KEPT_MAX, WEB_QUESTIONS_MAX
from warren.metadata.commands import PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission
from warren.metadata.proposals import LocalProposals
from warren.model.decided import decided
from warren.model.names import ExchangeName, QueueName

QUEUE = QueueName("/", "q")


class WebServer:
    """A web server that refuses what is in `refused`, with a note, and records the questions."""

    def __init__(self) -> None:
        self.asked: list[WebQuestion] = []
        self.refused: set[str] = set()

    async def ask(self, question: WebQuestion) -> WebDecision:
        self.asked.append(question)
        fields = dict(question.fields)
        name = f"{fields.get('name', fields['vhost'])} {fields.get('permission', '')}".strip()
        return WebDecision(False, ": closed") if name in self.refused else WebDecision(True)

    def user(self) -> WebUser:
        return web_user("alice", "http", ("management",), "192.0.2.1", ask=self.ask)

    def permissions(self) -> list[str]:
        """The permissions of the questions since the last call."""
        asked, self.asked = self.asked, []
        return [dict(question.fields)["permission"] for question in asked]


@pytest.fixture
def server() -> WebServer:
    return WebServer()


def authorizer(user: WebUser) -> Authorizer:
    return Authorizer(user.grants, user, "/")


def test_a_permission_is_undecided_until_somebody_waits_for_the_answer(server: WebServer) -> None:
    rights = authorizer(server.user())
    with pytest.raises(Undecided) as undecided:
        rights.check_read(QUEUE)
    assert not server.asked
    finished(undecided.value.decide())
    rights.check_read(QUEUE)
    rights.check_read(QUEUE)
    assert server.permissions() == ["read"]


def test_what_is_refused_is_refused_once_for_each_operation(server: WebServer) -> None:
    rights = authorizer(server.user())
    server.refused.add("q write")

    async def write() -> None:
        rights.check_write(QUEUE)

    for _ in range(2):
        with pytest.raises(
            AccessRefused, match=r"^access to queue 'q' in vhost '/' refused for user 'alice': closed$"
        ):
            finished(decided(write))
    assert server.permissions() == ["write", "write"]
    server.refused.clear()
    finished(decided(write))


def test_each_permission_of_one_operation_is_asked_for_once(server: WebServer) -> None:
    rights = authorizer(server.user())
    server.refused |= {"q configure", "q write"}

    async def find() -> None:
        rights.check_any(QUEUE)
        rights.check_read_or_write(QueueName("/", "other"))

    finished(decided(find))
    assert server.permissions() == ["configure", "write", "read", "read"]
    server.refused.add("q read")
    others = authorizer(server.user())

    async def find_again() -> None:
        others.check_any(QUEUE)

    with pytest.raises(AccessRefused):
        finished(decided(find_again))
    assert server.permissions() == ["configure", "write", "read"]


def test_an_operation_asks_a_bounded_number_of_questions(server: WebServer) -> None:
    rights = authorizer(server.user())
    count = 0

    async def endless() -> None:
        nonlocal count
        count += 1
        rights.check_read(QueueName("/", str(count)))

    with pytest.raises(AccessRefused):
        finished(decided(endless))
    assert len(server.asked) == WEB_QUESTIONS_MAX


def test_a_channel_keeps_a_bounded_number_of_answers(server: WebServer) -> None:
    rights = authorizer(server.user())

    async def read(name: str) -> None:
        rights.check_read(QueueName("/", name))

    for number in range(WEB_ANSWERS_KEPT_MAX + 1):
        finished(decided(partial(read, str(number))))
    finished(decided(lambda: read(str(WEB_ANSWERS_KEPT_MAX))))
    assert len(server.asked) == WEB_ANSWERS_KEPT_MAX + 1
    finished(decided(lambda: read("0")))
    assert len(server.asked) == WEB_ANSWERS_KEPT_MAX + 2


def test_channels_ask_each_for_themselves_and_the_checks_of_a_request_together(server: WebServer) -> None:
    user = server.user()

    async def read(rights: Authorizer) -> None:
        rights.check_read(QUEUE)

    for _ in range(2):
        rights = authorizer(user)
        finished(decided(partial(read, rights)))
    assert server.permissions() == ["read", "read"]
    requester = for_request(user)
    assert isinstance(requester, WebUser)
    for _ in range(2):
        rights = authorizer(requester)
        finished(decided(partial(read, rights)))
    assert server.permissions() == ["read"]


def test_the_default_exchange_and_topics_have_the_names_of_rabbitmq(server: WebServer) -> None:
    rights = authorizer(server.user())

    async def publish() -> None:
        rights.check_write(ExchangeName("/", ""))
        assert rights.restricts_topics("amq.topic")
        rights.check_topic_write("amq.topic", "a.b")

    finished(decided(publish))
    resource, topic = server.asked
    assert resource == WebQuestion(
        WebQuestionKind.RESOURCE,
        (
            ("username", "alice"),
            ("vhost", "/"),
            ("resource", "exchange"),
            ("name", "amq.default"),
            ("permission", "write"),
            ("tags", "management"),
        ),
    )
    assert topic.kind is WebQuestionKind.TOPIC
    assert topic.fields[2:] == (
        ("resource", "topic"),
        ("name", "amq.topic"),
        ("permission", "write"),
        ("tags", "management"),
        ("routing_key", "a.b"),
        ("variable_map.username", "alice"),
        ("variable_map.vhost", "/"),
    )


def test_a_virtual_host_is_asked_for_with_the_address_of_the_client(server: WebServer) -> None:
    metadata = Metadata()
    LocalProposals(metadata, lambda: 0).apply(PutVhost(name="/"))
    user = server.user()

    async def enter() -> None:
        check_vhost(metadata, user, "/")

    server.refused.add("/")
    with pytest.raises(NotAllowed, match=r"^access to vhost '/' refused for user 'alice': closed$"):
        finished(decided(enter))
    server.refused.clear()
    finished(decided(enter))
    assert server.asked[-1] == WebQuestion(
        WebQuestionKind.VHOST,
        (("username", "alice"), ("vhost", "/"), ("ip", "192.0.2.1"), ("tags", "management")),
    )


def test_whoever_looks_at_patterns_only_is_refused(server: WebServer) -> None:
    user = server.user()

    async def permission() -> Permission | None:
        return user.grants.permission("/")

    found = finished(decided(permission))
    assert found is not None
    assert (found.configure, found.write, found.read) == ("(?!)", "(?!)", "(?!)")
    topic = user.grants.topic_permission("/", "amq.topic")
    assert topic is not None
    assert (topic.write, topic.read) == ("(?!)", "(?!)")

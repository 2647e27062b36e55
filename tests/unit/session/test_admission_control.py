"""Admission of connections, with the texts measured with RabbitMQ 3.10.8."""

import pytest
from tests.unit.access.dependencies import FakeDependencies, finished
from tests.unit.metadata.late_proposals import LateProposals

from warren.access.authenticate import AuthenticationSettings, Authenticator
from warren.access.passwords import SALT_SIZE, hash_password
from warren.errors import AmqpSyntaxError, InternalError, LoginRefused, NotAllowed
from warren.metadata.commands import PutVhost, SetPermissions, SetUserLimits, SetVhostLimits
from warren.metadata.defaults import DefaultsSettings, initial_commands
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.refusal_check import RefusalCheck
from warren.session.admission_control import AdmissionControl
from warren.session.events.event_publisher import EventPublisher
from warren.session.peer import Peer

HERE = Peer(host="127.0.0.1", port=1, server_host="127.0.0.1", server_port=5672)
ELSEWHERE = Peer(host="10.0.0.1", port=1, server_host="10.0.0.2", server_port=5672)
REFUSED = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
    "For details see the broker logfile."
)


class AdmissionHarness:
    """Admission control for the user guest, the virtual host / and an empty virtual host v."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self.proposals = LocalProposals(self.metadata, lambda: 0)
        for command in initial_commands(
            DefaultsSettings(), lambda password: hash_password(password, bytes(SALT_SIZE))
        ):
            self.proposals.apply(command)
        self.proposals.apply(PutVhost(name="v"))
        self.guest = self.metadata.users.by_name["guest"]
        # User and virtual host of each connection.
        self.places: list[tuple[str, str]] = []
        self.down: list[str] = []
        # Virtual hosts that start when they are waited for.
        self.starting: list[str] = []
        self.late = LateProposals(self.metadata)
        self.reports: list[str] = []
        authenticator = Authenticator(
            self.metadata, AuthenticationSettings(), FakeDependencies().authentication()
        )
        self.admission_control = AdmissionControl(
            self.metadata,
            authenticator,
            lambda: self,
            self.reports.append,
            refusal_check=RefusalCheck(self.metadata, self.late),
        )

    @property
    def event_publisher(self) -> EventPublisher:
        return EventPublisher(lambda: None, lambda _: None, node_name="n")

    def connections_of(self, user: str) -> int:
        return sum(place[0] == user for place in self.places)

    def connections_to(self, vhost: str) -> int:
        return sum(place[1] == vhost for place in self.places)

    def is_alive(self, vhost: str) -> bool:
        return vhost not in self.down and vhost not in self.starting

    async def wait_until_started(self, vhost: str) -> None:
        if vhost in self.starting:
            self.starting.remove(vhost)


def test_a_user_with_the_right_password_is_admitted() -> None:
    assert (
        finished(AdmissionHarness().admission_control.authenticate("PLAIN", b"\x00guest\x00guest", HERE)).name
        == "guest"
    )


@pytest.mark.parametrize(
    ("response", "peer"),
    [(b"\x00guest\x00wrong", HERE), (b"\x00nobody\x00guest", HERE), (b"\x00guest\x00guest", ELSEWHERE)],
)
def test_every_refusal_has_one_text_and_is_reported_without_secrets(response: bytes, peer: Peer) -> None:
    admission = AdmissionHarness()
    with pytest.raises(LoginRefused) as caught:
        finished(admission.admission_control.authenticate("PLAIN", response, peer, protocol="stream"))
    assert caught.value.reply_text == REFUSED
    assert admission.reports == [f"PLAIN login refused for {peer.name}: access_refused"]


def test_a_malformed_response_is_a_different_error() -> None:
    with pytest.raises(AmqpSyntaxError):
        finished(AdmissionHarness().admission_control.authenticate("PLAIN", b"guest", HERE))


def refusal(admission: AdmissionHarness, vhost: str) -> str:
    with pytest.raises(NotAllowed) as caught:
        finished(admission.admission_control.admit(admission.guest, vhost, HERE))
    return caught.value.reply_text


def test_a_vhost_must_exist_and_be_permitted() -> None:
    admission = AdmissionHarness()
    finished(admission.admission_control.admit(admission.guest, "/", HERE))
    assert refusal(admission, "nope") == "NOT_ALLOWED - vhost nope not found"
    assert refusal(admission, "v") == "NOT_ALLOWED - access to vhost 'v' refused for user 'guest'"


def test_a_vhost_that_is_down_admits_no_one_and_only_permitted_users_are_told_why() -> None:
    admission = AdmissionHarness()
    admission.down = ["/", "v"]
    with pytest.raises(InternalError) as caught:
        finished(admission.admission_control.admit(admission.guest, "/", HERE))
    assert caught.value.reply_text == (
        "INTERNAL_ERROR - access to vhost '/' refused for user 'guest': vhost '/' is down"
    )
    assert refusal(admission, "v") == "NOT_ALLOWED - access to vhost 'v' refused for user 'guest'"


def test_the_connection_limit_of_a_vhost_is_enforced() -> None:
    admission = AdmissionHarness()
    admission.proposals.apply(SetVhostLimits(vhost="/", limits={"max-connections": 1}))
    admission.places = [("other", "v")]
    finished(admission.admission_control.admit(admission.guest, "/", HERE))
    admission.places = [("other", "/")]
    assert refusal(admission, "/") == (
        "NOT_ALLOWED - access to vhost '/' refused for user 'guest': connection limit (1) is reached"
    )


def test_the_connection_limit_of_a_user_is_enforced() -> None:
    admission = AdmissionHarness()
    admission.proposals.apply(SetUserLimits(name="guest", limits={"max-connections": 1}))
    admission.places = [("other", "/")]
    finished(admission.admission_control.admit(admission.guest, "/", HERE))
    admission.places = [("guest", "/")]
    text = "NOT_ALLOWED - connection refused for user 'guest': user connection limit (1) is reached"
    assert refusal(admission, "/") == text


def test_a_vhost_and_permissions_that_another_node_has_just_created_are_known() -> None:
    admission = AdmissionHarness()
    granted = SetPermissions(user="guest", vhost="new", configure="", write="", read="")
    admission.late.others = [PutVhost(name="new"), granted]
    admission.starting = ["new"]
    finished(admission.admission_control.admit(admission.guest, "new", HERE))
    assert admission.starting == []
    granted = SetPermissions(user="guest", vhost="v", configure="", write="", read="")
    admission.late.others = [granted]
    finished(admission.admission_control.admit(admission.guest, "v", HERE))
    assert admission.late.count == 2


def test_a_vhost_that_starts_is_waited_for() -> None:
    admission = AdmissionHarness()
    admission.starting = ["/"]
    finished(admission.admission_control.admit(admission.guest, "/", HERE))
    assert admission.late.count == 0


def test_without_a_majority_an_unknown_vhost_may_exist() -> None:
    admission = AdmissionHarness()
    admission.late.has_majority = False
    with pytest.raises(InternalError) as caught:
        finished(admission.admission_control.admit(admission.guest, "nope", HERE))
    assert caught.value.reply_text.startswith("INTERNAL_ERROR - vhost nope not found as far as this node")
    assert refusal(admission, "v") == "NOT_ALLOWED - access to vhost 'v' refused for user 'guest'"

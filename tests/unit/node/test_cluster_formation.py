"""A blank node on its way into a cluster, in virtual time."""

import asyncio
import logging
from collections.abc import Callable, Sequence

import pytest
from tests.virtual_loop import run

from warren.cluster.admission import AdmissionAnswer, BlankNode
from warren.cluster.formation import FormationNode, FormationPlan
from warren.cluster.hello import NO_CLUSTER, Hello, LinkPurpose
from warren.errors import InternalError
from warren.limits_cluster import FORMATION_ADMISSION_MS, FORMATION_PROOF_MS, FORMATION_SEED_MS
from warren.metadata.commands import Outcome, Reply
from warren.node.cluster_formation import ClusterFormation
from warren.node.errors import BootRefused
from warren.transport.host_socket import HostUnreachable

A, B, C = (FormationNode(name=f"{name}@h", host=name, port=1) for name in "abc")
ADMITTED = AdmissionAnswer("", 2, bytes(range(16)))


def plan(own: FormationNode, **more: object) -> FormationPlan:
    fields: dict[str, object] = {"seed": "a@h", "nodes": (A, B, C), "interval_ms": 500, **more}
    return FormationPlan(own_name=own.name, **fields)  # type: ignore[arg-type]


def blank(node: FormationNode) -> AdmissionAnswer:
    return AdmissionAnswer("no cluster yet", blank=BlankNode(node.name, "a@h"))


class AskedNode:
    """A link to a node that was asked."""

    def __init__(self) -> None:
        self.hello: Hello | None = None
        self.failure = "connection refused"

    def prove(self, cluster_id: bytes) -> None:
        """The other node has said who it is."""
        self.failure = ""
        self.hello = Hello(
            version_min=1, version_max=1, feature_level=1, cluster_id=cluster_id, node_id=1, name="x",
            incarnation=1, purpose=LinkPurpose.JOIN, nonce=bytes(32),
        )  # fmt: skip


class FormingNode:
    """A node whose peers answer as `answers` says: by host, the answers of one request after the other."""

    def __init__(self, **answers: list[AdmissionAnswer | None]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.is_asking = False
        self.is_begun = False
        self.reply: Reply | Exception = Reply(Outcome.DONE)
        # How long an answer takes, and what its node proves before.
        self.answer_s = 0.01
        self.cluster_id = bytes(range(16))
        self.found: list[Sequence[FormationNode] | str] = []

    def join(self, host: str, port: int, answered: Callable[[AdmissionAnswer], None]) -> AskedNode:
        assert not self.is_asking
        assert port == 1
        self.is_asking = True
        self.asked.append(host)
        link = AskedNode()
        answers = self.answers.get(host)
        answer = answers.pop(0) if answers else None
        if answer is not None:
            link.prove(NO_CLUSTER if answer.blank is not None else self.cluster_id)
            asyncio.get_running_loop().call_later(
                self.answer_s, lambda: answered(answer) if self.is_asking else None
            )
        return link

    def stop_joining(self) -> None:
        self.is_asking = False

    async def form(self) -> Reply:
        self.is_begun = True
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    async def look_up(self) -> Sequence[FormationNode]:
        found = self.found.pop(0)
        if isinstance(found, str):
            raise HostUnreachable(found)
        return found


def formed(node: FormingNode, chosen: FormationPlan) -> tuple[AdmissionAnswer | None, float]:
    """The result of a formation, and the seconds that it took."""

    async def form() -> tuple[AdmissionAnswer | None, float]:
        answer = await ClusterFormation(chosen, node, node.look_up).run()
        assert not node.is_asking
        return answer, asyncio.get_running_loop().time()

    return run(form())


def test_a_node_is_admitted_by_the_first_member_that_it_finds() -> None:
    node = FormingNode(a=[blank(A)], c=[ADMITTED])
    assert formed(node, plan(B))[0] == ADMITTED
    assert node.asked == ["a", "c"]
    assert not node.is_begun


def test_a_node_asks_again_until_the_seed_has_a_cluster() -> None:
    node = FormingNode(a=[blank(A), None, ADMITTED])
    answer, seconds = formed(node, plan(B))
    assert answer == ADMITTED
    assert node.asked == ["a", "c", "a", "c", "a"]
    assert seconds == pytest.approx(2 * 0.01 + 3 * FORMATION_PROOF_MS / 1000 + 2 * 0.5, abs=0.05)


def test_the_seed_begins_a_cluster_as_soon_as_all_others_are_blank() -> None:
    node = FormingNode(b=[blank(B)], c=[blank(C)])
    answer, seconds = formed(node, plan(A))
    assert answer is None
    assert node.is_begun
    assert seconds < 0.1


def test_the_seed_begins_a_cluster_alone_when_it_has_asked_long_enough() -> None:
    node = FormingNode()
    answer, seconds = formed(node, plan(A))
    assert answer is None
    assert FORMATION_SEED_MS / 1000 <= seconds <= (FORMATION_SEED_MS + FORMATION_PROOF_MS) / 1000


def test_a_member_that_has_proved_itself_has_time_for_its_answer() -> None:
    node = FormingNode(a=[ADMITTED])
    node.answer_s = FORMATION_PROOF_MS / 1000 + 1
    assert formed(node, plan(B))[0] == ADMITTED
    assert node.asked == ["a"]


def test_a_seed_begins_no_cluster_if_a_member_does_not_answer_in_time() -> None:
    node = FormingNode(b=[ADMITTED])
    node.answer_s = (FORMATION_PROOF_MS + FORMATION_ADMISSION_MS) / 1000 + 1
    with pytest.raises(BootRefused, match="'b@h' at b:1: connection refused; 'c@h' at c:1: connection ref"):
        formed(node, plan(A, attempts_max=3))
    assert not node.is_begun


def test_a_refusal_of_a_member_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    refusal = AdmissionAnswer("'b@h' is a member of the cluster already")
    node = FormingNode(a=[refusal, refusal, refusal])
    with pytest.raises(BootRefused, match="found no cluster in 3 attempts"):
        formed(node, plan(B, attempts_max=3))
    assert [record.getMessage() for record in caplog.records if "does not admit" in record.getMessage()] == [
        "the member 'a@h' at a:1 does not admit this node: 'b@h' is a member of the cluster already"
    ]


def test_a_node_that_waits_says_for_whom(caplog: pytest.LogCaptureFixture) -> None:
    node = FormingNode(a=[None] * 10 + [ADMITTED])
    with caplog.at_level(logging.WARNING):
        _, seconds = formed(node, plan(B))
    reports = [one.getMessage() for one in caplog.records if "waiting for a cluster" in one.getMessage()]
    assert set(reports) == {
        "waiting for a cluster: 'a@h' at a:1: connection refused; 'c@h' at c:1: connection refused"
    }
    assert seconds / 13 < len(reports) <= seconds / 10


def test_nodes_are_looked_up_before_each_round() -> None:
    node = FormingNode(y=[ADMITTED])
    node.found = ["no such name", [FormationNode(host="x", port=1)], [FormationNode(host="y", port=1)]]
    chosen = plan(B, nodes=(), is_looked_up=True)
    assert formed(node, chosen)[0] == ADMITTED
    assert node.asked == ["x", "y"]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply(Outcome.REFUSED, text="the disk is full"), "cannot begin a cluster: the disk is full"),
        (InternalError("timed out"), "cannot begin a cluster: timed out"),
    ],
)
def test_a_cluster_that_cannot_begin_ends_the_start(reply: Reply | Exception, text: str) -> None:
    node = FormingNode()
    node.reply = reply
    with pytest.raises(BootRefused, match=text):
        formed(node, plan(A, nodes=(A,)))


def test_a_formation_that_is_cancelled_asks_no_more() -> None:
    node = FormingNode()

    async def cancelled() -> None:
        task = asyncio.ensure_future(ClusterFormation(plan(B), node, node.look_up).run())
        await asyncio.sleep(1)
        assert node.is_asking
        task.cancel()
        await asyncio.wait((task,))
        assert not node.is_asking

    run(cancelled())

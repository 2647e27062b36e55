"""Answers to nodes that ask to be admitted, as the asking node reads them."""

import msgspec
import pytest

from warren.cluster.admission import AdmissionAnswer, AdmissionPayload, BlankNode, KnownMember, read_answer
from warren.cluster.node_link import PayloadError
from warren.limits_cluster import CLUSTER_NODE_NAME_SIZE_MAX, CLUSTER_REFUSAL_SIZE_MAX


def read(answer: AdmissionAnswer) -> AdmissionAnswer:
    return read_answer(AdmissionPayload.ANSWER, msgspec.msgpack.encode(answer))


@pytest.mark.parametrize(
    "answer",
    [
        AdmissionAnswer("", 2, bytes(16), (KnownMember(1, "a@h", "h", 25_672),)),
        AdmissionAnswer("'b@h' has no cluster yet", blank=BlankNode("b@h", "a@h")),
        AdmissionAnswer("'b@h' has no cluster yet", blank=BlankNode("b@h", "")),
        AdmissionAnswer("no majority"),
    ],
)
def test_an_answer_is_read_as_it_was_written(answer: AdmissionAnswer) -> None:
    assert read(answer) == answer


def test_a_refusal_is_one_line_of_a_log() -> None:
    text = read(AdmissionAnswer("no\nmajority" + "!" * CLUSTER_REFUSAL_SIZE_MAX)).refusal
    assert text.startswith("no?majority!")
    assert len(text) == CLUSTER_REFUSAL_SIZE_MAX


@pytest.mark.parametrize(
    "blank",
    [
        BlankNode("", "a"),
        BlankNode("a\nb", "a"),
        BlankNode("a", "a\nb"),
        BlankNode("a" * (CLUSTER_NODE_NAME_SIZE_MAX + 1), ""),
        BlankNode("a", "a" * (CLUSTER_NODE_NAME_SIZE_MAX + 1)),
    ],
)
def test_a_name_that_no_node_has_is_refused(blank: BlankNode) -> None:
    with pytest.raises(PayloadError, match="a name that no node has"):
        read(AdmissionAnswer("no", blank=blank))


def test_another_payload_is_refused() -> None:
    with pytest.raises(PayloadError, match="unknown kind 9"):
        read_answer(9, b"")
    with pytest.raises(PayloadError, match="unknown answer"):
        read_answer(AdmissionPayload.ANSWER, b"\xc1")

"""The handshake: who knows the cookie and is expected is accepted, and nobody else."""

from collections.abc import Callable

import pytest

from warren.cluster.hello import NO_CLUSTER, NO_NODE, NONCE_SIZE, Hello, LinkPurpose, LocalNode
from warren.cluster.link_frames import LinkFrame, LinkFrameError, LinkFrameKind, LinkFrameReader
from warren.cluster.link_handshake import (
    LinkHandshake,
    LinkRefusal,
    RefusalCode,
    decode_refusal,
    derive_key,
)
from warren.limits_cluster import CLUSTER_REFUSAL_SIZE_MAX

KEY = derive_key(b"the cookie")
CLUSTER = b"c" * 16
ONE = LocalNode(cluster_id=CLUSTER, node_id=1, name="one", incarnation=5, feature_level=1)
TWO = LocalNode(cluster_id=CLUSTER, node_id=2, name="two", incarnation=6, feature_level=1)
BLANK = LocalNode(cluster_id=NO_CLUSTER, node_id=NO_NODE, name="new", incarnation=1, feature_level=1)


def accept_all(_: Hello) -> None:
    """Expect any peer."""


def dialer(
    node: LocalNode = ONE, *, key: bytes = KEY, purpose: LinkPurpose = LinkPurpose.DATA,
    check: Callable[[Hello], None] = accept_all, nonce: bytes = b"d" * NONCE_SIZE,
) -> LinkHandshake:  # fmt: skip
    return LinkHandshake(node, key, nonce, check, dialed=purpose)


def listener(
    node: LocalNode = TWO, *, key: bytes = KEY, check: Callable[[Hello], None] = accept_all,
    nonce: bytes = b"l" * NONCE_SIZE,
) -> LinkHandshake:  # fmt: skip
    return LinkHandshake(node, key, nonce, check)


def frames(sent: list[bytes]) -> list[LinkFrame]:
    return list(LinkFrameReader().cut(b"".join(sent)))


def exchange(one: LinkHandshake, other: LinkHandshake) -> None:
    """Let both ends handle what the other sends until neither sends more."""
    waiting = [(other, frame) for frame in frames(one.start())]
    while waiting:
        end, frame = waiting.pop(0)
        answer = one if end is other else other
        waiting += [(answer, found) for found in frames(end.receive(frame))]


def refusal(one: LinkHandshake, other: LinkHandshake) -> RefusalCode:
    with pytest.raises(LinkRefusal) as refused:
        exchange(one, other)
    return refused.value.code


def test_two_members_accept_each_other() -> None:
    one, two = dialer(), listener()
    assert two.purpose is None
    exchange(one, two)
    assert one.is_proven
    assert two.is_proven
    assert (one.peer, two.peer) == (
        TWO.hello(LinkPurpose.DATA, b"l" * NONCE_SIZE), ONE.hello(LinkPurpose.DATA, b"d" * NONCE_SIZE),
    )  # fmt: skip
    assert one.version == two.version == 1
    assert two.purpose is LinkPurpose.DATA


def test_the_dialer_proves_itself_first() -> None:
    two = listener()
    sent = frames(two.receive(frames(dialer().start())[0]))
    assert [frame.kind for frame in sent] == [LinkFrameKind.HELLO]


def test_the_key_is_derived_as_in_rfc_5869() -> None:
    # The first 32 bytes of test case 3.
    assert derive_key(b"\x0b" * 22, b"").hex() == (
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    )


def test_another_cookie_is_refused_by_the_listener() -> None:
    assert refusal(dialer(key=derive_key(b"another")), listener()) is RefusalCode.COOKIE


def test_a_listener_without_the_cookie_is_refused_by_the_dialer() -> None:
    one, impostor = dialer(), listener()
    proof = one.receive(frames(impostor.receive(frames(one.start())[0]))[0])
    answer = frames(impostor.receive(frames(proof)[0]))[0]
    with pytest.raises(LinkRefusal) as refused:
        one.receive(LinkFrame(answer.kind, answer.body[:-1] + b"?"))
    assert refused.value.code is RefusalCode.COOKIE
    assert not one.is_proven


def test_a_recorded_handshake_is_of_no_use_on_another_connection() -> None:
    one, two = dialer(), listener()
    hello = frames(one.start())[0]
    proof = frames(one.receive(frames(two.receive(hello))[0]))[0]
    later = listener(nonce=b"L" * NONCE_SIZE)
    later.receive(hello)
    with pytest.raises(LinkRefusal) as refused:
        later.receive(proof)
    assert refused.value.code is RefusalCode.COOKIE


def test_a_proof_of_one_role_is_none_of_the_other() -> None:
    one = dialer()
    (hello,) = frames(one.start())
    # Somebody without the cookie sends back what it is sent.
    (proof,) = frames(one.receive(LinkFrame(hello.kind, TWO.hello(LinkPurpose.DATA, bytes(32)).encode())))
    with pytest.raises(LinkRefusal) as refused:
        one.receive(proof)
    assert refused.value.code is RefusalCode.COOKIE


def test_a_node_that_is_led_to_itself_is_refused() -> None:
    assert refusal(dialer(), listener(ONE)) is RefusalCode.ITSELF


def test_a_node_of_another_cluster_is_refused() -> None:
    other = LocalNode(cluster_id=b"o" * 16, node_id=2, name="two", incarnation=6, feature_level=1)
    assert refusal(dialer(), listener(other)) is RefusalCode.CLUSTER


def test_a_node_without_a_cluster_may_join_and_nothing_else() -> None:
    assert refusal(dialer(BLANK), listener()) is RefusalCode.CLUSTER
    assert refusal(dialer(BLANK), listener(LocalNode(
        cluster_id=NO_CLUSTER, node_id=NO_NODE, name="two", incarnation=6, feature_level=1
    ))) is RefusalCode.CLUSTER  # fmt: skip
    exchange(dialer(BLANK, purpose=LinkPurpose.JOIN), listener())
    assert refusal(dialer(ONE, purpose=LinkPurpose.JOIN), listener()) is RefusalCode.PURPOSE


def test_two_nodes_of_one_number_are_refused() -> None:
    same = LocalNode(cluster_id=CLUSTER, node_id=1, name="two", incarnation=6, feature_level=1)
    assert refusal(dialer(), listener(same)) is RefusalCode.NODE


def test_a_listener_with_another_purpose_is_refused() -> None:
    one = dialer()
    with pytest.raises(LinkRefusal) as refused:
        one.receive(LinkFrame(LinkFrameKind.HELLO, TWO.hello(LinkPurpose.BULK, bytes(32)).encode()))
    assert refused.value.code is RefusalCode.PURPOSE


def test_nodes_without_a_common_version_refuse_each_other_before_the_proof() -> None:
    later = Hello(
        version_min=2, version_max=3, feature_level=1, cluster_id=CLUSTER, node_id=1, name="one",
        incarnation=1, purpose=LinkPurpose.DATA, nonce=bytes(32),
    )  # fmt: skip
    two = listener()
    with pytest.raises(LinkRefusal, match="speaks versions 1 to 1, 'one' 2 to 3") as refused:
        two.receive(LinkFrame(LinkFrameKind.HELLO, later.encode()))
    assert refused.value.code is RefusalCode.VERSION
    assert not two.is_proven


def test_the_check_is_asked_about_peers_that_have_proved_themselves_only() -> None:
    asked: list[str] = []

    def check(hello: Hello) -> None:
        asked.append(hello.name)
        raise LinkRefusal(RefusalCode.NODE, "not expected")

    assert refusal(dialer(key=derive_key(b"another")), listener(check=check)) is RefusalCode.COOKIE
    assert asked == []
    assert refusal(dialer(), listener(check=check)) is RefusalCode.NODE
    assert refusal(dialer(check=check), listener()) is RefusalCode.NODE
    assert asked == ["one", "two"]


@pytest.mark.parametrize("kind", [LinkFrameKind.PROOF, LinkFrameKind.PING, LinkFrameKind.BEGIN])
def test_a_frame_that_is_not_the_next_one_is_refused(kind: LinkFrameKind) -> None:
    with pytest.raises(LinkFrameError, match=f"a {kind.name} in the handshake"):
        listener().receive(LinkFrame(kind, b""))


def test_a_second_hello_is_refused() -> None:
    two = listener()
    hello = frames(dialer().start())[0]
    two.receive(hello)
    with pytest.raises(LinkFrameError, match="a HELLO in the handshake"):
        two.receive(hello)


def test_a_refusal_tells_the_reason_only_to_a_peer_that_has_proved_itself() -> None:
    refused = LinkRefusal(RefusalCode.NODE, "node 3 is expected")
    told, hidden = (
        decode_refusal(frames([refused.encode(is_proven=is_proven)])[0].body) for is_proven in (True, False)
    )
    assert (told.code, told.text) == (RefusalCode.NODE, "node 3 is expected")
    assert (hidden.code, hidden.text) == (RefusalCode.NODE, "refused")


def test_a_received_refusal_is_bounded_and_fit_for_a_log() -> None:
    long = LinkRefusal(RefusalCode.BUSY, "é" * CLUSTER_REFUSAL_SIZE_MAX).encode(is_proven=True)
    assert len(decode_refusal(frames([long])[0].body).text) <= CLUSTER_REFUSAL_SIZE_MAX
    assert decode_refusal(b"\xfea\nb\xff").text == "a?b\N{REPLACEMENT CHARACTER}"
    assert decode_refusal(b"\xfe").code is RefusalCode.OTHER
    for body in (b"", bytes(CLUSTER_REFUSAL_SIZE_MAX + 2)):
        with pytest.raises(LinkFrameError, match="wrong size"):
            decode_refusal(body)

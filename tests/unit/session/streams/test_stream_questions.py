"""Questions about streams, and their answers, are read as they were written, and never from anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.session.streams.stream_questions import (
    QuestionKind,
    StreamAnswer,
    StreamQuestion,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
)
from warren.wire.streams.codes import ResponseCode

U64 = st.integers(0, (1 << 64) - 1)
NAMES = st.binary(max_size=20).map(lambda data: data.decode("utf-8", "surrogateescape"))
QUESTIONS = st.builds(
    StreamQuestion, kind=st.sampled_from(QuestionKind), vhost=NAMES, stream=NAMES, reference=NAMES, offset=U64
)
ANSWERS = st.builds(StreamAnswer, st.sampled_from(ResponseCode), st.lists(U64, max_size=4).map(tuple))


@given(QUESTIONS, ANSWERS)
def test_what_was_encoded_is_decoded(question: StreamQuestion, answer: StreamAnswer) -> None:
    assert decode_question(encode_question(question)) == question
    assert decode_answer(encode_answer(answer)) == answer


@given(st.binary(max_size=60))
def test_other_bytes_are_malformed(data: bytes) -> None:
    for decode, encode in ((decode_question, encode_question), (decode_answer, encode_answer)):
        try:
            found = decode(data)
        except ValueError:
            continue
        assert encode(found) == data  # type: ignore[operator]


def test_a_part_of_a_question_is_malformed() -> None:
    data = encode_question(StreamQuestion(kind=QuestionKind.OFFSET, vhost="v", stream="s", reference="r"))
    for size in range(len(data)):
        with pytest.raises(ValueError, match="malformed"):
            decode_question(data[:size])

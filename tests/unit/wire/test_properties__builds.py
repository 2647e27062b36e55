"""The compiled codec agrees with the interpreted one, and refuses with the same texts."""

import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warren.wire.properties as compiled_properties
import warren.wire.table as compiled_table
from warren.errors import AmqpError

SOURCES = Path(__file__).resolve().parents[3] / "src" / "warren" / "wire"

pytestmark = pytest.mark.skipif(
    str(compiled_table.__file__).endswith(".py"), reason="the codec is not compiled here"
)


def load(name: str) -> ModuleType:
    """The module loaded from its source, whatever is installed."""
    spec = spec_from_file_location(f"interpreted_{name}", SOURCES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Interpreted:
    """Both modules loaded from source, one of which uses the other."""

    def __init__(self) -> None:
        self.table = load("table")
        sys.modules["warren.wire.table"] = self.table
        try:
            self.properties = load("properties")
        finally:
            sys.modules["warren.wire.table"] = compiled_table


@pytest.fixture(scope="module")
def interpreted() -> Iterator[Interpreted]:
    return Interpreted()


def outcome(call: Callable[..., object], *arguments: object) -> object:
    """The result in a form in which two builds can be compared."""
    try:
        return plain(call(*arguments))
    except AmqpError as error:
        return type(error), error.message


def plain(value: object) -> object:
    if isinstance(value, dict):
        return [(key, plain(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return type(value).__name__, repr(value)


def scanned(module: ModuleType, header: bytes) -> list[int]:
    scan = module.PropertyScan()
    scan.scan(header, 12, len(header))
    numbers = [scan.delivery_mode, scan.priority, scan.headers_at, scan.headers_end]
    return [*numbers, scan.reply_to_at, scan.expiration_at, scan.user_id_at]


# Bytes that are meaningful in a table, more often than at random.
TABLE_BYTES = st.lists(
    st.one_of(
        st.sampled_from([b"\0\0\0\0", b"\0\0\0\1", b"\0\0\0\5", b"\0\0\0\x0b", b"\1a", b"\2bc", b"\0"]),
        st.sampled_from(b"tbBsuIilLfdDSATFVxz").map(lambda octet: bytes((octet,))),
        st.binary(max_size=9),
    ),
    max_size=12,
).map(b"".join)


@given(data=TABLE_BYTES)
def test_tables_are_decoded_alike(interpreted: Interpreted, data: bytes) -> None:
    end = len(data)
    ours = outcome(compiled_table.decode_table, data, 0, end)
    assert ours == outcome(interpreted.table.decode_table, data, 0, end)
    checked = outcome(compiled_table.check_table, data, 0, end)
    assert checked == outcome(interpreted.table.check_table, data, 0, end)
    try:
        values = compiled_table.decode_table(data, 0, end)
    except AmqpError:
        return
    again = interpreted.table.decode_table(data, 0, end)
    assert compiled_table.encode_table(values) == interpreted.table.encode_table(again)


@given(flags=st.integers(0, 0xFFFF).map(lambda flags: flags.to_bytes(2, "big")), data=TABLE_BYTES)
def test_headers_are_decoded_alike(interpreted: Interpreted, flags: bytes, data: bytes) -> None:
    header = b"\0\x3c" + bytes(10) + flags + data
    ours, theirs = compiled_properties, interpreted.properties
    assert outcome(scanned, ours, header) == outcome(scanned, theirs, header)
    assert outcome(ours.BasicProperties.decode, header) == outcome(theirs.BasicProperties.decode, header)


@given(size=st.integers(0, 20), flags=st.sampled_from([0x8000, 0x2000, 0x1000, 0x0040, 0xFFFC]))
def test_truncated_headers_are_refused_alike(interpreted: Interpreted, size: int, flags: int) -> None:
    header = (b"\0\x3c" + bytes(10) + flags.to_bytes(2, "big") + bytes(6))[:size]
    assert outcome(scanned, compiled_properties, header) == outcome(scanned, interpreted.properties, header)

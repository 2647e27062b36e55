"""The possible files of a broker after a power cut, rebuilt from the recorded calls."""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
_HEAD = struct.Struct("=cQII")
_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call: see recorder.c."""

    kind: str
    at: int
    first: bytes
    second: bytes


def calls(log: Path) -> Iterator[Call]:
    """The recorded calls, in order; the last record may be truncated."""
    data = log.read_bytes()
    at = 0
    while at + _HEAD.size <= len(data):
        kind, where, first, second = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield Call(kind.decode(), where, data[at : at + first], data[at + first : at + first + second])
        at += first + second


class File:
    """The synced contents of a file, and its unsynced writes; None instead of bytes is a truncation."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.unsynced: list[tuple[int, bytes | None]] = []

    def sync(self) -> None:
        for at, data in self.unsynced:
            _apply(self.synced, at, data)
        self.unsynced.clear()

    def after_a_power_cut(self, chance: random.Random) -> bytearray:
        """An arbitrary subset of the unsynced sectors is applied, some in part."""
        state = bytearray(self.synced)
        share = chance.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        for at, data in self.unsynced:
            for begin, piece in _pieces(at, data, len(state)):
                if chance.random() >= share:
                    continue
                if piece and chance.random() < 0.02:
                    piece = piece[: chance.randrange(len(piece) + 1)]
                _apply(state, begin, piece)
        return state


class Folder:
    """The synced state of a directory, and its changes since, in order."""

    def __init__(self) -> None:
        self.synced: dict[str, Folder | File] = {}
        self.now: dict[str, Folder | File] = {}
        self.changes: list[Callable[[dict[str, Folder | File]], object]] = []

    def make(self, name: str, entry: "Folder | File") -> None:
        self.change(lambda names: names.setdefault(name, entry))

    def change(self, change: "Callable[[dict[str, Folder | File]], object]") -> None:
        change(self.now)
        self.changes.append(change)

    def sync(self) -> None:
        self.synced = dict(self.now)
        self.changes.clear()

    def build(self, path: Path, chance: random.Random) -> None:
        """Build at `path` a possible state of it after a power cut."""
        path.mkdir()
        names = dict(self.synced)
        for change in self.changes[: chance.randrange(len(self.changes) + 1)]:
            change(names)
        for name, entry in names.items():
            if isinstance(entry, Folder):
                entry.build(path / name, chance)
            else:
                _write(path / name, entry.after_a_power_cut(chance))


@dataclass
class Files:
    """Everything below one directory, which itself is synced."""

    root: str
    # Kinds of sync to ignore, in order to see whether their absence is noticed: "file", "directory".
    forgotten: frozenset[str] = frozenset()
    top: Folder = field(default_factory=Folder)

    def take(self, call: Call) -> None:
        """Apply one call; calls that are not on files are skipped."""
        if call.kind not in "CWTYRUM":
            return
        path = call.first.decode()
        match call.kind:
            case "M":
                folder, name = self._place(path)
                folder.make(name, Folder())
            case "C":
                folder, name = self._place(path)
                if name not in folder.now:
                    folder.make(name, File())
                elif call.at:
                    self._file(path).unsynced.append((0, None))
            case "W":
                self._file(path).unsynced.append((call.at, call.second))
            case "T":
                self._file(path).unsynced.append((call.at, None))
            case "Y":
                entry = self._entry(path)
                if ("directory" if isinstance(entry, Folder) else "file") not in self.forgotten:
                    entry.sync()
            case "U":
                folder, name = self._place(path)
                folder.change(lambda names: names.pop(name, None))
            case "R":
                folder, name = self._place(path)
                new = self._place(call.second.decode())[1]
                folder.change(lambda names: _rename(names, name, new))

    def _entry(self, path: str) -> Folder | File:
        found: Folder | File = self.top
        for name in path.removeprefix(self.root).strip("/").split("/"):
            if name:
                assert isinstance(found, Folder)
                found = found.now[name]
        return found

    def _file(self, path: str) -> File:
        found = self._entry(path)
        assert isinstance(found, File)
        return found

    def _place(self, path: str) -> tuple[Folder, str]:
        folder, _, name = path.rpartition("/")
        found = self._entry(folder)
        assert isinstance(found, Folder)
        return found, name


def _pieces(at: int, data: bytes | None, size: int) -> Iterator[tuple[int, bytes | None]]:
    """The parts of a write that reach the disk independently."""
    if data is None or (at >= size and _is_zero(data)):
        # Zeros beyond the end extend a file, and have no other effect.
        yield at, data
        return
    begin = 0
    while begin < len(data):
        behind = min(len(data), begin + SECTOR - (at + begin) % SECTOR)
        yield at + begin, data[begin:behind]
        begin = behind


def _is_zero(data: bytes | bytearray) -> bool:
    return data == bytes(len(data))


def _apply(state: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del state[at:]
        return
    if at > len(state):
        state.extend(bytes(at - len(state)))
    state[at : at + len(data)] = data


def _rename(names: dict[str, Folder | File], old: str, new: str) -> None:
    if old in names:
        names[new] = names.pop(old)


def _write(path: Path, data: bytearray) -> None:
    """Only bytes other than zero take space."""
    with path.open("wb") as file:
        file.truncate(len(data))
        for at in range(0, len(data), _BLOCK):
            block = data[at : at + _BLOCK]
            if not _is_zero(block):
                file.seek(at)
                file.write(block)

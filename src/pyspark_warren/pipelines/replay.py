"""Publishes selected messages of a lake again, each exactly once and in order of receipt.

A replay first writes a plan: the file and row of each message, numbered in order of receipt. When the replay
is run again under its name, it publishes the same batches, even if the lake has new messages. The executors
stage a batch, and the driver commits it under the name of the replay and the number of the batch, which the
broker accepts once. So a replay can be killed at any time.

    _warren/replays/<name>/rows       _id, _file, _row, …: Parquet
    _warren/replays/<name>/plan.json  the selection, the target, and the number of published batches
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark_warren.options import BrokerOptions, milliseconds, write_options
from pyspark_warren.pipelines.lake_factory import existing_lake
from pyspark_warren.pipelines.lake_scan import (
    FILE,
    ROW,
    LakeSelection,
    filter_messages,
    prune_files,
    read_messages,
)
from pyspark_warren.pipelines.lakes import (
    Lake,
    LakeSnapshot,
    attempt_folder,
    discard,
    lake_folder,
    own_folder,
    sync,
    sync_below,
)
from pyspark_warren.schema import WRITABLE
from warren.client.uri import DEFAULT_URI

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 200_000
# Bytes of the bodies in a batch, well below the limit of a stage at the broker.
BATCH_BYTES = 256 * 1_048_576
# With a rate, a batch has the messages of at most this many seconds.
BURST_S = 10
SAMPLES = 5
VERSION = 1
USER_IDS = ("check", "keep", "drop")
_ID = "_id"
_BYTES = "_octets"
_TAKEN = "_taken"
_FOREIGN = "_foreign"
_INDEX = (
    f"{FILE} string, {ROW} bigint, queue string, offset bigint, exchange string, {_TAKEN} timestamp, "
    f"{_BYTES} int, {_FOREIGN} boolean, {_ID} bigint"
)
# monotonically_increasing_id() has the number of the partition above this bit.
_PARTITION_SHIFT = 33


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """The result of a replay, or of a dry run."""

    name: str
    rows: int
    bytes: int
    # Number of messages for each exchange.
    exchanges: dict[str, int]
    # Times of receipt of the first and the last message, ISO 8601.
    first: str | None
    last: str | None
    batches: int
    # Number of messages published by this run, and by earlier runs.
    sent: int
    sent_before: int
    samples: list[dict[str, Any]]

    @property
    def octets(self) -> int:
        """Deprecated: use `bytes`."""
        return self.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayProgress:
    """The progress of a replay: a batch was published."""

    batch: int
    batches: int
    rows: int
    seconds: float


ReplayListener = Callable[[ReplayProgress], None]


def replay(
    spark: "SparkSession",
    table: str | os.PathLike[str],
    *,
    name: str,
    exchange: str | None = None,
    routing_key: str | None = None,
    where: str | None = None,
    since: str | None = None,
    until: str | None = None,
    queues: Sequence[str] = (),
    message_ids: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    uri: str = DEFAULT_URI,
    management_uri: str | None = None,
    rate: float | None = None,
    batch_rows: int = BATCH_ROWS,
    user_ids: str = USER_IDS[0],
    dry_run: bool = False,
    samples: int = SAMPLES,
    options: Mapping[str, str] | None = None,
    checkpoint: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: ReplayListener | None = None,
) -> ReplayResult:
    """Publish the selected messages of the lake `table`, and return when all are confirmed.

    With `dry_run`, only count and sample them. `exchange` and `routing_key` replace those of each message.
    `rate` is the maximum number of messages per second. The broker accepts the property user_id only from
    that user: `user_ids` is `check` to refuse others before anything is published, `keep` to publish it
    anyway, or `drop` to remove it. The plan is in the lake, or in the folder `checkpoint`, which a lake in an
    object store needs. Raises ValueError for invalid arguments, and if `name` was used with others.
    """
    given = {"uri": uri} | ({"managementUri": management_uri} if management_uri else {}) | dict(options or {})
    address = {"exchange": exchange, "routingKey": routing_key}
    given |= {option: value for option, value in address.items() if value is not None}
    broker = write_options(given).broker
    if user_ids not in USER_IDS:
        raise ValueError(f"user_ids must be {', '.join(USER_IDS[:-1])} or {USER_IDS[-1]}, not {user_ids!r}")
    selection = LakeSelection(
        where=where,
        since=None if since is None else _time("since", since),
        until=None if until is None else _time("until", until),
        queues=tuple(queues),
        message_ids=tuple(message_ids),
        headers=dict(headers or {}),
    )
    size = _batch_size(batch_rows, rate)
    lake = existing_lake(table, storage_options)
    if dry_run:
        return _preview(
            spark, lake, selection, broker, name=name, exchange=exchange, size=size, samples=samples
        )
    if not name:
        raise ValueError("a replay needs a name, by which a later run continues it")
    sent = {"selection": selection.told(), "address": address, "to": _place(broker)}
    folder = lake_folder(checkpoint) if checkpoint else own_folder(lake, "replays", name)
    plan = _ReplayPlan(spark, lake, name=name, folder=folder, sent=sent)
    plan.open(selection, broker, exchange, size=size, user_ids=user_ids)
    return plan.send(given, user_ids, rate, progress)


class _ReplayPlan:
    """The plan of a replay and its progress, stored in a folder."""

    def __init__(
        self, spark: "SparkSession", lake: Lake, *, name: str, folder: Path, sent: dict[str, Any]
    ) -> None:
        """`name` is that of the replay, and `folder` is where its plan is stored."""
        self._spark = spark
        self._lake = lake
        self._name = name
        self._folder = folder
        self._sent = sent
        self._file = self._folder / "plan.json"
        self._known: dict[str, Any] = {}

    def open(
        self,
        selection: LakeSelection,
        broker: BrokerOptions,
        exchange: str | None,
        *,
        size: int,
        user_ids: str,
    ) -> None:
        """Read the plan of an earlier run, or write a new one. Raises ValueError if the two differ."""
        if self._file.exists():
            self._known = json.loads(self._file.read_text())
            differing = [what for what, value in self._sent.items() if self._known[what] != value]
            if differing:
                what = differing[0]
                raise ValueError(
                    f"the replay {self._name!r} was started with another {what}: {self._known[what]} instead "
                    f"of {self._sent[what]}. Use another name for another replay"
                )
            return
        snapshot = self._lake.snapshot()
        folder = self._attempt()
        found = read_messages(self._spark, self._lake, prune_files(snapshot, selection))
        rows = _numbered(filter_messages(found, selection), broker, exchange)
        rows.write.parquet(str(folder / "rows"))
        facts = _facts(self._spark.read.schema(_INDEX).parquet(str(folder / "rows")))
        if facts["foreign"] and user_ids == "check":
            discard(folder)
            raise ValueError(
                f"{facts['foreign']} of the messages have a user_id other than {broker.target.user!r}, which "
                "the broker refuses: use user_ids='drop' to remove it, or 'keep' to publish it anyway"
            )
        size = min(size, max(1, BATCH_BYTES * facts["rows"] // max(1, facts["bytes"])))
        self._known = self._sent | facts | {
            "v": VERSION, "id": uuid4().hex, "version": snapshot.version, "batches": snapshot.batches,
            "size": size, "done": 0,
        }  # fmt: skip
        self._note(folder / self._file.name)
        sync_below(folder)
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        os.rename(folder, self._folder)
        sync(self._folder.parent)

    def send(
        self, given: Mapping[str, str], user_ids: str, rate: float | None, progress: ReplayListener | None
    ) -> ReplayResult:
        """Publish the batches that are not recorded as published."""
        before = self._known["done"]
        snapshot = self._lake.snapshot(self._known["version"], self._known["batches"])
        rows = self._spark.read.schema(_INDEX).parquet(str(self._folder / "rows"))
        batches = list(_ranges(_counts(rows), self._known["size"]))
        for number, ranges in enumerate(batches):
            if number < before:
                continue
            begun = time.monotonic()
            count = sum(end - start for start, end in ranges)
            self._send(rows.where(_within(ranges)), number, snapshot, given=given, user_ids=user_ids)
            self._known["done"] = number + 1
            self._note(self._file)
            if progress is not None:
                seconds = round(time.monotonic() - begun, 3)
                progress(ReplayProgress(batch=number, batches=len(batches), rows=count, seconds=seconds))
            if rate is not None and number + 1 < len(batches):
                time.sleep(max(0.0, count / rate - (time.monotonic() - begun)))
        counts = [sum(end - start for start, end in ranges) for ranges in batches]
        return replace(
            _result(self._name, self._known, self._known["size"], []),
            sent=sum(counts[before:]), sent_before=sum(counts[:before]),
        )  # fmt: skip

    def _send(
        self,
        places: "DataFrame",
        number: int,
        snapshot: LakeSnapshot,
        *,
        given: Mapping[str, str],
        user_ids: str,
    ) -> None:
        """Publish one batch, as one transaction for each exchange."""
        from pyspark.sql.functions import broadcast, coalesce, lit

        # Another lake can have a replay of this name, and so can this one after the folder was removed.
        own = self._known["id"]
        found = places.select(FILE, "exchange").distinct().collect()
        rows = read_messages(self._spark, self._lake, snapshot, sorted({one[FILE] for one in found}))
        wanted = rows.join(broadcast(places.select(FILE, ROW, _ID)), [FILE, ROW]).orderBy(_ID)
        dropped = {"user_id"} if user_ids == "drop" else set()
        columns = sorted(WRITABLE - dropped - {"exchange"})
        for exchange in sorted({one["exchange"] for one in found}):
            chosen = (
                wanted if "exchange" in given else wanted.where(coalesce("exchange", lit("")) == exchange)
            )
            writer = chosen.select(*columns).write.format("warren").options(**given)
            writer = writer.option("exchange", exchange).option("txnId", f"{self._name}>{own}>{exchange}")
            writer.option("txnVersion", str(number)).mode("append").save()

    def _attempt(self) -> Path:
        """Return a folder for the plan until it is complete, on the same disk."""
        if self._lake.root is not None and self._lake.root in self._folder.parents:
            return attempt_folder(self._lake.root, "replay")
        return self._folder.with_name(f"{self._folder.name}.{uuid4().hex[:8]}.new")

    def _note(self, path: Path) -> None:
        """Write the plan atomically."""
        new = path.with_suffix(".new")
        new.write_text(json.dumps(self._known))
        sync(new)
        os.replace(new, path)
        sync(path.parent)


def _numbered(rows: "DataFrame", broker: BrokerOptions, exchange: str | None) -> "DataFrame":
    """Return file, row and facts of each message, numbered in order of receipt."""
    from pyspark.sql.functions import coalesce, col, expr, lit, monotonically_increasing_id

    target = coalesce(col("exchange"), lit("")) if exchange is None else lit(exchange)
    taken = expr("coalesce(broker_timestamp, timestamp)")
    user = broker.target.user
    places = rows.select(
        FILE, ROW, "queue", "offset", target.alias("exchange"), taken.alias(_TAKEN),
        expr("coalesce(length(body), 0)").alias(_BYTES),
        coalesce(col("user_id") != user, lit(False)).alias(_FOREIGN),
    )  # fmt: skip
    return places.orderBy(_TAKEN, "queue", "offset", FILE, ROW).withColumn(_ID, monotonically_increasing_id())


def _facts(rows: "DataFrame") -> dict[str, Any]:
    """Return the number and size of the messages, their times, and their exchanges."""
    from pyspark.sql.functions import expr

    found = rows.groupBy("exchange").agg(
        expr("count(*) as rows"), expr(f"sum({_BYTES}) as bytes"), expr(f"count_if({_FOREIGN}) as foreign"),
        expr(f"unix_micros(min({_TAKEN})) as first"), expr(f"unix_micros(max({_TAKEN})) as last"),
    ).collect()  # fmt: skip
    return {
        "rows": sum(one["rows"] for one in found),
        "bytes": sum(one["bytes"] for one in found),
        "foreign": sum(one["foreign"] for one in found),
        "exchanges": {one["exchange"]: one["rows"] for one in found},
        "first": min((one["first"] for one in found if one["first"] is not None), default=None),
        "last": max((one["last"] for one in found if one["last"] is not None), default=None),
    }


def _preview(
    spark: "SparkSession", lake: Lake, selection: LakeSelection, broker: BrokerOptions,
    *, name: str, exchange: str | None, size: int, samples: int,
) -> ReplayResult:  # fmt: skip
    """Return the result of a dry run, which reads only the lake."""
    rows = filter_messages(read_messages(spark, lake, prune_files(lake.snapshot(), selection)), selection)
    facts = _facts(_numbered(rows, broker, exchange))
    shown = [row.asDict() for row in rows.drop(FILE, ROW).limit(samples).collect()] if samples else []
    return _result(name, facts, size, shown)


def _result(name: str, facts: Mapping[str, Any], size: int, samples: list[dict[str, Any]]) -> ReplayResult:
    return ReplayResult(
        name=name,
        rows=facts["rows"],
        bytes=facts["bytes"],
        exchanges=facts["exchanges"],
        first=_iso(facts["first"]),
        last=_iso(facts["last"]),
        batches=-(-facts["rows"] // size),
        sent=0,
        sent_before=0,
        samples=samples,
    )


def _counts(rows: "DataFrame") -> list[tuple[int, int]]:
    """Return the number of rows in each partition of the plan; each is numbered from 0."""
    from pyspark.sql.functions import expr

    grouped = rows.groupBy(expr(f"shiftright({_ID}, {_PARTITION_SHIFT}) as part")).count().collect()
    return sorted((one["part"], one["count"]) for one in grouped)


def _ranges(counts: Sequence[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the ids of each batch of `size` rows, as ranges [start, end)."""
    batch: list[tuple[int, int]] = []
    room = size
    for part, count in counts:
        first = part << _PARTITION_SHIFT
        at, end = first, first + count
        while at < end:
            taken = min(room, end - at)
            batch.append((at, at + taken))
            at, room = at + taken, room - taken
            if not room:
                yield batch
                batch, room = [], size
    if batch:
        yield batch


def _within(ranges: Sequence[tuple[int, int]]) -> str:
    return " or ".join(f"({_ID} >= {start} and {_ID} < {end})" for start, end in ranges)


def _batch_size(rows: int, rate: float | None) -> int:
    if rows < 1:
        raise ValueError(f"batch_rows must be at least 1, not {rows}")
    if rate is None:
        return rows
    if not rate > 0:
        raise ValueError(f"rate must be a number of messages per second above 0, not {rate}")
    return max(1, min(rows, int(rate * BURST_S)))


def _place(broker: BrokerOptions) -> str:
    target = broker.target
    return f"{target.host}:{target.port}/{target.vhost}"


def _time(name: str, text: str) -> int:
    try:
        return milliseconds(text)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be a time as ISO 8601 or in milliseconds since 1970: {error}"
        ) from None


def _iso(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat(timespec="milliseconds")

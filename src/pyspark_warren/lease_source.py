"""The streaming source of `mode=lease`: reads a queue of Warren, exactly once with an idempotent sink.

A lease reserves messages of a queue and can be read any number of times, so a micro-batch that is repeated
after a crash has the same messages. The lease is settled when Spark asks for the offset after it, which Spark
does only after the micro-batch is committed. The key of a lease is derived from the previous lease, so a
request that is repeated after a crash returns the lease that was granted before.

Offsets: {"v": 1, "key": id of the query, "lease": id of the lease that ends here, "n": its messages}
"""

import contextlib
import threading
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark_warren.answers import LeaseAnswer, granted_lease, ready_messages
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.mode_detection import ReadStrategy
from pyspark_warren.offsets import VERSION, check_version
from pyspark_warren.options import ReadOptions
from pyspark_warren.partitions import LeasePartition, ReadPartition, split_range
from pyspark_warren.streams import DataLoss, lease_loss

# The largest lease that the broker grants.
MESSAGES_MAX = 500_000
BYTES_MAX = 134_217_728
# A lease is renewed this many times within its lifetime.
RENEWALS = 3
_UNKNOWN = 404
# The lease has expired or was requeued.
_GIVEN_BACK = (409, 410)
_ENDED = ("expired", "requeued")


class LeaseSource:
    """Requests, renews and settles leases; runs on the driver."""

    def __init__(self, options: ReadOptions, strategy: ReadStrategy) -> None:
        self._options = options
        self._management = HttpApi(options.broker)
        self._queue = strategy.queues[0]
        self._vhost = options.broker.target.vhost
        self._left: int | None = None
        self._settled = ""
        self._renewal: _LeaseRenewal | None = None

    def initial_offset(self) -> dict[str, Any]:
        """Return the offset before the first lease, with a new id of the query."""
        return _written(str(uuid.uuid4()), "", 0)

    def latest_offset(
        self, start: Mapping[str, Any], offsets_max: int | None, bytes_max: int | None
    ) -> dict[str, Any]:
        """Return the offset after the next lease, and settle the lease of `start`."""
        key, lease, _ = _read(start)
        self.commit(start)
        count = min(
            offsets_max or MESSAGES_MAX, MESSAGES_MAX, MESSAGES_MAX if self._left is None else self._left
        )
        if not count:
            return dict(start)
        given = self._request_lease(f"{key}:{lease}", count, bytes_max)
        while given.state in _ENDED:
            # The lease was granted before a crash and has ended since.
            if self._options.is_loss_fatal:
                raise lease_loss(self._queue)
            before, given = given, self._request_lease(f"{key}:{given.id}", count, bytes_max)
            if given.id == before.id:
                raise HttpApiError(
                    f"the broker gave the {given.state} lease {given.id!r} for another key", -1
                )
        if not given.messages:
            self._left = None if self._left is None else 0
            return dict(start)
        if given.state == "settled":
            raise DataLoss(
                f"the next messages of the queue {self._queue!r} were already read and settled by this "
                "query: the checkpoint is older than that. Use a new checkpoint"
            )
        if self._left is not None:
            self._left = max(0, self._left - given.messages)
        self._hold(given.id)
        return _written(key, given.id, given.messages)

    def _request_lease(self, key: str, count: int, bytes_max: int | None) -> LeaseAnswer:
        """Request the lease with `key`; the broker returns an existing one or grants a new one."""
        return self._management.post(
            path("warren", "queues", self._vhost, self._queue, "leases"),
            {
                "key": key,
                "messages": count,
                "max_bytes": min(bytes_max or BYTES_MAX, BYTES_MAX),
                "ttl": self._options.lease_s,
            },
            granted_lease,
        )

    def commit(self, end: Mapping[str, Any]) -> None:
        """Settle the lease that ends at `end`. Raises DataLoss if it has expired and that is fatal."""
        _, lease, _ = _read(end)
        if not lease or lease == self._settled:
            return
        self._release()
        try:
            self._management.post(path("warren", "leases", lease, "settle"), {})
        except HttpApiError as refused:
            if refused.status in _GIVEN_BACK:
                if self._options.is_loss_fatal:
                    raise lease_loss(self._queue) from None
            # The broker forgets leases some time after they were settled.
            elif refused.status != _UNKNOWN:
                raise
        self._settled = lease

    def prepare_available_now(self) -> None:
        """Limit the run to about the current number of messages, leased ones included (AvailableNow)."""
        place = path("queues", self._vhost, self._queue)
        self._left = self._management.get(place, {"columns": "messages"}, ready_messages)

    def committed(self) -> dict[str, Any] | None:
        """Return None: the messages of a queue are not counted by offsets."""
        return None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadPartition]:
        """Return the partitions of the lease of a micro-batch."""
        before, (_, lease, count) = _read(start), _read(end)
        if before[1] == lease:
            return []
        if self._renewal is None:
            self._hold(lease)
        return [
            LeasePartition(lease, low, high, self._queue)
            for low, high in split_range(0, count, self._options.partitions_min)
        ]

    def stop(self) -> None:
        """Stop renewing the lease; the query can be restarted until it expires."""
        self._release()

    def _hold(self, lease: str) -> None:
        self._release()
        self._renewal = _LeaseRenewal(self._management, lease, self._options.lease_s)

    def _release(self) -> None:
        if self._renewal is not None:
            self._renewal.stop()
            self._renewal = None


class _LeaseRenewal:
    """Renews a lease in a thread until it is stopped."""

    def __init__(self, management: HttpApi, lease: str, seconds: int) -> None:
        self._management = management
        self._place = path("warren", "leases", lease, "renew")
        self._seconds = seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="warren-lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing."""
        self._is_over.set()

    def _renew(self) -> None:
        while not self._is_over.wait(self._seconds / RENEWALS):
            # The task that reads the lease raises the error.
            with contextlib.suppress(HttpApiError):
                self._management.post(self._place, {"ttl": self._seconds})


def _written(key: str, lease: str, count: int) -> dict[str, Any]:
    return {"v": VERSION, "key": key, "lease": lease, "n": count}


def _read(offset: Mapping[str, Any]) -> tuple[str, str, int]:
    check_version(offset)
    try:
        return offset["key"], offset["lease"], offset["n"]
    except KeyError:
        raise ValueError(
            "the checkpoint is of another read mode: use a new checkpoint, or the former `mode`"
        ) from None

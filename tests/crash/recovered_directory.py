"""What the broker's own recovery finds in a data directory."""

import asyncio
import random
from contextlib import closing
from pathlib import Path

from tests.sim.recovered import messages_in

from warren.journal.recovery import recover
from warren.metadata.machine import Metadata
from warren.queues.quorum.batch_codec import decode
from warren.runtime.disk import DirectoryDisk
from warren.runtime.worker_thread import WorkerThread
from warren.store.group_log import GroupLog
from warren.store.message_store import MessageStore
from warren.store.recovery import RecoveryDependencies, open_store
from warren.store.store_port import StorePort


class DamageError(Exception):
    """A part of the directory cannot be read."""


class Reading(StorePort):
    """The port of a store that is read, and in which nothing is written."""

    def commit_due(self) -> None:
        """Nothing to do: what recovery releases stays in this copy."""


def bodies_in(data: Path) -> dict[str, list[bytes]]:
    """The bodies of all messages in the queues of the virtual host `/`, in order; may change the files.

    Raises DamageError, or an error of the journal or the store.
    """
    loop = asyncio.new_event_loop()
    with closing(loop), closing(WorkerThread("disk")) as worker:
        metadata = Metadata()
        if (data / "metadata").exists():
            with closing(DirectoryDisk(data / "metadata", loop, worker)) as disk:
                log = recover(disk, metadata)
            if log.damage or log.loss:
                raise DamageError(f"damage: {(log.damage or [log.loss])[0]}")
        vhost = metadata.vhost("/")
        queues = vhost.topology.queues if vhost else {}
        numbers = {queue.number: name for name, queue in queues.items()}
        dependencies = RecoveryDependencies(
            random_bytes=random.randbytes, has_queue=numbers.__contains__, progress=lambda *_: None
        )
        found: dict[str, list[bytes]] = {name: [] for name in queues}
        for path in (data / "vhosts").glob("*"):
            with closing(DirectoryDisk(path, loop, worker)) as disk:
                recovered = open_store(disk, Reading(), dependencies)
                if recovered.damage:
                    raise DamageError(f"damage: {recovered.damage[0]}")
                for number in recovered.queues:
                    settled = settled_by_entries(recovered.store, number)
                    found[numbers[number]] += [
                        message.body
                        for position, message in messages_in(recovered, number)
                        if position not in settled
                    ]
    return found


def settled_by_entries(store: MessageStore, number: int) -> set[int]:
    """The positions in `store` of messages that the log of a quorum queue has settled; none of other queues.

    Every entry of a group of one is committed; the store releases what an entry settles some time after it.
    """
    log = GroupLog.find(store, number)
    if log is None or log.last < log.first:
        return set()
    if log.untrusted:
        raise DamageError(log.untrusted)
    return {
        log.stored(run.level, position)
        for entry in log.entries(log.first, log.last, 1 << 40)
        for run in decode(entry.commands, entry.runs).settled
        for position in range(run.first, run.first + run.count)
    }

"""What the broker's own recovery finds in a data directory."""

import asyncio
import random
from contextlib import closing
from pathlib import Path

from tests.sim.recovered import messages_in

from warren.journal.recovery import recover
from warren.metadata.machine import Metadata
from warren.runtime.disk import DirectoryDisk
from warren.runtime.worker_thread import WorkerThread
from warren.store.recovery import RecoveryDependencies, open_store
from warren.store.store_port import StorePort


class DamageError(Exception):
    """A part of the directory cannot be read."""


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
                recovered = open_store(disk, StorePort(), dependencies)
                if recovered.damage:
                    raise DamageError(f"damage: {recovered.damage[0]}")
                for number in recovered.queues:
                    found[numbers[number]] += [message.body for _, message in messages_in(recovered, number)]
    return found

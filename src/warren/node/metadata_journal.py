"""The metadata of a node with a data directory: read at the start, journaled from then on."""

import asyncio
import logging
import shlex
from pathlib import Path

from warren.cluster.metadata_peers import MetadataPeers
from warren.journal.file_format import JournalError
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.log_reader import RecoveredLog
from warren.journal.message_codec import MessageCodec
from warren.journal.parameter_cipher import undecrypted_parameters
from warren.journal.recovery import doubt_numbers, find_older, recover
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.machine import Metadata
from warren.node.errors import BootRefused
from warren.node.node_identity import MembershipPhase
from warren.node.quarantine import Quarantine, finish_removals
from warren.node.store_reaches import forget_metadata, metadata_reached
from warren.node.vhost_folders import VHOSTS
from warren.runtime.clock import Clock
from warren.runtime.disk import DirectoryDisk
from warren.runtime.locked_directory import make_directory
from warren.runtime.randomness import random_bytes
from warren.runtime.secret_key import SecretKey, read_or_create_key
from warren.runtime.timers import PeriodicTimer
from warren.runtime.worker_thread import WorkerThread

logger = logging.getLogger("warren.journal")

_NAME = "metadata"
# The key with which secrets in the metadata are encrypted.
_KEY = "secret.key"
# What becomes of a member without its part of the log.
_REJOIN = (
    "forget this node on another member (warren cluster forget), start it with another data directory, and "
    "let it join again"
)
# Interval at which the journal checks whether to sync the high-water mark.
_MAINTENANCE_S = 1.0


class MetadataJournal:
    """The metadata in a directory, and the journal by which it changes."""

    def __init__(
        self,
        data: Path,
        clock: Clock,
        *,
        is_damage_skipped: bool,
        incarnation: Incarnation = FIRST_INCARNATION,
        membership: MembershipPhase | None = None,
    ) -> None:
        """Read the metadata; raises BootRefused if that is impossible, or data are missing."""
        self.data = data
        self._path = data / _NAME
        loop = self._loop = asyncio.get_running_loop()
        self._worker = WorkerThread(_NAME)
        self.metadata = Metadata()
        self.quarantine = Quarantine(data, self.metadata)
        try:
            make_directory(self._path)
            self._disk = DirectoryDisk(self._path, loop, self._worker)
            cipher = SecretKey(read_or_create_key(data / _KEY))
            found = recover(self._disk, self.metadata, cipher, node=incarnation.node)
            if found.loss is None and not found.damage:
                found.loss = find_older(found, metadata_reached(data))
            # True if others vote as well: what they agree on is not changed beside the log.
            others = {*found.configuration.members} - {incarnation.node}
            self.is_shared = membership is not None or bool(others)
            self._judge(found, is_damage_skipped=is_damage_skipped)
            self._begin(found, is_member=membership is MembershipPhase.JOINED)
            for parameter in undecrypted_parameters(self.metadata):
                logger.error(
                    "%s cannot be decrypted with %r, which is missing or another one: restore that file from "
                    "a backup and restart, or set the parameter again", parameter, str(data / _KEY),
                )  # fmt: skip
        except JournalError as error:
            raise BootRefused(self._refusal(error)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise BootRefused(f"cannot read the metadata in {str(self._path)!r}: {reason}") from error
        # The way to the other members of a cluster.
        self.peers = MetadataPeers(MessageCodec(cipher))
        self.journal = Journal(
            self.metadata,
            self._disk,
            JournalDependencies(
                now=clock.now,
                random_bytes=random_bytes,
                make_future=loop.create_future,
                report=self._report,
                cipher=cipher,
                incarnation=incarnation,
                others=self.peers,
                report_error=_report_error,
                is_joining=membership is MembershipPhase.JOINING,
            ),
            found,
        )
        self._maintenance = PeriodicTimer(loop, _MAINTENANCE_S, self.journal.maintain)

    def begin_journal(self) -> None:
        """Write the metadata into a new file; raises BootRefused if not even those that were read can be
        synced.
        """
        try:
            self.journal.begin()
        except OSError as error:
            reason = error.strerror or str(error)
            raise BootRefused(f"cannot write the metadata in {str(self._path)!r}: {reason}") from error

    async def close(self) -> None:
        """Write and sync everything, then close the journal."""
        self._maintenance.stop()
        ended = asyncio.get_running_loop().create_future()
        self.journal.close(lambda: ended.set_result(None))
        await ended
        self._worker.close()
        self._disk.close()

    def _judge(self, found: RecoveredLog, *, is_damage_skipped: bool) -> None:
        """Raise BootRefused if something is missing, unless an operator has permitted that."""
        loss = found.loss
        for error in [*found.damage, *([loss] if loss is not None else [])]:
            logger.error("metadata in %r: %s", str(self._path), error)
        is_meant = is_damage_skipped and (loss is None or loss.is_end)
        if self.is_shared and (found.damage or loss is not None):
            # It may have voted for, or acknowledged, what it does not know any more.
            fault = found.damage[0] if found.damage else loss
            raise BootRefused(f"metadata in {str(self._path)!r}: {fault}; nothing was changed: {_REJOIN}")
        if found.damage and not is_meant:
            more = f", and {len(found.damage) - 1} more" if found.damage[1:] else ""
            raise BootRefused(self._refusal(found.damage[0], more))
        if loss is not None and not is_meant:
            raise BootRefused(self._refusal(loss))

    def _begin(self, found: RecoveredLog, *, is_member: bool) -> None:
        """Begin the journal with what was read; raises OSError, and BootRefused if data are missing."""
        if is_member and not found.is_there:
            raise BootRefused(
                f"the metadata in {str(self._path)!r} are missing, and this member of a cluster does not "
                f"know any more what it has agreed on with others: {_REJOIN}"
            )
        vhosts = self.data / VHOSTS
        if not found.is_there and vhosts.exists() and any(vhosts.iterdir()):
            raise BootRefused(
                f"{str(vhosts)!r} contains messages, but there are no metadata that name their queues: "
                "restore the metadata directory from a backup, or show what can be recovered: "
                f"warren metadata recover {shlex.quote(str(self.data))}"
            )
        if found.damage or found.loss is not None:
            self.quarantine.keep_metadata(self._path)
            doubt_numbers(self.metadata, found)
            forget_metadata(self.data, self._loop, self._worker)
        finish_removals(self.data, self.metadata)

    def _refusal(self, error: JournalError, more: str = "") -> str:
        data = shlex.quote(str(self.data))
        return (
            f"metadata in {str(self._path)!r}: {error}{more}; nothing was changed: restore that directory "
            f"from a backup, or show what can be recovered: warren metadata recover {data}"
        )

    def _report(self, error: OSError | None) -> None:
        if error is None:
            logger.warning("the metadata can be written again")
        else:
            logger.critical(
                "cannot write the metadata: %s; durable objects cannot be changed until this succeeds",
                error.strerror or error,
            )


def _report_error(error: Exception) -> None:
    """Log what the command of another node has raised here."""
    logger.critical("internal error of a change of the metadata", exc_info=error)

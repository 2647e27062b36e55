"""Verifies the metadata of a simulated broker: against their log, and against what a crash has left."""

import json
from collections.abc import Sequence

from warren.journal.recovery import recover
from warren.metadata.commands import MetadataCommand
from warren.metadata.definitions import definition_sections
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.simulation.machine import SimulatedMachine
from warren.simulation.simulated_node import METADATA
from warren.simulation.violation import Violation


class MetadataCheck:
    """What the metadata have to be, at rest and after each start."""

    def __init__(self, machine: SimulatedMachine, definitions: Sequence[MetadataCommand]) -> None:
        self._machine = machine
        metadata = Metadata()
        proposals = LocalProposals(metadata, lambda: 0)
        for command in definitions:
            proposals.apply(command)
        self._defined = durable_part(metadata)

    def against_log(self) -> None:
        """Verify that the log, replayed, gives what the broker has, unless the last write has failed."""
        if self._machine.node.is_journal_failing:
            return
        replayed = Metadata()
        found = recover(self._machine.disk(METADATA), replayed)
        if found.damage or found.loss is not None:
            raise Violation(f"the log of the metadata is not complete: {found.damage or found.loss}")
        live, logged = durable_part(self._machine.node.metadata), durable_part(replayed)
        if live != logged:
            raise Violation(f"the metadata are not what their log says: {sorted(live ^ logged)[:3]}")

    def before_crash(self) -> set[str] | None:
        """What must be there after the start; None if a change is being written, or could not be."""
        node = self._machine.node
        if node.is_journal_failing or node.journal.is_in_doubt or self._machine.disk(METADATA).is_busy:
            return None
        return durable_part(node.metadata)

    def after_start(self, before: set[str] | None) -> None:
        """Verify that the broker has what it had `before` the crash, and the definitions."""
        if before is None:
            return
        after = durable_part(self._machine.node.metadata)
        if before - after:
            raise Violation(f"the metadata lack after a start: {sorted(before - after)[:3]}")
        if after - before - self._defined:
            raise Violation(f"the metadata have after a start: {sorted(after - before - self._defined)[:3]}")


def durable_part(metadata: Metadata) -> set[str]:
    """Everything in the metadata that survives a restart, as text."""
    sections = {name: list(entries) for name, entries in definition_sections(metadata)}
    lost = {(entry["vhost"], entry["name"]) for entry in sections["queues"] if not entry["durable"]}
    for vhost in metadata.vhosts.by_name.values():
        # Exclusive queues are not among the sections, but their bindings are.
        lost |= {
            (vhost.name, record.name)
            for record in vhost.topology.queues.values()
            if not record.survives_restart
        }
    return {
        f"{name} {json.dumps(entry, sort_keys=True)}"
        for name, entries in sections.items()
        for entry in entries
        if entry.get("durable", True) and (entry.get("vhost"), entry.get("destination")) not in lost
    }

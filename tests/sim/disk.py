"""The simulated disk, with damage that only tests do."""

from warren.simulation.disk import SECTOR as SECTOR
from warren.simulation.disk import File as File
from warren.simulation.disk import SimulatedDisk as HealthyDisk
from warren.store.disk import DeleteFile, SyncDirectory


class SimulatedDisk(HealthyDisk):
    """A simulated disk whose data can be damaged."""

    def forget_synced(self) -> None:
        """Forget how far the files of a store were synced, so that their ends count as possibly torn."""
        self.perform([DeleteFile("catalog"), SyncDirectory()])

    def flip_bit(self, name: str, at: int) -> None:
        """Damage synced data."""
        for data in (self.files[name].current, self.files[name].synced):
            data[at] ^= 1 << self.chance.randrange(8)

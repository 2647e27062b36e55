"""An object store for lakes in tests: `object_store.py` in its own process."""

import contextlib
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SERVER = Path(__file__).with_name("object_store.py")
BUCKET = "lake"


@dataclass(frozen=True)
class ObjectStoreServer:
    """The store, and the credentials of a user with all rights."""

    process: "subprocess.Popen[str]"
    port: int
    key: str
    secret: str

    @property
    def options(self) -> dict[str, str]:
        """The options with which a lake is reached."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret,
        }  # fmt: skip

    def new_lake(self) -> str:
        """The address of an empty place."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex}/orders"

    def age(self, days: int) -> None:
        """Make all objects older by a number of days."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"age {days}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "aged\n"


@contextlib.contextmanager
def started_store(log: Path) -> Iterator[ObjectStoreServer]:
    """A separate store, whose log of requests goes to `log`."""
    with log.open("w") as said, subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        port, key, secret = process.stdout.readline().split()
        yield ObjectStoreServer(process, int(port), key, secret)
        process.stdin.close()

"""A lake in an object store, for tests: `object_store.py` in a process of its own."""

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
    """The store, and who may do everything in it."""

    process: "subprocess.Popen[str]"
    port: int
    key: str
    secret: str

    @property
    def options(self) -> dict[str, str]:
        """What a lake is reached with."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret,
        }  # fmt: skip

    def new_lake(self) -> str:
        """A place where nothing is."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex}/orders"

    def age(self, days: int) -> None:
        """Have all objects be so many days older."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"age {days}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "aged\n"


@contextlib.contextmanager
def started_store(log: Path) -> Iterator[ObjectStoreServer]:
    """A store of one's own; what it says of requests goes to `log`."""
    with log.open("w") as said, subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        port, key, secret = process.stdout.readline().split()
        yield ObjectStoreServer(process, int(port), key, secret)
        process.stdin.close()

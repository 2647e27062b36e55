"""A Celery application whose workers, beat and producers have the addresses of three nodes.

The environment says in which order they try the nodes, and where workers write down what they have done.
Run as a program, it is a producer that sends numbered tasks until SIGTERM, and prints the number of each that
was sent.
"""

import os
import sys
import time

from celery import Celery
from kombu.exceptions import OperationalError
from tests.cluster.failover_programs import INTERVAL_S, PAUSE_S, Ending

app = Celery("warren-failover")
app.conf.update(
    # Separated by semicolons: the first one that accepts a connection is used.
    broker_url=os.environ.get("FAILOVER_BROKERS", "amqp://"),
    result_backend=os.environ.get("FAILOVER_RESULTS", "rpc://"),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # A node that is silent is given up.
    broker_heartbeat=4,
    # What was not confirmed is sent again, and a worker that is refused tries again.
    broker_transport_options={"confirm_publish": True, "read_timeout": 8},
    broker_channel_error_retry=os.environ.get("FAILOVER_CHANNEL_ERROR_RETRY") == "yes",
    task_default_queue="tasks",
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    beat_schedule={
        "every half second": {"task": "note", "schedule": 0.5, "args": ("beat",)},
    },
)


@app.task(name="note")
def note(what: str) -> str:
    """Write down, in one line, that this was done."""
    with open(os.environ["FAILOVER_NOTES"], "a") as notes:
        notes.write(f"{what}\n")
    return what


@app.task(name="add")
def add(one: int, other: int) -> int:
    """Return the sum of two numbers."""
    return one + other


def main() -> int:
    """Send tasks."""
    ending = Ending()
    number = 0
    refusals = (OperationalError, *app.connection_for_write().channel_errors)
    while not ending.is_set:
        try:
            app.send_task("note", (f"task {number}",), ignore_result=True)
        except refusals:
            time.sleep(PAUSE_S)
            continue
        print(number, flush=True)
        number += 1
        time.sleep(INTERVAL_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())

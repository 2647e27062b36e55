"""Runs a test a second time if Spark waited in vain for a Python worker to start.

Spark waits ten seconds for a worker that it starts for a streaming query, and no setting changes that
(`PythonWorkerFactory.createSimpleWorker`). On a processor that runs other suites at the same time, a start
can take longer. Spark then ends the query, and names this as the reason.
"""

import pytest
from _pytest.runner import runtestprotocol

WORKER_IS_LATE = "Python worker failed to connect back"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test with its fixtures, and once more if a worker of Spark was late; only the last run counts."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed and WORKER_IS_LATE in report.longreprtext for report in reports):
        print(f"\n{item.nodeid} is run a second time: {WORKER_IS_LATE}")
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True

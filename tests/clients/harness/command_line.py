"""Runs third-party clients' own test suites and our client programs against a broker: `make clients`.

Without `--broker` or `--rabbitmq` a Warren of this checkout is started on free ports, with `--away` a cluster
of three. The packages of the suites are fetched once, from PyPI and npm, into the user's cache.
"""

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.clients.harness import away, brokers, catalogue, running
from tests.clients.harness.brokers import BrokerEndpoints
from tests.clients.harness.catalogue import Excuse, Suite
from tests.clients.harness.outcomes import Verdict, case_of
from tests.part import ALL, parsed

TEXT_LINES_MAX = 25
# The data and the logs of the brokers of this run, whose name no other run has; they stay if a test fails.
BROKERS = running.RESULTS / "brokers" / str(os.getpid())


def main() -> int:
    """Run the selected suites; returns 1 if a test failed that is not excused."""
    options = parse_arguments()
    chosen = choose(options)
    excuses = catalogue.excuses(is_away=options.away)
    with broker_of(options) as broker, ThreadPoolExecutor(options.jobs) as pool:
        homes = away.QueueHomes("shared", broker) if options.away else None
        pending = [pool.submit(run_suite, suite, broker, excuses, options) for suite in chosen]
        for one in as_completed(pending):
            for verdict in one.result():
                show_progress(verdict)
        verdicts = [verdict for one in pending for verdict in one.result()]
        if homes is not None and not all(suite.is_alone for suite in chosen):
            verdicts.append(homes.verdict())
            show_progress(verdicts[-1])
    show_table(verdicts)
    if all(verdict.is_good() for verdict in verdicts):
        shutil.rmtree(BROKERS, ignore_errors=True)
        return 0
    return 1


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "suites", nargs="*", metavar="suite", help="which to run; all in suites.toml if none is named"
    )
    parser.add_argument(
        "--part", type=parsed, default=ALL,
        help="gate: all suites but those that are long; long: those alone; or a part of those such as 2/8",
    )  # fmt: skip
    parser.add_argument("--case", help="one test, by the name that a failure has")
    parser.add_argument("--jobs", type=int, default=2, help="how many suites run at a time; they mostly wait")
    started = parser.add_mutually_exclusive_group()
    started.add_argument(
        "--away", action="store_true",
        help="three nodes, whose clients are connected to one, and whose queues are on the others",
    )  # fmt: skip
    started.add_argument("--broker", metavar="URI", help="a broker that already runs")
    started.add_argument("--rabbitmq", action="store_true", help="the installed RabbitMQ, on free ports")
    parser.add_argument("--tls-port", type=int, help="where that broker speaks TLS")
    parser.add_argument("--management-port", type=int, help="where that broker has its HTTP API")
    return parser.parse_args()


def choose(options: argparse.Namespace) -> list[Suite]:
    """Return the named suites, or that of a named test, or else those of the part."""
    known = {suite.name: suite for suite in catalogue.suites()}
    names = [options.case.partition(" ")[0]] if options.case else options.suites
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no suite {', '.join(unknown)}; there are {', '.join(known)}")
    if names:
        return [known[name] for name in names]
    usual = [suite for suite in known.values() if not suite.is_long]
    if options.away:
        return options.part.chosen(usual)
    return (usual if options.part.has_gate else []) + options.part.chosen(
        [suite for suite in known.values() if suite.is_long]
    )


def run_suite(
    suite: Suite, broker: BrokerEndpoints, excuses: list[Excuse], options: argparse.Namespace
) -> list[Verdict]:
    """Run a suite against `broker`, or against a broker of its own if it must be alone and none was given.

    With `--away` such a suite also has a verdict about where its queues were.
    """
    test = options.case.partition(" ")[2] if options.case else ""
    if options.broker or not suite.is_alone:
        return [running.run_suite(suite, broker, excuses, test)]
    with started(options, suite.name, *suite.settings) as own:
        homes = away.QueueHomes(suite.name, own) if options.away else None
        verdict = running.run_suite(suite, own, excuses, test)
        return [verdict] if homes is None else [verdict, homes.verdict()]


@contextlib.contextmanager
def broker_of(options: argparse.Namespace) -> Iterator[BrokerEndpoints]:
    """The given broker, or one that is started for the suites."""
    if options.broker:
        yield brokers.named(options.broker, options.tls_port, options.management_port)
        return
    with started(options, "shared") as broker:
        yield broker


def started(
    options: argparse.Namespace, name: str, *lines: str
) -> contextlib.AbstractContextManager[BrokerEndpoints]:
    """Start a Warren, or a RabbitMQ or a cluster if that was selected."""
    if options.away:
        return away.started_cluster(BROKERS / f"cluster-{name}", *lines)
    if options.rabbitmq:
        return brokers.started_rabbitmq(BROKERS / f"rabbitmq-{name}", *lines)
    return brokers.started_warren(BROKERS / f"warren-{name}", *lines)


def show_progress(verdict: Verdict) -> None:
    """Print the result of a suite, with the end of the text of each failure."""
    print(
        f"{verdict.suite}: {verdict.seconds:.0f} s, {'good' if verdict.is_good() else 'not good'}", flush=True
    )
    if verdict.trouble:
        print(f"\nFAILED {verdict.suite}: {verdict.trouble}")
    for test, text in verdict.failed.items():
        lines = text.rstrip().splitlines()[-TEXT_LINES_MAX:]
        reason = lines[-1].strip() if lines else "without a reason"
        print(f"\nFAILED {verdict.suite} {case_of(test)}: {reason}")
        print("\n".join(f"    {line}" for line in lines))


def show_table(verdicts: list[Verdict]) -> None:
    """Print one row for each suite, the excuses that are no longer needed, and the sum."""
    print(f"\n{'suite':<14}{'passed':>8}{'failed':>8}{'excused':>9}{'skipped':>9}{'seconds':>9}")
    for verdict in verdicts:
        kinds = (verdict.passed, verdict.failed, verdict.excused, verdict.skipped)
        passed, failed, excused, skipped = map(len, kinds)
        counts = f"{passed:>8}{failed:>8}{excused:>9}{skipped:>9}{verdict.seconds:>9.1f}"
        print(f"{verdict.suite:<14}{counts}  {verdict.trouble}".rstrip())
    for verdict in verdicts:
        for test in verdict.surprises:
            print(f"excused but passes: {verdict.suite} {test}")
    passed = sum(len(verdict.passed) for verdict in verdicts)
    failed = sum(len(verdict.failed) + bool(verdict.trouble) for verdict in verdicts)
    skipped = sum(len(verdict.skipped) + len(verdict.excused) for verdict in verdicts)
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")

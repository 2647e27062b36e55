"""Runs the checks and the tests on both builds, and ends with one line that counts them all.

Without arguments it runs the gate, which is the same for equal files; `--plan` prints its commands instead.
`--part long` runs all that the gate leaves out, with fresh seeds, and `--part 2/8` a part of that.

Each suite runs as a process of its own, so that one that hangs or crashes affects no other. The output of a
suite is shown at once, preceded by its name. A test that fails is run again by itself when all suites have
ended; one that passes then is unstable, which is shown, and fails the run only if there are many.

The end names each test that failed, with its reason and the command that runs it alone. A table follows, and
the last line of all is `N passed, N failed, N skipped`.
"""

import argparse
import os
import random
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from tests import processes, second_look  # noqa: E402
from tests.part import ALL, GATE, Part, parsed  # noqa: E402
from tests.patience import measured  # noqa: E402
from tests.plan import (  # noqa: E402
    COMPILED,
    ENVIRONMENTS,
    INTERPRETED,
    LONG_SUITES,
    OWN_ENVIRONMENTS,
    QUICK_EXAMPLES,
    RESULTS,
    SUITES,
    Job,
    plan,
)  # fmt: skip
from tests.results import SuiteResult, count_exit, count_program, count_report  # noqa: E402

# The conditions of optional tests; each suite skips its own where the program is not installed.
OPTIONAL = {
    "rabbitmq-server": "comparisons with a real RabbitMQ",
    "node": "tests that drive amqplib, and the web interface",
    "chromium": "the web interface in a browser",
}
# The text at the end of pytest's output about tests that were deselected.
LEFT_OUT = re.compile(r"\b(\d+) deselected\b")
# The status of pytest when it has run no test.
NOTHING_SELECTED = 5
# Suites that run at a time. Three keep two processors busy: the longest have several processes, but wait for
# clocks, disks and browsers as much as they work. With two, a third of both processors was idle.
LANES = 3
# Those that take longest are begun first, so that none is left alone at the end.
LONGEST = ["integration", "clients", "cluster", "spark", "unit", "sim", "browser", "mutation"]
# The lines about failures that are shown at the end, beside the table; all of them are in a file.
FAILURE_LINES_MAX, REASONS_SHOWN_MAX = 20, 8


def main() -> int:
    """Run the selected suites, by default the gate; returns 0 if nothing failed."""
    options = _options()
    part = options.part or (ALL if options.suites else GATE)
    suites = options.suites or SUITES
    builds = [INTERPRETED, COMPILED] if options.build == "both" else [options.build]
    missing = SuiteResult("missing")
    if not options.plan and len(builds) > 1 and (reason := why_missing(COMPILED)):
        missing.skip(reason)
        builds = [INTERPRETED]
    seed = random.SystemRandom().randrange(10_000, 1 << 24) if part not in (GATE, ALL) else 0
    jobs = plan(suites, builds, part, seed)
    if options.quick:
        jobs = [_quick(job) for job in jobs]
    if options.plan:
        print(*(job.shown() for job in jobs), sep="\n")
        return 0
    RESULTS.mkdir(parents=True, exist_ok=True)
    # Ending this process also ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for program, use in OPTIONAL.items():
        if shutil.which(program) is None:
            processes.say(f"{program} is not installed: {use} are skipped")
    patience = measured()
    processes.say(f"time limits are {patience:.1f} times those of a quiet machine")
    os.environ["PATIENCE"] = f"{patience:.1f}"
    results = run_lanes(jobs, part)
    unstable = second_look.look(results)
    left_out = [name for name in suites if name in LONG_SUITES and not part.has_long]
    return summarise([*results, *([missing] if missing.skipped else [])], unstable, left_out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "suites", nargs="*", choices=[*SUITES, []], metavar="suite",
        help=f"all of its tests; the gate, if none is named: {', '.join(SUITES)}",
    )  # fmt: skip
    parser.add_argument("--build", choices=[*ENVIRONMENTS, "both"], default="both")
    parser.add_argument(
        "--part", type=parsed, metavar="PART",
        help="gate, long, all, or a part of the long tests such as 2/8",
    )  # fmt: skip
    parser.add_argument("--plan", action="store_true", help="print the commands, and run nothing")
    parser.add_argument(
        "--quick", action="store_true",
        help=f"without tests marked `slow`, and with {QUICK_EXAMPLES} examples of each property",
    )  # fmt: skip
    return parser.parse_args()


def _quick(job: Job) -> Job:
    """Return a job of pytest without slow tests and with few examples; other jobs as they are."""
    if "pytest" not in job.command:
        return job
    variables = tuple(one for one in job.variables if one[0] != "EXAMPLES")
    return job._replace(
        command=(*job.command, "-m", "not slow"), variables=(*variables, ("EXAMPLES", str(QUICK_EXAMPLES)))
    )


def run_lanes(jobs: Sequence[Job], part: Part) -> list[SuiteResult]:
    """Run LANES jobs at a time; returns their results in the order of `jobs`."""
    with ThreadPoolExecutor(LANES) as lanes:
        begun = {job: lanes.submit(run_suite, job, part) for job in sorted(jobs, key=_turn)}
        try:
            return [begun[job].result() for job in jobs]
        except BaseException:
            lanes.shutdown(wait=False, cancel_futures=True)
            processes.end_all()
            raise


def _turn(job: Job) -> int:
    return LONGEST.index(job.suite) if job.suite in LONGEST else len(LONGEST)


def run_suite(job: Job, part: Part = ALL) -> SuiteResult:
    """Run one suite, or return why it cannot be run."""
    result = SuiteResult(job.name, job)
    if missing := why_missing(job.suite if job.suite in OWN_ENVIRONMENTS else job.build):
        result.skip(missing)
        return result
    is_pytest = "pytest" in job.command
    if is_pytest:
        job.report.unlink(missing_ok=True)
    processes.say(job.name)
    # What the gate does is a function of the tree; a caller may choose the seeds of other runs.
    chosen = (
        {} if part == GATE else {name: os.environ[name] for name, _ in job.variables if name in os.environ}
    )
    ended = processes.run([str(job.program), *job.command[1:]], dict(job.variables) | chosen, job.name)
    result.seconds, result.processor_seconds = ended.seconds, ended.processor_seconds
    if not is_pytest:
        count_program(result, ended.status, ended.lines)
        return result
    result.left_out += sum(int(found[1]) for line in ended.lines[-1:] if (found := LEFT_OUT.search(line)))
    if job.report.exists():
        count_report(result, job.report)
    # A suite may have no long tests.
    is_empty = ended.status == NOTHING_SELECTED and not part.has_gate
    if ended.status and not is_empty and not result.failures:
        count_exit(result, ended.status, ended.lines)
    return result


def why_missing(environment: str) -> str:
    """Return why this build, or the environment of a suite, is missing; empty if it is there."""
    is_own = environment in OWN_ENVIRONMENTS
    marker = (OWN_ENVIRONMENTS[environment] if is_own else ENVIRONMENTS[environment]) / "warren-build"
    found = marker.read_text().strip() if marker.exists() else "not made: run `make setup`"
    if is_own:
        return "" if found == INTERPRETED else f"the environment of {environment} is missing: {found}"
    return "" if found == environment else f"the {environment} build is missing: {found}"


def summarise(
    results: list[SuiteResult], unstable: Sequence[second_look.Unstable] = (), left_out: Sequence[str] = ()
) -> int:
    """Print what failed or was unstable, the table, what was skipped, and last the line of counts.

    Returns 0 if nothing failed; `left_out` contains whole suites.
    """
    lines = [line for one in results for failure in one.failures for line in failure.shown()]
    lines += [one.shown() for one in unstable]
    too_many = len(unstable) > second_look.UNSTABLE_MAX
    if too_many:
        lines.append(f"FAILED {len(unstable)} tests were unstable, more than {second_look.UNSTABLE_MAX}")
    everything = RESULTS / "failures.txt"
    if RESULTS.exists():
        everything.write_text("".join(f"{line}\n" for line in lines))
    print()
    for line in lines[:FAILURE_LINES_MAX]:
        print(line)
    if len(lines) > FAILURE_LINES_MAX:
        print(f"{len(lines) - FAILURE_LINES_MAX} more lines are in {os.path.relpath(everything, ROOT)}")
    _print_table(results, left_out)
    passed, failed, skipped = (
        sum(getattr(one, kind) for one in results) for kind in ("passed", "failed", "skipped")
    )
    failed += too_many
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def _print_table(results: list[SuiteResult], left_out: Sequence[str]) -> None:
    width = max(len(one.name) for one in results)
    print(f"\n{'':{width}}  passed  failed  unstable  skipped  left out  seeds  seconds  processor")
    for one in results:
        counts = f"{one.passed:6}  {one.failed:6}  {one.unstable:8}  {one.skipped:7}  {one.left_out:8}"
        times = f"{one.seeds:5}  {one.seconds:7.1f}  {one.processor_seconds:9.1f}"
        print(f"{one.name:{width}}  {counts}  {times}")
    used = sum(one.processor_seconds for one in results)
    print(f"{'all':{width}}  {'':64}  {used:9.1f}")
    if left_out or any(one.left_out for one in results):
        print(f"`make test-long` runs what was left out, also the suites {', '.join(left_out) or '(none)'}")
    reasons: Counter[str] = sum((one.skip_reasons for one in results), Counter())
    for reason, count in reasons.most_common(REASONS_SHOWN_MAX):
        print(f"skipped {count}: {reason}")
    if len(reasons) > REASONS_SHOWN_MAX:
        print(f"and {len(reasons) - REASONS_SHOWN_MAX} other reasons")


if __name__ == "__main__":
    sys.exit(main())

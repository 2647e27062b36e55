"""Runs one suite against one broker."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.clients.harness import catalogue, certificates, fetching
from tests.clients.harness.brokers import BrokerEndpoints
from tests.clients.harness.catalogue import Excuse, Suite
from tests.clients.harness.outcomes import Verdict, judge
from tests.patience import patient

PLUGINS = catalogue.HERE / "plugins"
RESULTS = catalogue.ROOT / "build" / "clients"
TEST_S_MAX = patient(180)


def run_suite(suite: Suite, broker: BrokerEndpoints, excuses: list[Excuse], case: str = "") -> Verdict:
    """Fetch what the suite needs, run it and judge its report; failures of the suite raise no exception.

    Of a case, named as in the report, all tests of its name are run, and only the case is judged.
    """
    verdict = Verdict(suite=suite.name)
    missing = missing_tool(suite)
    if missing:
        verdict.skipped.append(f"{suite.name}: {missing} is not installed")
        return verdict
    try:
        command, folder = prepared(suite, broker)
        if case and command[0] != "node":
            command = [*command, "-k", name_of(case)]
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        verdict.trouble = str(error)
        return verdict
    report = RESULTS / "reports" / f"{suite.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    started = time.monotonic()
    output = run_command(suite, broker, with_report(command, report), folder)
    verdict.seconds = time.monotonic() - started
    report.with_suffix(".log").write_text(output)
    finish(verdict, report, [one for one in excuses if applies(one, broker)], case)
    if not broker.is_alive():
        verdict.trouble = f"the broker no longer listens after {suite.name}"
    return verdict


def name_of(case: str) -> str:
    """Return the name of the function of a case, which pytest selects by."""
    return case.rpartition("::")[2].partition("[")[0]


def finish(verdict: Verdict, report: Path, excuses: list[Excuse], case: str = "") -> None:
    """Judge the report; without one, the suite itself has failed."""
    log = report.with_suffix(".log")
    if not report.exists() or not report.stat().st_size:
        verdict.trouble = f"{verdict.suite} wrote no report; see {log}"
        return
    judge(verdict, report, excuses, case)
    if not verdict.passed and not verdict.failed and not verdict.excused:
        verdict.trouble = f"{verdict.suite} ran no test; see {log}"


def applies(excuse: Excuse, broker: BrokerEndpoints) -> bool:
    """True if an excuse applies: a missing feature to a broker without it, a difference to Warren only."""
    if excuse.difference and broker.is_rabbitmq:
        return False
    match excuse.needs:
        case "host_name":
            return not certificates.node_host()
        case "management":
            return broker.management_port is None
        case "tls":
            return broker.tls_port is None
        case _:
            return True


def missing_tool(suite: Suite) -> str:
    """Return the name of a missing program that the suite requires; empty if there is none."""
    wanted = ["node", "npm"] if suite.kind in fetching.NODE else []
    return next((tool for tool in wanted if shutil.which(tool) is None), "")


def prepared(suite: Suite, broker: BrokerEndpoints) -> tuple[list[str], Path]:
    """Return the command of the suite and its directory, after everything it needs was fetched."""
    if suite.kind == "local":
        return [sys.executable, "-m", "pytest", *suite.arguments], catalogue.ROOT
    folder = fetching.source_of(suite)
    if suite.certificates:
        certificates.issue(folder / suite.certificates)
    if suite.kind in fetching.NODE:
        found = [path for glob in suite.arguments for path in sorted(folder.glob(glob))]
        tests = [str(path.relative_to(folder)) for path in found]
        plugin = ["--require", str(PLUGINS / suite.plugin)] if suite.plugin else []
        if suite.kind == "mocha":
            mocha = fetching.node_packages(*suite.requirements) / "mocha" / "bin" / "mocha.js"
            limit = f"--timeout={TEST_S_MAX * 1000}"  # mocha's 2 s are little on a machine that is busy
            return ["node", str(mocha), "--exit", limit, *plugin, *without_left_out(suite), *tests], folder
        return ["node", *plugin, "--test", "--test-concurrency=1", "--test-timeout=20000", *tests], folder
    python = str(fetching.environment_of(suite))
    plugin = ["-p", suite.plugin] if suite.plugin else []
    options = ["-q", "--rootdir=.", "-p", "no:cacheprovider", f"--timeout={TEST_S_MAX:.0f}", "-W", "ignore"]
    command = [python, "-m", "pytest", *options, *plugin, *suite.arguments]
    return [*command, *without_left_out(suite)], folder


def without_left_out(suite: Suite) -> list[str]:
    """Return the options with which pytest or mocha skips what `excuses.toml` leaves out of `suite`."""
    rows = [row for row in catalogue.left_out() if row.suite == suite.name]
    words = [word for row in rows for word in row.words]
    if suite.kind == "mocha":
        return (
            ["--invert", f"--grep={'|'.join(re.escape(word).replace(chr(92) + ' ', ' ') for word in words)}"]
            if words
            else []
        )
    tests = [row.test for row in rows if row.test]
    options = [f"--deselect={test}" if "::" in test else f"--ignore={test}" for test in tests]
    return [*options, "-k", " and ".join(f"not {word}" for word in words)] if words else options


def with_report(command: list[str], report: Path) -> list[str]:
    """Return the command with the option for its JUnit report."""
    if command[0] != "node":
        return [*command, f"--junitxml={report}"]
    if "--test" not in command:
        return [*command, "--reporter", "xunit", "--reporter-option", f"output={report}"]
    at = command.index("--test")
    return [*command[:at], "--test-reporter=junit", f"--test-reporter-destination={report}", *command[at:]]


def run_command(suite: Suite, broker: BrokerEndpoints, command: list[str], folder: Path) -> str:
    """Return the output of the command; a suite that exceeds its time limit is ended, without a report."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(suite, broker, command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=patient(suite.seconds_max))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            output += f"\nended after {patient(suite.seconds_max):.0f} s\n"
    return output


def environment(suite: Suite, broker: BrokerEndpoints, command: list[str]) -> dict[str, str]:
    """Return the environment of this process, with the suite's variables, and our plugins importable."""
    known = {
        "host": broker.host,
        "port": broker.port,
        "user": broker.user,
        "password": broker.password,
        "uri": broker.uri,
        "tls_port": broker.tls_port or "",
        "management_port": broker.management_port or 1,
        "stream_host": certificates.node_host() or "localhost",
        "stream_port": broker.stream_port or 1,
        "stream_nodes": ";".join(
            f"{certificates.node_host() or 'localhost'}:{port}"
            for port in (broker.stream_port or 1, *broker.other_stream_ports)
        ),
        "stream_tls_port": broker.stream_tls_port or 1,
        "python": sys.executable,
    }
    modules = fetching.node_packages(*suite.requirements) if suite.kind in fetching.NODE else ""
    filled = {name: value.format_map(known) for name, value in suite.environment.items()}
    programs = str(Path(command[0]).parent)
    return {
        **os.environ,
        "PATH": os.pathsep.join((programs, os.environ["PATH"]))
        if os.sep in command[0]
        else os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", "") if suite.kind == "local" else str(PLUGINS),
        "NODE_PATH": str(modules),
        "WARREN_CLIENTS_BROKER": broker.uri,
        "WARREN_CLIENTS_TLS_PORT": str(broker.tls_port or ""),
        **filled,
    }

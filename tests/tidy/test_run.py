"""The test runner counts correctly: a suite that crashes, hangs or prints nothing is never green."""

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests import run
from tests.long import checked
from tests.run import Job, SuiteResult


@pytest.fixture(autouse=True)
def this_python_for_every_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(run, "ENVIRONMENTS", {"interpreted": tmp_path, "compiled": tmp_path})
    monkeypatch.setattr(run, "RESULTS", tmp_path)


def counts(program: str) -> tuple[int, int, int]:
    outcome = run.run_program("program", "interpreted", ["-c", program])
    return outcome.passed, outcome.failed, outcome.skipped


def test_the_last_line_counts_everything(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [
        SuiteResult("a", passed=2),
        SuiteResult("b", failed=1, skipped=3, skip_reasons=Counter(["no node"] * 3)),
    ]
    assert run.summarise(outcomes) == 1
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "2 passed, 1 failed, 3 skipped"
    assert "skipped 3: no node" in printed


def test_the_line_of_counts_is_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run.run_program("program", "interpreted", ["-c", "print('4 passed, 0 failed, 1 skipped')"])
    assert run.summarise([outcome]) == 0
    alone = [line for line in capsys.readouterr().out.splitlines() if re.match(r"\d+ passed", line)]
    assert alone == ["4 passed, 0 failed, 1 skipped"]


def test_the_count_of_a_program_is_accepted() -> None:
    assert counts("print('4 passed, 1 failed, 2 skipped'); raise SystemExit(1)") == (4, 1, 2)


def test_a_program_without_a_count_counts_as_one_test() -> None:
    assert counts("print('done')") == (1, 0, 0)
    assert counts("raise SystemExit(3)") == (0, 1, 0)


def test_a_failure_without_a_count_is_reported_with_the_last_line_of_the_program() -> None:
    outcome = run.run_program("program", "interpreted", ["-c", "raise SystemExit('the port is in use')"])
    assert outcome.failures == ["program ended with status 1: the port is in use"]
    outcome = run.run_program("program", "interpreted", ["-c", "raise SystemExit(3)"])
    assert outcome.failures == ["program ended with status 3: it printed nothing"]


def test_a_program_that_counts_and_then_crashes_has_failed() -> None:
    assert counts("print('4 passed, 0 failed, 0 skipped', flush=True); import os; os.abort()") == (4, 1, 0)


def test_failures_named_by_a_program_are_repeated_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = "print('FAILED this: not that'); print('0 passed, 1 failed, 0 skipped'); raise SystemExit(1)"
    assert run.summarise([run.run_program("program", "interpreted", ["-c", program])]) == 1
    assert "FAILED program: this: not that" in capsys.readouterr().out.splitlines()


def test_a_suite_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SUITE_SECONDS_MAX", 0.2)
    assert counts("import time; time.sleep(60)") == (0, 1, 0)


def test_tests_are_counted_individually(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='c' name='a'/>"
        "<testcase classname='c' name='b'><failure message='1 is not 2&#10;at all'/></testcase>"
        "<testcase classname='c' name='c'><error/></testcase>"
        "<testcase classname='c' name='d'><skipped message='no node'/></testcase></testsuite></testsuites>"
    )
    outcome = SuiteResult("some")
    run.count_report(outcome, report)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, 2, 1)
    assert dict(outcome.skip_reasons) == {"no node": 1}
    assert outcome.failures[0] == "c.b (some): 1 is not 2 at all"


def test_a_missing_build_is_reported(tmp_path: Path) -> None:
    assert "make setup" in run.why_missing("compiled")
    (tmp_path / "warren-build").write_text("interpreted: there is no C compiler\n")
    assert "there is no C compiler" in run.why_missing("compiled")


def test_a_spark_that_could_not_be_installed_skips_its_suite_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert set(run.SPARK_VERSIONS) < set(run.SUITES)
    (tmp_path / "warren-build").write_text("spark-4.0.txt could not be installed\n")
    monkeypatch.setattr(run, "OWN_ENVIRONMENTS", {"spark-4.0": tmp_path})
    outcome = run.run_suite(Job("spark-4.0", "interpreted"))
    assert (outcome.passed, outcome.failed, outcome.skipped) == (0, 0, 1)
    (reason,) = outcome.skip_reasons
    assert reason == "the environment of spark-4.0 is missing: spark-4.0.txt could not be installed"


def test_every_suite_runs_on_both_builds_apart_from_those_that_run_once(tmp_path: Path) -> None:
    (tmp_path / "warren-build").write_text("compiled\n")
    assert run.is_due("unit", "interpreted")
    assert run.is_due("unit", "compiled")
    assert not run.is_due("fuzz", "interpreted")
    assert run.is_due("fuzz", "compiled")


def test_without_the_compiled_build_suites_that_run_once_run_interpreted(tmp_path: Path) -> None:
    (tmp_path / "warren-build").write_text("interpreted: there is no C compiler\n")
    assert run.is_due("fuzz", "interpreted")
    assert run.is_due("unit", "compiled")


def test_interpreted_runs_what_can_differ_from_the_compiled_build_and_in_parts_all_the_rest(
    tmp_path: Path,
) -> None:
    (tmp_path / "warren-build").write_text("compiled\n")

    def asked(long: str, *builds: str) -> dict[tuple[str, str], tuple[str, ...]]:
        jobs = run.due_jobs(["unit", "integration"], list(builds), long)
        return {(job.suite, job.build): run.what_of(job) for job in jobs}

    everything = {"unit": ("tests/unit",), "integration": ("tests/integration",)}
    both = asked("none", "interpreted", "compiled")
    assert {suite: both[suite, "compiled"] for suite in everything} == everything
    assert "tests/unit/wire" in both["unit", "interpreted"]
    assert "tests/unit/cli" not in both["unit", "interpreted"]
    first = set(both["integration", "interpreted"])
    parts = [
        set(asked(part, "interpreted", "compiled")["integration", "interpreted"]) for part in ("1/2", "2/2")
    ]
    modules = {str(path.relative_to(run.ROOT)) for path in run.INTEGRATION.glob("test_*.py")}
    assert first < modules
    assert (parts[0] & parts[1], parts[0] | parts[1]) == (first, modules)
    assert set(asked("none", "interpreted").values()) == set(everything.values())


def test_a_quick_run_leaves_out_slow_tests_and_tries_fewer_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[list[str], dict[str, str]]] = []

    def stream(_: SuiteResult, command: list[str], variables: dict[str, str]) -> tuple[int, list[str]]:
        asked.append((command, variables))
        return 0, ["5 passed, 2 deselected in 1.00s"]

    monkeypatch.setattr(run, "_stream", stream)
    assert run._run_pytest("tidy", Job("tidy", "interpreted", is_quick=True)).left_out == 2
    run._run_pytest("tidy", Job("tidy", "interpreted"))
    assert [("not slow" in command, variables.get("EXAMPLES")) for command, variables in asked] == [
        (True, str(run.QUICK_EXAMPLES)), (False, None),
    ]  # fmt: skip


@pytest.mark.parametrize("suite", run.ROTATED_PARTS)
def test_all_parts_of_a_rotated_suite_are_run_by_as_many_commits(
    monkeypatch: pytest.MonkeyPatch, suite: str
) -> None:
    parts = run.ROTATED_PARTS[suite]
    commits = iter(range(parts))
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, str(next(commits)))
    )
    found = {run._part(Job(suite, "interpreted", "none")) for _ in range(parts)}
    assert found == {f"{part}/{parts}" for part in range(1, parts + 1)}


def test_outcomes_are_shown_in_one_order_whichever_suite_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = threading.Event()

    def outcome_of(job: Job) -> SuiteResult:
        if job.suite == "unit":
            assert quick.wait(10)
        else:
            quick.set()
        return SuiteResult(f"{job.suite} ({job.build})")

    monkeypatch.setattr(run, "run_suite", outcome_of)
    outcomes = run.run_lanes([Job("unit", "interpreted"), Job("tidy", "interpreted")])
    assert [one.name for one in outcomes] == ["unit (interpreted)", "tidy (interpreted)"]


def test_a_suite_that_cannot_be_run_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome_of(job: Job) -> SuiteResult:
        if job.suite == "unit":
            return run.run_program(job.suite, job.build, ["-c", "import time; time.sleep(60)"])
        while not run.running:
            pass
        raise OSError("no room")

    monkeypatch.setattr(run, "run_suite", outcome_of)
    with pytest.raises(OSError, match="no room"):
        run.run_lanes([Job("tidy", "interpreted"), Job("unit", "interpreted")])
    assert not run.running


def test_long_tests_are_left_out_by_name_and_number_and_all_parts_are_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = list(run.LONG_SUITES)
    assert not {job.suite for job in run.due_jobs(run.SUITES, ["interpreted"], "none")} & set(long)
    parts = [
        job.suite
        for part in ("1/3", "2/3", "3/3")
        for job in run.due_jobs(run.SUITES, ["interpreted"], part)
        if job.suite in long
    ]
    assert sorted(parts) == sorted(long)
    assert run.summarise([SuiteResult("a", passed=1, left_out=2)], long) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^a +1 +0 +0 +2 ", printed, re.MULTILINE)
    assert f"also the suites {', '.join(long)}" in printed


@pytest.mark.parametrize("which", ["some", "0/4", "5/4", "1/", "/2", "-1/2", ""])
def test_a_part_out_of_range_is_refused(which: str) -> None:
    with pytest.raises(ValueError, match="neither none nor all nor a part"):
        checked(which)


@pytest.mark.slow
def test_a_long_test_runs_in_one_part_and_one_with_seeds_counts_as_one(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.seeds(30)\n"
        "def test_seeds(seed: int) -> None:\n"
        "    assert seed != 17\n"
        "@pytest.mark.long\n"
        "@pytest.mark.parametrize('number', range(5))\n"
        "def test_long(number: int) -> None:\n"
        "    pass\n"
    )

    def ended(*options: str) -> str:
        plugin = ("-p", "tests.conftest", "-p", "no:cacheprovider", "-c", str(run.ROOT / "pyproject.toml"))
        command = [sys.executable, "-m", "pytest", *plugin, "--rootdir", str(tmp_path), *options]
        done = subprocess.run(
            [*command, str(tmp_path)], cwd=run.ROOT, capture_output=True, text=True, check=False,
            env={**os.environ, "SEEDS_FROM": "0"},
        )  # fmt: skip
        return done.stdout

    everything = ended()
    assert "1 failed, 5 passed in" in everything
    assert "with seed 17; to run it alone: pytest test_some.py::test_seeds --seed 17" in everything
    assert "30 seeds: test_some.py 30" in everything
    assert "1 passed, 5 deselected in" in ended("--long", "none", "--seed", "16")
    assert "1 failed, 3 passed, 2 deselected in" in ended("--long", "1/2")
    assert "1 failed, 2 passed, 3 deselected in" in ended("--long", "2/2")

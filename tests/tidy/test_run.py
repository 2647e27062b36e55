"""The test runner counts correctly: a suite that crashes, hangs or prints nothing is never green."""

import os
import re
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from tests import patience, plan, processes, results, run, second_look
from tests.part import ALL, GATE, LONG, Part, parsed
from tests.plan import COMPILED, INTERPRETED, Job
from tests.results import Failure, SuiteResult

BOTH = (INTERPRETED, COMPILED)


@pytest.fixture(autouse=True)
def this_python_for_every_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "warren-build").write_text("interpreted\n")
    environments = {INTERPRETED: tmp_path, COMPILED: tmp_path}
    for module in (plan, run):
        monkeypatch.setattr(module, "ENVIRONMENTS", environments)
        monkeypatch.setattr(module, "RESULTS", tmp_path)


def program(text: str, suite: str = "kill") -> SuiteResult:
    return run.run_suite(Job(suite, INTERPRETED, ("python", "-c", text)))


def counts(text: str) -> tuple[int, int, int]:
    outcome = program(text)
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
    outcome = program("print('4 passed, 0 failed, 1 skipped')")
    assert run.summarise([outcome]) == 0
    alone = [line for line in capsys.readouterr().out.splitlines() if re.match(r"\d+ passed", line)]
    assert alone == ["4 passed, 0 failed, 1 skipped"]


def test_the_count_of_a_program_is_accepted() -> None:
    assert counts("print('4 passed, 1 failed, 2 skipped'); raise SystemExit(1)") == (4, 1, 2)


def test_a_program_without_a_count_counts_as_one_test() -> None:
    assert counts("print('done')") == (1, 0, 0)
    assert counts("raise SystemExit(3)") == (0, 1, 0)


def test_a_failure_without_a_count_is_reported_with_the_last_line_of_the_program() -> None:
    (failure,) = program("raise SystemExit('the port is in use')").failures
    assert failure.reason == "ended with status 1: the port is in use"
    (failure,) = program("raise SystemExit(3)").failures
    assert failure.reason == "ended with status 3: it printed nothing"


def test_a_program_that_counts_and_then_crashes_has_failed() -> None:
    assert counts("print('4 passed, 0 failed, 0 skipped', flush=True); import os; os.abort()") == (4, 1, 0)


def test_failures_named_by_a_program_are_repeated_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "print('FAILED this: not that'); print('0 passed, 1 failed, 0 skipped'); raise SystemExit(1)"
    assert run.summarise([program(text)]) == 1
    assert "FAILED this: not that" in capsys.readouterr().out.splitlines()


def test_a_suite_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SUITE_SECONDS_MAX", 0.2)
    assert counts("import time; time.sleep(60)") == (0, 1, 0)


def test_a_suite_without_long_tests_passes_among_them_only(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    command = ("python", "-m", "pytest", str(tmp_path), "-k", "nothing", "-p", "no:cacheprovider")
    outcomes = {part: run.run_suite(Job("raft", INTERPRETED, command), part) for part in (LONG, GATE, ALL)}
    assert {part: outcome.failed for part, outcome in outcomes.items()} == {LONG: 0, GATE: 1, ALL: 1}


def test_tests_are_counted_individually(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='c' name='a'/>"
        "<testcase classname='c' name='b'><properties><property name='node' value='c.py::b'/></properties>"
        "<failure message='1 is not 2&#10;at all'/></testcase>"
        "<testcase classname='c' name='c'><error/></testcase>"
        "<testcase classname='c' name='d'><skipped message='no node'/></testcase></testsuite></testsuites>"
    )
    outcome = SuiteResult("some", Job("unit", INTERPRETED, (), (("SEEDS", "3"),)))
    results.count_report(outcome, report)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, 2, 1)
    assert dict(outcome.skip_reasons) == {"no node": 1}
    first, second = outcome.failures
    assert first.shown()[0] == "FAILED c.py::b (unit (interpreted)): 1 is not 2 at all"
    assert first.alone == Job("unit", INTERPRETED, ("python", "-m", "pytest", "c.py::b"), (("SEEDS", "3"),))
    assert (second.name, second.alone) == ("c.c", None)


def test_a_missing_build_is_reported(tmp_path: Path) -> None:
    (tmp_path / "warren-build").unlink()
    assert "make setup" in run.why_missing(COMPILED)
    (tmp_path / "warren-build").write_text("interpreted: there is no C compiler\n")
    assert "there is no C compiler" in run.why_missing(COMPILED)


def test_a_spark_that_could_not_be_installed_skips_its_suite_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert set(plan.SPARK_VERSIONS) < set(plan.SUITES)
    (tmp_path / "warren-build").write_text("spark-4.0.txt could not be installed\n")
    monkeypatch.setattr(run, "OWN_ENVIRONMENTS", {"spark-4.0": tmp_path})
    outcome = run.run_suite(Job("spark-4.0", INTERPRETED, ()))
    assert (outcome.passed, outcome.failed, outcome.skipped) == (0, 0, 1)
    (reason,) = outcome.skip_reasons
    assert reason == "the environment of spark-4.0 is missing: spark-4.0.txt could not be installed"


def suites_on(builds: tuple[str, ...], build: str) -> set[str]:
    return {job.suite for job in plan.plan(plan.SUITES, builds, ALL) if job.build == build}


def test_every_suite_runs_on_both_builds_apart_from_those_that_run_once() -> None:
    assert {"unit", "mutation"} < suites_on(BOTH, INTERPRETED)
    assert "fuzz" not in suites_on(BOTH, INTERPRETED)
    assert {"unit", "fuzz"} < suites_on(BOTH, COMPILED)
    assert "mutation" not in suites_on(BOTH, COMPILED)


def test_without_the_compiled_build_suites_that_run_once_run_interpreted() -> None:
    assert {"unit", "fuzz"} < suites_on((INTERPRETED,), INTERPRETED)


def what(suite: str, build: str, part: Part, builds: tuple[str, ...] = BOTH) -> set[str]:
    (job,) = [job for job in plan.plan([suite], builds, part) if job.build == build]
    return {word for word in job.command if word.startswith("tests/")}


def test_interpreted_runs_what_can_differ_from_the_compiled_build_and_with_the_long_tests_all_the_rest() -> (
    None
):
    assert what("unit", COMPILED, GATE) == {"tests/unit"}
    assert "tests/unit/wire" in what("unit", INTERPRETED, GATE)
    assert "tests/unit/cli" not in what("unit", INTERPRETED, GATE)
    assert what("unit", INTERPRETED, GATE, (INTERPRETED,)) == {"tests/unit"}
    modules = {str(path.relative_to(plan.ROOT)) for path in plan.INTEGRATION.glob("test_*.py")}
    gate = what("integration", INTERPRETED, GATE)
    halves = [what("integration", INTERPRETED, parsed(part)) for part in ("1/2", "2/2")]
    assert gate < modules
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == modules - gate


def test_no_test_of_a_suite_is_left_out_by_its_name() -> None:
    """What the gate leaves out of a suite would be in no part."""
    for part in (GATE, LONG):
        assert [job.suite for job in plan.plan(plan.SUITES, BOTH, part) if "-k" in job.command] == []


def test_the_gate_is_the_same_on_every_commit_and_every_day() -> None:
    script = [sys.executable, str(plan.ROOT / "tests" / "run.py"), "--plan"]
    plain = {"PATH": "/nowhere"}
    shown = {
        subprocess.run(script, capture_output=True, text=True, check=True, env=plain | more).stdout
        for more in ({}, {"SEEDS": "7"}, {"EXAMPLES": "3"}, {"TZ": "Asia/Tokyo"})
    }
    assert len(shown) == 1
    (text,) = shown
    for job in plan.plan(plan.SUITES, BOTH, GATE):
        assert job.shown().split("/bin/")[1] in text
        if "pytest" in job.command:
            assert {"SEEDS", "SEEDS_FROM", "EXAMPLES", "PYTHONHASHSEED"} <= dict(job.variables).keys()


def test_every_program_of_the_gate_has_its_inputs_from_the_tree() -> None:
    commands = {job.suite: job.command for job in plan.plan(plan.SUITES, BOTH, GATE)}
    assert "--seed" in commands["kill"]
    assert "--seed" in commands["power"]
    assert "--inputs" in commands["fuzz"]
    assert commands["mutation"][-1] == commands["clients"][-1] == "gate"


def test_a_caller_chooses_the_seeds_of_a_named_suite_and_not_those_of_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SEEDS", "7")
    job = Job(
        "kill", INTERPRETED, ("python", "-c", "import os; exit(int(os.environ['SEEDS']))"), (("SEEDS", "3"),)
    )
    assert "status 3" in run.run_suite(job, GATE).failures[0].reason
    assert "status 7" in run.run_suite(job, ALL).failures[0].reason


def test_a_quick_run_leaves_out_slow_tests_and_tries_fewer_examples() -> None:
    (job,) = plan.plan(["tidy"], (INTERPRETED,), GATE)
    quick = run._quick(job)
    assert "not slow" in quick.command
    assert "not slow" not in job.command
    assert dict(quick.variables)["EXAMPLES"] == str(plan.QUICK_EXAMPLES)
    (check, *_) = plan.plan(["lint"], (INTERPRETED,), GATE)
    assert run._quick(check) == check


def test_outcomes_are_shown_in_one_order_whichever_suite_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = threading.Event()

    def outcome_of(job: Job, part: Part) -> SuiteResult:
        if job.suite == "unit":
            assert quick.wait(10)
        else:
            quick.set()
        return SuiteResult(job.name)

    monkeypatch.setattr(run, "run_suite", outcome_of)
    outcomes = run.run_lanes([Job("unit", INTERPRETED, ()), Job("tidy", INTERPRETED, ())], GATE)
    assert [one.name for one in outcomes] == ["unit (interpreted)", "tidy (interpreted)"]


def test_a_suite_that_cannot_be_run_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    real = run.run_suite

    def outcome_of(job: Job, part: Part) -> SuiteResult:
        if job.suite == "unit":
            return real(job._replace(command=("python", "-c", "import time; time.sleep(60)")))
        while not processes.running:
            pass
        raise OSError("no room")

    monkeypatch.setattr(run, "run_suite", outcome_of)
    with pytest.raises(OSError, match="no room"):
        run.run_lanes([Job("tidy", INTERPRETED, ()), Job("unit", INTERPRETED, ())], GATE)
    assert not processes.running


def failed(suite: str, text: str) -> SuiteResult:
    job = Job(suite, INTERPRETED, ("python", "-c", text))
    outcome = SuiteResult(job.name, job)
    outcome.fail(Failure(name="it works", reason="it did not", alone=job))
    return outcome


def test_a_test_that_passes_when_it_runs_alone_is_unstable_and_fails_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "tries"
    second = f"import pathlib; p = pathlib.Path({str(place)!r}); n = p.exists(); p.touch(); exit(not n)"
    outcome = failed("integration", second)
    unstable = second_look.look([outcome])
    assert (outcome.passed, outcome.failed, outcome.unstable) == (1, 0, 1)
    assert run.summarise([outcome], unstable) == 0
    assert "UNSTABLE it works (integration (interpreted)): it did not" in capsys.readouterr().out.splitlines()


def test_a_test_that_fails_each_time_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = failed("integration", "exit(1)")
    assert second_look.look([outcome]) == []
    assert run.summarise([outcome]) == 1
    printed = capsys.readouterr().out.splitlines()
    at = printed.index("FAILED it works (integration (interpreted)): it did not")
    assert printed[at + 1].strip().endswith("-c 'exit(1)'")


@pytest.mark.parametrize("suite", second_look.FINAL)
def test_what_proves_durability_or_agreement_fails_at_once(suite: str) -> None:
    outcome = failed(suite, "exit(0)")
    assert second_look.look([outcome]) == []
    assert outcome.failed == 1


def test_more_than_ten_unstable_tests_fail_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    many = [second_look.Unstable(f"test {number}", "late") for number in range(second_look.UNSTABLE_MAX + 1)]
    assert run.summarise([SuiteResult("a", passed=1)], many[1:]) == 0
    assert run.summarise([SuiteResult("a", passed=1)], many) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_case_of_a_program_that_can_run_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = "print('FAILED kombu it waits: 1 is 2'); print('0 passed, 1 failed, 0 skipped'); exit(1)"
    (failure,) = program(text, "clients").failures
    assert failure.alone
    assert failure.alone.command[-2:] == ("--case", "kombu it waits")
    assert program(text, "kill").failures[0].alone is None


def test_time_limits_are_those_of_a_quiet_machine_or_longer() -> None:
    assert patience.PATIENCE_MIN <= patience.measured() <= patience.PATIENCE_MAX


def test_long_tests_are_left_out_by_name_and_number_and_all_parts_are_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = list(plan.LONG_SUITES)
    assert not {job.suite for job in plan.plan(plan.SUITES, BOTH, GATE)} & set(long)
    parts = [
        job.suite
        for part in ("1/3", "2/3", "3/3")
        for job in plan.plan(plan.SUITES, BOTH, parsed(part))
        if job.suite in long
    ]
    assert sorted(parts) == sorted([*long, "clients-away", "clients-away"])
    assert run.summarise([SuiteResult("a", passed=1, left_out=2)], left_out=long) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^a +1 +0 +0 +0 +2 ", printed, re.MULTILINE)
    assert f"also the suites {', '.join(long)}" in printed


def test_a_part_is_written_as_it_is_read() -> None:
    assert [str(parsed(word)) for word in ("gate", "long", "all", "2/8")] == ["gate", "long", "all", "2/8"]
    assert parsed("1/1") == LONG


@pytest.mark.parametrize("which", ["some", "0/4", "5/4", "1/", "/2", "-1/2", ""])
def test_a_part_out_of_range_is_refused(which: str) -> None:
    with pytest.raises(ValueError, match="neither gate nor long nor all nor a part"):
        parsed(which)


def test_each_module_that_is_listed_as_long_exists() -> None:
    listed = tomllib.loads((plan.ROOT / "tests" / "long.toml").read_text(encoding="utf-8"))
    assert [path for path in listed if not (plan.ROOT / path.partition("::")[0]).is_file()] == []
    assert all(reason for reason in listed.values())


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

    def ended(*options: str, **variables: str) -> str:
        plugin = ("-p", "tests.conftest", "-p", "no:cacheprovider", "-c", str(run.ROOT / "pyproject.toml"))
        command = [sys.executable, "-m", "pytest", *plugin, "--rootdir", str(tmp_path), *options]
        done = subprocess.run(
            [*command, str(tmp_path)], cwd=run.ROOT, capture_output=True, text=True, check=False,
            env={**os.environ, "SEEDS_FROM": "0", **variables},
        )  # fmt: skip
        return done.stdout

    everything = ended()
    assert "1 failed, 5 passed in" in everything
    assert "with seed 17; to run it alone: pytest test_some.py::test_seeds --seed 17" in everything
    assert "30 seeds: test_some.py 30" in everything
    assert "1 passed, 5 deselected in" in ended("--part", "gate", "--seed", "16")
    assert "3 passed, 3 deselected in" in ended("--part", "1/2")
    assert "2 passed, 4 deselected in" in ended("--part", "2/2")
    assert "1 failed, 3 passed, 2 deselected in" in ended("--part", "1/2", FRESH="1")

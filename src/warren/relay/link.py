"""Runs one relay for ever: connects, forwards, and after an error tries again.

    STOPPED ── start ──▶ STARTING ── set up ──▶ RUNNING
       ▲                  ▲   │                    │
       │                  │   ▼                    │ an end is lost, all is forwarded, stop, restart
       └── stop ────── TERMINATED ◀────────────────┘

TERMINATED closes the connections of the run, and then waits for the next attempt.
"""

from collections.abc import Callable

from msgspec import Struct

from warren import limits_relay
from warren.client.answer import Answer
from warren.client.errors import BrokerRefused
from warren.model.coroutine_driver import drive
from warren.model.samples import Samples
from warren.model.turn import Turn
from warren.relay.attempts import Attempt, LinkAttempts
from warren.relay.dialer import Dialer
from warren.relay.link_run import After, LinkPlan, LinkRun, LinkSettings, Log, delivery_of
from warren.relay.status import Hold, LinkCounters, LinkKey, LinkKind, LinkState, LinkStatus
from warren.wire.properties import BasicProperties

_TRANSITIONS = {
    LinkState.STOPPED: (LinkState.STARTING,),
    LinkState.STARTING: (LinkState.RUNNING, LinkState.TERMINATED),
    LinkState.RUNNING: (LinkState.TERMINATED,),
    LinkState.TERMINATED: (LinkState.STARTING, LinkState.STOPPED),
}
_STOPPED = "it was stopped"
_RESTARTED = "it was restarted"
_COMPLETED = "all messages it was asked for were forwarded"


class LinkDependencies(Struct, frozen=True):
    """What the links of a node need."""

    dialer: Dialer
    turn: Turn
    after: After
    log: Log
    attempts: LinkAttempts
    # Called when the state of a link has changed.
    changed: Callable[["Link"], None]
    # Called with the virtual host of a link that an unexpected exception has ended, after it was logged.
    count_failure: Callable[[str], None]


class Link:
    """One relay; `start` and `stop` may be called at any time and in any order."""

    __slots__ = (
        "_attempt", "_delay_ms", "_dependencies", "_down_since", "_failure_count", "_is_restarting",
        "_is_running", "_is_wanted", "_last_error", "_last_error_at", "_logged_errors", "_next_attempt_at",
        "_pause", "_permit", "_plan", "_reason", "_run", "_settings", "_since", "_soon_at", "_stops",
        "_totals", "history", "key", "state",
    )  # fmt: skip

    def __init__(
        self, key: LinkKey, plan: LinkPlan, settings: LinkSettings, dependencies: LinkDependencies
    ) -> None:
        self.key = key
        self.state = LinkState.STOPPED
        self.history: Samples | None = None
        self._plan = plan
        self._settings = settings
        self._dependencies = dependencies
        self._since = dependencies.turn.now()
        self._down_since = self._since
        self._reason = ""
        self._last_error: BrokerRefused | None = None
        self._last_error_at = 0
        self._next_attempt_at = 0
        # True from `start` to `stop`, and while the coroutine that runs the link has not ended.
        self._is_wanted = False
        self._is_running = False
        # True if no pause precedes the next attempt.
        self._is_restarting = False
        # Attempts since the last run that was set up, and their errors as far as they were logged.
        self._failure_count = 0
        self._logged_errors: set[str] = set()
        # The attempt that waits to be granted, or begins.
        self._permit: Attempt | None = None
        # The run and its number; the back-off; the pause between two runs; who waits for the stop.
        self._run: LinkRun | None = None
        self._attempt = 0
        self._delay_ms = limits_relay.LINK_RECONNECT_MIN_MS
        # When a pause was last shorter than the settings say, because the link had worked; None: never.
        self._soon_at: int | None = None
        self._pause: Answer[None] | None = None
        self._stops: list[Answer[None]] = []
        self._totals = LinkCounters()

    def start(self) -> None:
        """Run until `stop`; while an old run is being closed, the new one begins after it."""
        if not self._is_wanted:
            self._is_wanted = True
            if not self._is_running:
                drive(self._relay())

    async def stop(self) -> None:
        """Stop: settle what the destination confirms within a bounded time, and close both ends."""
        self._is_wanted = False
        self._interrupt()
        if self._is_running:
            stop: Answer[None] = Answer()
            self._stops.append(stop)
            await stop

    def restart(self) -> None:
        """End the run, or the pause, and begin anew at once; starts a stopped link."""
        self._is_restarting = True
        if self._is_wanted:
            self._interrupt()
        else:
            self.start()

    def fail(self, error: BrokerRefused) -> None:
        """End the run because of `error`; ignored between two runs."""
        if self._run is not None:
            self._run.fail(error)

    @property
    def user(self) -> str:
        """The user with whose rights a link publishes at this node."""
        return self._settings.destination.user

    def status(self) -> LinkStatus:
        """Return what is known about the link now."""
        run = self._run
        forwarder = run.forwarder if run is not None else None
        source = run.source if run is not None else None
        destination = run.destination if run is not None else None
        hold, hold_since = forwarder.hold() if forwarder is not None else (Hold.NONE, 0)
        error = self._last_error
        delivery = run.delivery if run is not None else delivery_of(self._settings, None, None)
        return LinkStatus(
            key=self.key,
            state=self.state,
            since=self._since,
            reason=self._reason,
            last_error=error.text if error is not None else "",
            last_error_code=error.code if error is not None else 0,
            last_error_at=self._last_error_at,
            next_attempt_at=self._next_attempt_at,
            connected_at=self._since if self.state is LinkState.RUNNING else 0,
            down_since=0 if self.state is LinkState.RUNNING else self._down_since,
            source_uri=source.uri
            if source is not None
            else self._settings.source.shown_uri(max(0, self._attempt - 1)),
            destination_uri=destination.uri if destination is not None else "",
            counters=self._counters(),
            pending=forwarder.waiting_count if forwarder is not None else 0,
            unconfirmed=forwarder.unconfirmed_count if forwarder is not None else 0,
            prefetch_count=self._settings.prefetch_count,
            unconfirmed_since=forwarder.unconfirmed_since if forwarder is not None else 0,
            rate_max=self._settings.rate_max,
            hold=hold,
            hold_since=hold_since,
            hold_reason=forwarder.blocked_reason if forwarder is not None else "",
            remaining=forwarder.unsettled_remaining if forwarder is not None else -1,
            remaining_unacked=forwarder.remaining if forwarder is not None else -1,
            delivered_at=forwarder.delivered_at if forwarder is not None else 0,
            delivered_timestamp=timestamp_ms(forwarder.delivered_properties) if forwarder is not None else 0,
            source_ready=run.source_ready if run is not None else -1,
            source_counted_at=run.source_counted_at if run is not None else 0,
            paused_since=run.paused_since if run is not None else 0,
            delivery=delivery.guarantee,
            delivery_reason=delivery.reason,
        )

    # --- private ----------------------------------------------------------------------------------

    def _interrupt(self) -> None:
        """End the run or the pause."""
        if self._run is not None:
            self._run.end()
        if self._pause is not None:
            self._pause.complete(None)
        if self._permit is not None:
            self._permit.granted.complete(None)

    async def _relay(self) -> None:
        """Run and pause until the link is not wanted."""
        self._is_running = True
        is_completed = False
        self._enter(LinkState.STARTING, "")
        await self._wait_for_attempt(is_retry=False)
        if not self._is_wanted:
            await self._end_unstarted()
        while self._is_wanted:
            run = await self._run_once()
            is_completed = run.is_completed
            if self._is_wanted:
                await self._wait(run)
            is_tried = run.is_torn_down or run.is_abandoned
            if not (self._is_wanted or is_tried) and self._plan.leaves_objects:
                await self._tear_down(run)
        self._is_running = False
        self._enter(LinkState.STOPPED, _COMPLETED if is_completed else _STOPPED)
        stops, self._stops = self._stops, []
        for stop in stops:
            stop.complete(None)
        if is_completed:
            self._plan.completed()

    async def _run_once(self) -> LinkRun:
        """Perform one run: set it up, let it forward until it ends, and close it."""
        run = self._run = self._new_run()
        self._attempt += 1
        self._is_restarting = False
        if self.state is not LinkState.STARTING:
            self._enter(LinkState.STARTING, "")
        permit, self._permit = self._permit, None
        drive(self._set_up(run, permit))
        error = await run.outcome
        self._failure_count = 0 if run.is_set_up else self._failure_count + 1
        if error is not None:
            self._note_error(error)
        if run.is_completed:
            self._is_wanted = False
        self._enter(LinkState.TERMINATED, error.text if error is not None else self._planned_end(run))
        await self._close(run, error)
        self._totals = self._counters()
        self._run = None
        return run

    def _new_run(self) -> LinkRun:
        dependencies = self._dependencies
        return LinkRun(
            self._plan,
            self._settings,
            dialer=dependencies.dialer,
            turn=dependencies.turn,
            after=dependencies.after,
            log=dependencies.log,
            count_failure=lambda: dependencies.count_failure(self.key.vhost),
            name=self._name(),
            attempt=self._attempt,
        )

    def _note_error(self, error: BrokerRefused) -> None:
        """Keep the error that has ended a run; log it unless it was logged since the link last worked."""
        self._last_error = error
        self._last_error_at = self._dependencies.turn.now()
        logged = self._logged_errors
        is_new = error.text not in logged and len(logged) < limits_relay.LINK_ERRORS_LOGGED_MAX
        if is_new:
            logged.add(error.text)
        level = "warning" if is_new else "debug"
        self._dependencies.log(level, f"{self._name()} has ended: {error.text}", {})

    async def _end_unstarted(self) -> None:
        """End a link that was stopped before its first attempt; an earlier run of the node may have left
        objects.
        """
        self._enter(LinkState.TERMINATED, _STOPPED)
        if self._plan.leaves_objects:
            run = self._new_run()
            run.end()
            run.set_up_ended.complete(None)
            await self._tear_down(run)

    def _planned_end(self, run: LinkRun) -> str:
        """Return why `run` has ended without an error."""
        if run.is_completed:
            return _COMPLETED
        return _RESTARTED if self._is_wanted else _STOPPED

    async def _set_up(self, run: LinkRun, permit: Attempt | None) -> None:
        try:
            await self._plan.set_up(run)
            run.is_set_up = True
        except BrokerRefused as error:
            run.fail(error)
        except Exception as error:
            # A link is the unit that a broken invariant ends: it tries again, and others go on.
            run.failed(error)
        run.set_up_ended.complete(None)
        if permit is not None:
            permit.end()
        if not run.is_set_up:
            return
        if not run.is_ended:
            self._logged_errors.clear()
            self._enter(LinkState.RUNNING, "")
            if not run.forwarder.remaining and not run.forwarder.unconfirmed_count:
                run.completed()

    async def _close(self, run: LinkRun, error: BrokerRefused | None) -> None:
        """Close the connections of `run`; one that ended as planned settles and is torn down before."""
        if error is None:
            self._dependencies.after(limits_relay.LINK_SETTLE_MS, lambda: run.settled.complete(None))
            await run.settle()
            if run.is_set_up and not self._is_wanted:
                await self._tear_down(run)
        await run.close()

    async def _tear_down(self, run: LinkRun) -> None:
        """Have the plan tear down `run` within a bounded time, once it sets nothing up any more."""
        end: Answer[None] = Answer()
        self._dependencies.after(limits_relay.LINK_SETTLE_MS, lambda: end.complete(None))
        drive(self._call_tear_down(run, end))
        await end
        run.abandon()

    async def _call_tear_down(self, run: LinkRun, end: Answer[None]) -> None:
        await run.set_up_ended
        if run.is_abandoned:
            return
        try:
            await self._plan.tear_down(run)
            run.is_torn_down = True
        except BrokerRefused as error:
            self._dependencies.log("warning", f"{self._name()} could not be torn down: {error.text}", {})
        except Exception as error:
            run.failed(error)
        end.complete(None)

    async def _wait(self, run: LinkRun) -> None:
        """Pause before the next attempt, as long as the settings or the back-off say."""
        now = self._dependencies.turn.now()
        if self._is_restarting:
            self._delay_ms = limits_relay.LINK_RECONNECT_MIN_MS
            await self._wait_for_attempt(is_retry=False)
            return
        pause: Answer[None] = Answer()
        self._pause = pause
        delay_ms = self._delay_ms
        if self._settings.reconnect_delay_ms is not None:
            delay_ms = self._fixed_delay_ms(run, self._settings.reconnect_delay_ms)
        elif run.has_worked:
            delay_ms = self._delay_ms = limits_relay.LINK_RECONNECT_MIN_MS
        self._delay_ms = min(self._delay_ms * 2, limits_relay.LINK_RECONNECT_MAX_MS)
        if delay_ms:
            self._next_attempt_at = now + delay_ms
            self._dependencies.after(delay_ms, lambda: pause.complete(None))
        await pause
        self._pause = None
        self._next_attempt_at = 0
        await self._wait_for_attempt(is_retry=self._failure_count > 0 and not self._is_restarting)

    async def _wait_for_attempt(self, *, is_retry: bool) -> None:
        """Wait until the node may have one more attempt, or the link is stopped or restarted."""
        if not self._is_wanted:
            return
        permit = self._permit = self._dependencies.attempts.request(is_retry=is_retry)
        await permit.granted
        # Neither a stop nor an operator's restart waits.
        if not (permit.is_granted and self._is_wanted):
            permit.end()
            self._permit = None

    def _fixed_delay_ms(self, run: LinkRun, delay_ms: int) -> int:
        """The pause after `run` if `delay_ms` is set: shorter if the run was set up, once in `delay_ms`.

        So a link that worked continues soon, as RabbitMQ's do, and one that ends again and again does not.
        Behind many failures it is doubled.
        """
        now = self._dependencies.turn.now()
        if not run.is_set_up:
            doublings = max(0, self._failure_count - limits_relay.LINK_FIXED_DELAYS_MAX)
            return max(delay_ms, min(delay_ms << min(doublings, 16), limits_relay.LINK_RECONNECT_MAX_MS))
        if self._soon_at is not None and now - self._soon_at < delay_ms:
            return delay_ms
        self._soon_at = now
        return min(delay_ms, limits_relay.LINK_RECONNECT_MIN_MS)

    def _enter(self, state: LinkState, reason: str) -> None:
        assert state in _TRANSITIONS[self.state], f"{self.state} → {state}"
        self._since = self._dependencies.turn.now()
        if self.state in (LinkState.RUNNING, LinkState.STOPPED):
            self._down_since = self._since
        self.state = state
        self._reason = reason
        self._dependencies.changed(self)

    def _counters(self) -> LinkCounters:
        """Return the counters of all runs."""
        totals = self._totals
        run = self._run
        if run is None:
            return totals
        forwarder = run.forwarder
        return LinkCounters(
            forwarded=totals.forwarded + forwarder.forwarded_count,
            confirmed=totals.confirmed + forwarder.confirmed_count,
            dropped=totals.dropped + forwarder.dropped_count,
            rejected=totals.rejected + forwarder.rejected_count,
            redelivered=totals.redelivered + forwarder.redelivered_count,
            restarts=max(0, self._attempt - 1),
        )

    def _name(self) -> str:
        """Return what a line of the log calls the link."""
        key = self.key
        if key.kind is LinkKind.SHOVEL:
            return f"shovel {key.name!r} of vhost {key.vhost!r}"
        return f"federation of {key.kind} {key.name!r} of vhost {key.vhost!r} with upstream {key.upstream!r}"


def timestamp_ms(property_list: bytes) -> int:
    """Return the property `timestamp` in ms; 0 if there is none."""
    return (BasicProperties.decode_list(property_list).timestamp or 0) * 1000

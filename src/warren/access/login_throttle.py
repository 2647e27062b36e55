"""Delays logins after failures: each failure makes the delay longer, and failures count less as time passes.

1. A failure slows down the address it came from, not other addresses. A user name that is guessed from many
   addresses is delayed everywhere, but never refused.
2. A user who has recently logged in from an address is slowed down there by failures of that user name only,
   so that a stranger behind the same gateway does no harm.
3. An attempt is refused unchecked only because of its own address, if more attempts already wait there than
   can be checked in time.

The weight of a failure halves every minute. All tables are bounded; the least recently used entry is evicted.
"""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from math import exp2
from typing import Generic, TypeVar

from msgspec import Struct

from warren.limits import (
    LOGIN_ADDRESSES_MAX,
    LOGIN_DELAY_MS,
    LOGIN_DELAY_MS_MAX,
    LOGIN_FAILURE_HALF_LIFE_MS,
    LOGIN_FAILURES_FREE,
    LOGIN_KNOWN_MS,
    LOGIN_NAME_DELAY_MS_MAX,
    LOGIN_WAIT_MS_MAX,
    NAME_SIZE_MAX,
)

Value = TypeVar("Value")

# One subscriber usually has a whole /64 network of IPv6 addresses.
_IPV6_SUBSCRIBER_BITS = 64


class LoginThrottleSettings(Struct, frozen=True, kw_only=True):
    """The number of failures after which logins are delayed, and the longest delay; None disables delays."""

    failures_free: int | None = LOGIN_FAILURES_FREE
    delay_ms_max: int = LOGIN_DELAY_MS_MAX


class LoginThrottle:
    """The failed and successful logins of one node."""

    __slots__ = ("_addresses", "_known", "_names", "_pairs", "_settings")

    def __init__(self, settings: LoginThrottleSettings) -> None:
        self._settings = settings
        self._addresses: _LruMap[str, _Failures] = _LruMap()
        self._names: _LruMap[str, _Failures] = _LruMap()
        # Failures by address and user name, for users who are known at that address.
        self._pairs: _LruMap[tuple[str, str], _Failures] = _LruMap()
        # The last successful login (ms) by address and user name.
        self._known: _LruMap[tuple[str, str], int] = _LruMap()

    def wait_ms(self, host: str, name: str, now: int) -> int | None:
        """The delay in ms before an attempt is checked; None if the attempt is refused unchecked."""
        if self._settings.failures_free is None:
            return 0
        address, name = _address(host), name[:NAME_SIZE_MAX]
        if self._is_known(address, name, now):
            return self._turn_of(self._pairs.get((address, name)), now)
        turn = self._turn_of(self._addresses.get(address), now)
        names = self._names.get(name)
        if turn is None or names is None:
            return turn
        return max(turn, min(self._delay(names, now), LOGIN_NAME_DELAY_MS_MAX))

    def failed(self, host: str, name: str, now: int) -> bool:
        """Record a failed login; True if it is the first one that delays later attempts."""
        free = self._settings.failures_free
        if free is None:
            return False
        address, name = _address(host), name[:NAME_SIZE_MAX]
        if self._is_known(address, name, now):
            return self._count(self._pairs.setdefault((address, name), _Failures(now)), now)
        self._count(self._names.setdefault(name, _Failures(now)), now)
        return self._count(self._addresses.setdefault(address, _Failures(now)), now)

    def succeeded(self, host: str, name: str, now: int) -> None:
        """Record a login of `name` from `host`; failures from `host` still count for other users."""
        pair = (_address(host), name[:NAME_SIZE_MAX])
        self._known.put(pair, now)
        self._pairs.forget(pair)

    def _is_known(self, address: str, name: str, now: int) -> bool:
        since = self._known.get((address, name))
        return since is not None and now - since < LOGIN_KNOWN_MS

    def _turn_of(self, failures: "_Failures | None", now: int) -> int | None:
        """The time (ms) at which the next attempt may be checked, one by one.

        None if that is too far ahead.
        """
        delay = 0 if failures is None else self._delay(failures, now)
        if failures is None or not delay:
            return 0
        turn = max(failures.next_at, now)
        if turn - now > LOGIN_WAIT_MS_MAX:
            return None
        failures.next_at = turn + delay
        return turn - now

    def _count(self, failures: "_Failures", now: int) -> bool:
        had_delay = self._delay(failures, now) > 0
        failures.count = failures.count_at(now) + 1
        failures.counted_at = now
        delay = self._delay(failures, now)
        failures.next_at = max(failures.next_at, now + delay)
        return delay > 0 and not had_delay

    def _delay(self, failures: "_Failures", now: int) -> int:
        free = self._settings.failures_free
        assert free is not None
        excess = failures.count_at(now) - free
        if excess <= 0:
            return 0
        most = self._settings.delay_ms_max
        # More doublings than this exceed any bound.
        return int(min(LOGIN_DELAY_MS * 2 ** min(excess, 32), most))


class _Failures(Struct):
    """The failures of one address, one user name, or one pair of them."""

    counted_at: int
    count: float = 0.0
    # The time (ms) from which the next attempt may be checked, if attempts are delayed.
    next_at: int = 0

    def count_at(self, now: int) -> float:
        """The number of failures at `now`, with the weight of each halved every minute."""
        return self.count * exp2((self.counted_at - now) / LOGIN_FAILURE_HALF_LIFE_MS)


Key = TypeVar("Key")


class _LruMap(Generic[Key, Value]):
    """A bounded map that evicts the least recently used entry."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: Key, value: Value) -> None:
        self._values.pop(key, None)
        if len(self._values) >= LOGIN_ADDRESSES_MAX:
            del self._values[next(iter(self._values))]
        self._values[key] = value

    def setdefault(self, key: Key, value: Value) -> Value:
        found = self.get(key)
        if found is None:
            self.put(key, value)
            return value
        return found

    def forget(self, key: Key) -> None:
        self._values.pop(key, None)


@lru_cache(1024)
def _address(host: str) -> str:
    """The key under which failures of `host` count: the address for IPv4, the /64 network for IPv6."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> _IPV6_SUBSCRIBER_BITS:x}"

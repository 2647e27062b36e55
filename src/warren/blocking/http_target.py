"""The server that an HTTP client sends its requests to."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """The address of an HTTP API, and the user of its requests."""

    host: str
    port: int
    is_tls: bool
    user: str
    password: str = field(repr=False)
    # In front of the path of every request.
    prefix: str = ""

    @property
    def origin(self) -> str:
        """Return the URL without user and path."""
        return f"{'https' if self.is_tls else 'http'}://{self.host}:{self.port}"

"""How a close is worded: RabbitMQ cuts the text to what a short string holds."""

from warren.errors import AmqpError
from warren.limits import NAME_SIZE_MAX

_ELLIPSIS = b"..."


def close_text(error: AmqpError) -> str:
    """The reply-text for `error`, 255 octets at most."""
    text = error.reply_text.encode("utf-8", "surrogateescape")
    if len(text) > NAME_SIZE_MAX:
        text = text[: NAME_SIZE_MAX - len(_ELLIPSIS)] + _ELLIPSIS
    return text.decode("utf-8", "ignore")

"""Why a node does not start."""


class BootRefused(Exception):
    """The node cannot start; the text is one line for whoever started it."""

"""Why a node does not start, or go on."""


class BootRefused(Exception):
    """The node cannot start; the text is one line for the operator."""


class NodeFailed(Exception):
    """The node has ended by itself; the text is one line for whoever started it."""

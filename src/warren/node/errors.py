"""Errors that prevent a node from starting, or end it."""


class BootRefused(Exception):
    """The node cannot start; the text is one line for the operator."""


class NodeFailed(Exception):
    """The node has ended by itself; the text is one line for the operator."""

"""What a simulated broker has done wrong."""


class Violation(Exception):
    """A promise was broken, as the text says."""

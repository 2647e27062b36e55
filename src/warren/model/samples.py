"""The port by which samples of an object's counters are kept with the object."""


class Samples:
    """Port: the samples of one object; the sampler subclasses it, and everything else only holds it."""

    __slots__ = ()

"""The port that stores samples of an object's counters with the object."""


class Samples:
    """Port: the samples of one object; subclassed by the sampler, opaque to all others."""

    __slots__ = ()

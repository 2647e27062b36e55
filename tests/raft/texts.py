"""Values of the Raft core as the published vectors print them."""

from warren.replication.raft.change import Configuration


def configuration_text(configuration: Configuration) -> str:
    """Return a configuration as text."""
    text = f"voters={_group(configuration.voters)}"
    if configuration.outgoing:
        text += f"&&{_group(configuration.outgoing)}"
    if configuration.learners:
        text += f" learners={_group(configuration.learners)}"
    if configuration.learners_next:
        text += f" learners_next={_group(configuration.learners_next)}"
    return text + " autoleave" * configuration.auto_leave


def _group(replicas: tuple[int, ...]) -> str:
    return f"({' '.join(map(str, replicas))})"

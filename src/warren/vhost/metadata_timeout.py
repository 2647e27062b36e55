"""The error of a method whose change of the metadata no majority of the cluster has agreed on in time."""

from warren.errors import MetadataTimeout
from warren.model.names import ExchangeName, QueueName


def metadata_timeout(action: str, entity: QueueName | ExchangeName, node_name: str) -> MetadataTimeout:
    """The error with the text of RabbitMQ 4: `action` is a verb, `node_name` the node of the client."""
    return MetadataTimeout(
        f"Could not {action} {entity} on node '{node_name}' because the metadata store operation timed out"
    )

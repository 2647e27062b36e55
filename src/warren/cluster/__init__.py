"""The nodes of a cluster: links, members, agreement on the metadata, and queues on other nodes."""

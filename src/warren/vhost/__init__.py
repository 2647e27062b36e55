"""Virtual hosts: live exchanges, queues and bindings, and the operations on them."""

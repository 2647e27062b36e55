"""The Raft core: replicas that agree on a log, without I/O, clocks or chance."""

"""The quorum queue: a queue whose messages and decisions are agreed on by a Raft group."""

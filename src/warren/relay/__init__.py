"""What shovels and federation links share: connections to both ends, forwarding, states and restarts."""

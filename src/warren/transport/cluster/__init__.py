"""The sockets of links between the nodes of a cluster: listening, dialing, TLS, and the cookie."""

"""What goes on behind a request: messages are moved, a piece in each turn, watched, and stopped."""

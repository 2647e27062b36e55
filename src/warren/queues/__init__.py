"""What waits."""

"""The metadata on the disk."""

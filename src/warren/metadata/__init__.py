"""What exists: a deterministic machine over commands."""

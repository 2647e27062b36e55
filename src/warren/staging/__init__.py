"""Staged publishes: rows received as Arrow and published exactly once when their batch is committed."""

"""Fetches the test suites of third-party clients, runs them against a broker and judges their results."""

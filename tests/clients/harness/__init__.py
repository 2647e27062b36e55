"""Fetches foreign clients' own test suites, runs them against a broker and judges what they print."""

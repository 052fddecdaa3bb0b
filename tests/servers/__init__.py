"""Servers that the tests start and stop themselves: the real thing, on loopback, without containers."""

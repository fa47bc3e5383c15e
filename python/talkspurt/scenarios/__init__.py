"""Scenarios: read from any source, resolved, and the inputs that they name."""

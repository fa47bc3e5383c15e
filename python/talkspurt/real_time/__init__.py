"""Measurements and calls over real paths."""

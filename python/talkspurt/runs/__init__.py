"""Execution of the runs of a plan."""

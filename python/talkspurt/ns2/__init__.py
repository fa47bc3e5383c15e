"""The same experiment in ns-2.35: its script, its trace, and both simulators side by side."""

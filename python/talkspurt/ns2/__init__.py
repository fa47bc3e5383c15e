"""The same experiment in ns-2.35: its script, its trace, and a comparison of both simulators."""

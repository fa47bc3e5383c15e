"""Terminal output: progress during a run, tables afterwards."""

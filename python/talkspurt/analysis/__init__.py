"""What the numbers of results mean: means, causes, warnings and sensitivity."""

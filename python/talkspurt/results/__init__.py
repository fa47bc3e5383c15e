"""Results of runs and studies: their data, their checks, and what can be done with them."""

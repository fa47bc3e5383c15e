"""What a person sees in a terminal: progress while a scenario runs, tables when it has."""

"""Text for people: escaped, formatted, with answers to mistakes."""

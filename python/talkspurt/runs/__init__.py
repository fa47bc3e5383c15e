"""The runs of a plan: executed, repeated for an export, and merged from shards."""

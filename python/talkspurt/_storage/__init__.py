"""Folders of results: files, locks, space, interrupts and remote places."""

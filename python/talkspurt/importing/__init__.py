"""``talkspurt import``: traces of ns-2 and captures of real traffic, as results.

``ns2`` and ``capture`` read files into directions of flows; ``tables`` makes the tables of a run of
them. What a trace does not contain is null. The manifest has a key ``imported``: the files with
their hashes, what was assumed, and facts about each flow that no table has a column for.
"""

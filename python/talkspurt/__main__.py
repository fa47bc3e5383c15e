"""``python -m talkspurt``: the command line."""

from talkspurt.cli import main

main()

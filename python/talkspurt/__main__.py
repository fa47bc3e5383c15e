"""The entry point of the command line, also as ``python -m talkspurt``."""

import gc
import os
import signal


def main() -> None:
    """Import the commands, which takes a third of a second, and run one."""
    signal.signal(signal.SIGINT, _on_stop)
    # Imports create many objects and no garbage, but by default every 700th starts a collection.
    gc.set_threshold(50_000)
    from talkspurt._commands import main as run

    run()


def _on_stop(number: int, _frame: object) -> None:
    """End the process: an exception in an import could be printed and ignored by Python."""
    os.write(2, b"talkspurt: stopped; nothing was written\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()

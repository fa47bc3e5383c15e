"""What two of ns-2's rules for TCP's window cost where losses are random, by windows alone.

ns-2's senders add 1/cwnd of a packet for each acknowledgement and send as many packets as cwnd has
whole ones; after a loss the threshold is half the window, rounded down (tcp/tcp.cc: `opencwnd` with
`windowOption_` 1, `slowdown`). Ours add a packet when a window has been acknowledged, and halve
bytes. Nothing else of TCP is here: rounds of a window each, every packet lost with the same
probability, a round more for what was lost.
"""

from __future__ import annotations

import random

LOSS = 0.01
PACKETS = 1_000_000


def per_round(*, tahoe: bool, ns2: bool) -> float:
    """Packets sent in a round trip, on average."""
    dice = random.Random(1)
    window, threshold = 2.0, float("inf")
    counted, sent, rounds = 0, 0, 0
    while sent < PACKETS:
        flight = int(window)
        sent += flight
        rounds += 1
        if sum(dice.random() < LOSS for _ in range(flight)):
            threshold = max(2.0, flight // 2 if ns2 else flight / 2)
            window, counted = (1.0 if tahoe else threshold), 0
            rounds += 1
            continue
        for _ in range(flight):
            if window < threshold:
                window += 1
            elif ns2:
                window += 1 / window
            else:
                counted += 1
                if counted >= window:
                    window, counted = window + 1, 0
    return sent / rounds


def cost(*, tahoe: bool) -> float:
    """How much less the rules of ns-2 send, as a share."""
    return per_round(tahoe=tahoe, ns2=True) / per_round(tahoe=tahoe, ns2=False) - 1

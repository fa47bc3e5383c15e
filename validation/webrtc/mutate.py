"""Event logs and dumps with random changes are read, or refused with one clear error.

    python validation/webrtc/mutate.py log COUNT [SEED]
    python validation/webrtc/mutate.py dump COUNT [SEED]

Starts from the recorded log and dump of the tests, cut to one event or a few series each, so that
a change hits a field rather than a value. Prints the counts; any other exception ends it with the
seed and the input.
"""

import collections
import gzip
import itertools
import json
import random
import sys
from pathlib import Path

from talkspurt.importing.webrtc import dump, eventlog, streams, wire

DATA = Path(__file__).parents[2] / "tests" / "data" / "webrtc"
INTERESTING = [0, 1, 0x7F, 0x80, 0xFF]
VALUES = [
    "null", "-1", "0", "1e308", "1" + "0" * 25, '""', '"x"', '"NaN"', "[]", "{}", "[1, 2]",
    '{"a": 1}', "true", '"[1,null]"',
]  # fmt: skip
WORDS = [b"null", b"-1", b"1e999", b'""', b"[]", b"{}", b'"NaN"', b"9" * 25, b"]", b'"', b","]


def logs() -> list[bytes]:
    """Each event of the recording alone, behind the first one, and the first events together."""
    data = (DATA / "loss.b.rtc-event-log").read_bytes()
    begins = [begin for begin, _, _ in wire.fields(data)]
    events = [data[at:end] for at, end in itertools.pairwise([*begins, len(data)])]
    return [events[0] + event for event in events] + [data[:2000]]


def dumps() -> list[bytes]:
    """The recorded dump with two values of a few series."""
    whole = json.loads(gzip.decompress((DATA / "loss.b.txt.gz").read_bytes()))
    (connection,) = whole["PeerConnections"].values()
    connection["updateLog"] = connection.get("updateLog", [])[:2]
    by_kind: dict[str, dict[str, object]] = collections.defaultdict(dict)
    small = list(connection["stats"].items())[:400]
    for name, series in small:
        if "values" in series:
            series["values"] = json.dumps(json.loads(series["values"])[:2])
        by_kind[name.rpartition("-")[0]][name] = series
    found = []
    for stats in [*list(by_kind.values())[:3], dict(random.Random(0).sample(small, 20))]:
        connection["stats"] = stats
        found.append(json.dumps({**whole, "PeerConnections": {"1-1": connection}}).encode())
    return found


def changed(data: bytes, rng: random.Random, *, text: bool) -> bytes:
    """One to three changes: a byte, a word, a cut, a repetition."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) or 1)
        what = rng.random()
        if what < 0.5 or not out:
            out[at : at + 1] = bytes([rng.choice([*INTERESTING, rng.randrange(256)])])
        elif what < 0.7:
            out[at : at + rng.randint(0, 12)] = rng.choice(WORDS) if text else rng.randbytes(3)
        elif what < 0.85:
            out[at : at + rng.randint(0, 40)] = out[at : at + rng.randint(0, 40)] * 2
        else:
            del out[at : at + rng.choice([1, 8, 10_000])]
    return bytes(out)


def restructured(data: bytes, rng: random.Random) -> bytes:
    """Another value at one to three places of a document, which stays one."""
    top = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        at = top
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(at[key], dict | list) and rng.random() < 0.9:
                at = at[key]
                continue
            at[key] = json.loads(rng.choice(VALUES))
            break
    return json.dumps(top).encode()


def main(kind: str, count: int, seed: int) -> None:
    """Change, read, count."""
    rng = random.Random(seed)
    seeds = logs() if kind == "log" else dumps()
    outcomes: collections.Counter[str] = collections.Counter()
    for _ in range(count):
        data = rng.choice(seeds)
        if kind == "dump" and rng.random() < 0.8:
            data = restructured(data, rng)
        else:
            data = changed(data, rng, text=kind == "dump")
        try:
            if kind == "log":
                found = eventlog.read(data)
                eventlog.rows(found)
                list(eventlog.gauges(found))
            else:
                streams.trace(dump.read(data))
            outcomes["read"] += 1
        except (wire.EventLogError, dump.DumpError):
            outcomes["refused"] += 1
        except BaseException:
            print(f"seed {seed}: {data.hex()}", file=sys.stderr)
            raise
    sizes = f"{len(seeds)} seeds of {min(map(len, seeds))} to {max(map(len, seeds))} bytes"
    print(f"{kind}: {count} inputs of seed {seed}: {dict(outcomes)}; {sizes}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)

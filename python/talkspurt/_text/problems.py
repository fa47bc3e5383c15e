"""Errors in a scenario: as text, and with answers to known words that talkspurt does not have.

The Rust parser suggests the word with the most similar spelling. That misleads for words of the
field that are not supported yet, or that talkspurt has under another name.
"""

from __future__ import annotations

import re

from talkspurt import _core


def text(problem: _core.Problem) -> str:
    """An error in compiler format: ``file:line: path: message – hint``."""
    where = problem["file"] or "scenario"
    if problem["line"] is not None:
        where += f":{problem['line']}"
    words = [where, *([problem["path"]] if problem["path"] else []), problem["message"]]
    return ": ".join(words) + (f" – {problem['hint']}" if problem["hint"] else "")


def answered(error: _core.ScenarioError) -> _core.ScenarioError:
    """The same errors, with answers to known words in place of similar spellings."""
    problems = [_answered(problem) for problem in error.problems]
    if problems == error.problems:
        return error
    return _core.ScenarioError("\n".join(map(text, problems)), problems)


def _answered(problem: _core.Problem) -> _core.Problem:
    found = _UNKNOWN.search(problem["message"])
    if not found:
        return problem
    hint = answer(found[1] or problem["path"].rpartition(".")[2])
    return problem if hint is None else {**problem, "hint": hint}


def answer(word: str) -> str | None:
    """What to use in place of a word of the field; None if it is not in the tables below."""
    plain = re.sub(r"[-_. /]", "", word.lower())
    if plain in _OTHER_NAMES:
        return f"in talkspurt: {' or '.join(_OTHER_NAMES[plain])}"
    if plain not in _NOT_YET:
        return None
    _, nearest, remark = _NOT_YET[plain]
    hint = f"talkspurt does not support {word} yet; the nearest is {' or '.join(nearest)}"
    return f"{hint} ({remark})" if remark else hint


_UNKNOWN = re.compile(r'(?:unknown word|has no|found the text) "([^"\\]*)"$|unknown key')
"""The parser's message about a word or, in the path, a key that it does not know."""


NOT_YET: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # words, nearest alternatives as TOML, remark
    ("silk speex", ('codec = "opus"',), ""),
    ("amrwb g7222 evs", ('codec = "opus"', 'codec = "g722"'), "wideband"),
    ("gsm efr gsmefr ilbc", ('codec = "amr-12.2"', 'codec = "g729"'), ""),
    ("lyra codec2 satin encodec melp", ('codec = "g723.1-5.3"',), "5.3 kbit/s"),
    ("aac aacld aaceld lc3 lc3plus", ('codec = "opus"',), "also for music"),
    (
        "quic quicdatagram http3 h3 moq rtpoverquic roq webtransport",
        ('transport = { kind = "sctp", ordered = false }',),
        "messages that do not wait for each other, under congestion control",
    ),
    (
        "webrtc",
        ('controller = { kind = "gcc" }', 'transport.kind = "sctp"'),
        "RTP media over UDP that react, or data channels",
    ),
    ("mptcp mpquic", ('transport.kind = "sctp"',), "with `paths`"),
    (
        "srt rist zixi",
        ('transport = { kind = "sctp", ordered = false, lifetime = "200ms" }',),
        "which repeats what can still arrive in time",
    ),
    ("udplite", ('transport.kind = "udp"', 'transport.kind = "dccp"'), ""),
    (
        "scream sqp",
        ('controller = { kind = "nada" }', 'controller = { kind = "gcc" }'),
        "in a flow of RTP over UDP, which react to delay and loss",
    ),
    ("bbr1 bbrv1 bbr2 bbrv2", ('controller = "bbr"',), "which is BBR version 3"),
    (
        "vegas copa ledbat ledbat++ fast tcpfast timely swift vivace pcc",
        ('controller = "bbr"',),
        "which does not wait for losses either",
    ),
    (
        "westwood westwood+ compound ctcp illinois htcp hstcp bic hybla yeah scalable veno",
        ('controller = "cubic"',),
        "",
    ),
    ("cake", ('queue.kind = "fq_codel"',), "to shape as well, in a queue of kind shaper"),
    ("fq fqpie fqcobalt", ('queue.kind = "fq_codel"',), ""),
    ("sfq drr drr++ wfq wf2q scfq sced", ('queue.kind = "fq_codel"',), ""),
    ("cobalt", ('queue.kind = "codel"',), ""),
    ("pi pi2", ('queue.kind = "pie"',), ""),
    ("blue sfb choke rem avq gred wred", ('queue.kind = "red"',), ""),
)
"""Words of the field that are not supported yet."""

OTHER_NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rtx arq", ("source.repair = {}",)),
    ("g711 pcm", ('codec = "pcmu"', 'codec = "pcma"')),
    ("g711u g711ulaw ulaw mulaw", ('codec = "pcmu"',)),
    ("g711a g711alaw alaw", ('codec = "pcma"',)),
    ("g726", ('codec = "g726-32"',)),
    ("amr amrnb", ('codec = "amr-12.2"',)),
    ("g723 g7231", ('codec = "g723.1-6.3"',)),
    ("rtp srtp rtpudp", ('transport.kind = "udp"',)),
    ("http http1 http2 websocket websockets rtmp dash hls", ('transport.kind = "tcp"',)),
    ("tfrctb", ('transport = { kind = "tfrc", rate = { token_bucket = {} } }',)),
    ("googcc transportcc remb", ('controller = { kind = "gcc" }',)),
    ("bbr3 bbrv3", ('controller = "bbr"',)),
    ("tcpprague", ('controller = "prague"',)),
    ("l4s dualq", ('queue.kind = "dualpi2"', 'controller = "prague"')),
    ("fifo pfifo bfifo pfifofast taildrop", ('queue = { kind = "droptail", packets = 100 }',)),
    ("tbf htb hfsc", ('queue.kind = "shaper"',)),
    ("prio strictpriority", ('queue.kind = "priority"',)),
    ("ared adaptivered", ('queue = { kind = "red", packets = 100, adaptive = true }',)),
    ("netem dummynet", ('delay = "20ms"', 'jitter = "5ms"', "loss = 0.01")),
    ("latency propagation", ('delay = "20ms"',)),
    ("bandwidth capacity", ('rate = "2Mbit/s"',)),
    ("plr packetloss lossrate", ("loss = 0.01",)),
    ("silencesuppression voiceactivitydetection", ("source.vad = {}", "source.talkspurts = {}")),
    ("lbrr inbandfec", ("source.opus = { fec = true }",)),
    ("redfec redundancy", ("source.red = 1",)),
    ("ulpfec", ("source.flexfec = { columns = 5 }",)),
    ("plc", ('playout.concealment = "g711-appendix-i"',)),
    ("jitterbuffer adaptivejitterbuffer adaptiveplayout neteq", ('playout.kind = "adaptive"',)),
)
"""Words of the field for things that talkspurt has under another name."""


_NOT_YET = {word: row for row in NOT_YET for word in row[0].split()}
_OTHER_NAMES = {word: names for words, names in OTHER_NAMES for word in words.split()}

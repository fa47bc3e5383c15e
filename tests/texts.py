"""The text of small scenarios, from their links and flows.

Values are those of TOML: a text in braces or brackets is a table or a list, any other a string.
"""

import json

UDP = '{ kind = "udp" }'
NEWRENO = '{ kind = "tcp", controller = "newreno" }'
SPEECH = '{ kind = "speech", codec = "pcmu" }'
BULK = '{ kind = "bulk" }'


def inline(kind, **more):
    """A table of this kind, for a transport, a source, a queue or a buffer."""
    return f"{{ {_lines(kind=kind, **more).strip().replace(chr(10), ', ')} }}"


def cbr(rate, packet, **more):
    """The source of so many bits a second in packets of so many bytes."""
    return inline("cbr", rate=rate, packet=packet, **more)


def speech(codec="pcmu", **more):
    """The source of a call with this codec."""
    return inline("speech", codec=codec, **more)


def tcp(controller, **more):
    """TCP under this controller."""
    return inline("tcp", controller=controller, **more)


def dccp(ccid, **more):
    """DCCP with this CCID."""
    return inline("dccp", ccid=ccid, **more)


def scenario_text(title, duration, *tables, **more):
    """A scenario of these tables, with ``more`` keys before them."""
    return "\n".join([_lines(title=title, duration=duration, **more), *tables])


def link_text(name, ends, rate, delay, packets=100, **more):
    """A link between two ends, ``a>b``, with a queue that drops the packets beyond so many."""
    queue = more.pop("queue", f'{{ kind = "droptail", packets = {packets} }}')
    ends = _ends(ends)
    return f"[links.{name}]\n" + _lines(**ends, rate=rate, delay=delay, queue=queue, **more)


def flow_text(name, ends, transport=UDP, source=SPEECH, **more):
    """A flow from one end to the other, ``a>b``."""
    return f"[flows.{name}]\n" + _lines(**_ends(ends), transport=transport, source=source, **more)


def axis_text(path, values, **more):
    """An axis of a study."""
    return "[[axes]]\n" + _lines(**more, path=path, values=values)


def put(file, text):
    """The file, with this text in it."""
    file.write_text(text, encoding="utf-8")
    return file


def _ends(ends):
    return dict(zip(("from", "to"), ends.split(">"), strict=True))


def _lines(**values):
    return "".join(
        f"{key} = {value if str(value)[0] in '{[' else json.dumps(value)}\n"
        for key, value in values.items()
    )

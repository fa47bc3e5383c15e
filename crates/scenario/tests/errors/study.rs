//! `--set` and axes.

use crate::{GOOD, sets, told};

/// [`GOOD`] with axes behind it; they begin on line 58.
fn axes(axes: &str) -> String {
    told(&format!("{GOOD}\n{axes}"), &[])
}

#[test]
fn changes() {
    insta::assert_snapshot!(sets(&[
        ("duration", "20"),
        ("duration", "soon"),
        ("durration", "20s"),
        ("flows.cal.start", "2s"),
        ("flows.call.sorce.packet", "30ms"),
        ("flows.call.source.packet.size", "30ms"),
        ("flows.*.source.packet", "30ms"),
        ("flows.*.source.codec", "pcma"),
        ("flows.call.transport.initial_ssthresh", "9"),
        ("flows.call.source.bitrate", "24kbit/s"),
        ("links.rate", "2Mbit/s"),
        ("flows.call.mss", "1kB"),
        ("flows.upload.transport.msss", "1kB"),
        ("links.bottleneck.loss", "2"),
        ("links.bottleneck.jitter", "61min"),
        ("links.bottleneck.back", "{ jitter = \"2h\" }"),
        ("links.bottleneck.events[7].at", "2s"),
        ("links.*", "1"),
        ("seed.*", "1"),
        ("a..b", "1"),
        ("flows.call.transport", "udp"),
        ("flows.call.transport", "{ kind = \"tcp\" }"),
        ("flows.call.to", "eats"),
        ("duration", "1979-05-27"),
        ("flows.call.transport.kind", "tcp"),
    ]));
}

#[test]
fn axes_that_cannot_be() {
    let all = [
        "[[axes]]\npath = \"flows.call.trnsport\"\nvalues = [1]",
        "[[axes]]\nvalues = [1]",
        "[[axes]]\npath = \"seed\"\npaths = [\"seed\"]\nvalues = [[1]]",
        "[[axes]]\npaths = []\nvalues = [1]",
        "[[axes]]\npaths = [\"seed\", \"duration\"]\nvalues = [[1, \"2s\"], [1], 3]",
        "[[axes]]\npaths = [\"seed\", \"seeed\", \"flows.x*.dscp\"]\nvalues = [[1, 2, 3]]",
        "[[axes]]\npaths = [\"flows.call.transport\", \"flows.*.transport.kind\"]\nvalues = [[{ kind = \"udp\" }, \"udp\"]]",
        "[[axes]]\npaths = [\"seed\", \"flows.call.dscp\"]\nvalues = [[1, 64], [2, 0]]",
        "[[axes]]\npath = \"flows.cal.transport\"\nvalues = [1]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = []",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"20 sec\", 30]",
        "[[axes]]\npath = \"links.*.loss\"\nvalues = [0.1, 2.0]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"30ms\"]\nlabels = [\"near\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"30ms\"]\nlabels = [\"a\", \"a\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"20ms\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\"]\n[[axes]]\npath = \"links.*.delay\"\nvalues = [\"1ms\"]",
        "[[axes]]\nname = \"a\"\npath = \"links.access.delay\"\nvalues = [\"20ms\"]\n[[axes]]\nname = \"a\"\npath = \"links.bottleneck.delay\"\nvalues = [\"1ms\"]",
        "[[axes]]\npath = \"replications.count\"\nvalues = [1, 2]",
        "[[axes]]\npath = \"flows.call.transport\"\nvalues = [{ kind = \"udp\" }, { kind = \"tcp\" }, { kind = \"quic\" }]",
        "[[axes]]\npath = \"duration\"\nvalues = [\"60s\", \"4s\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalue = [\"20ms\"]",
        "[[axes]]\npath = \"seed\"\nvalues = [1, 2]\n[replications]\ncount = 60000",
        "[replications]\ncount = 0\nconfidence = 95",
    ];
    let tell = |text: &&str| format!("{text}\n    {}", axes(text).replace('\n', "\n    "));
    insta::assert_snapshot!(all.iter().map(tell).collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn a_change_that_an_axis_would_undo() {
    let text = format!("{GOOD}\n[[axes]]\npath = \"links.*.delay\"\nvalues = [\"1ms\", \"2ms\"]\n");
    insta::assert_snapshot!(told(&text, &[("links.bottleneck.delay", "100ms")]));
    assert_eq!(told(&text, &[("axes.0.values", "[\"100ms\"]")]), "no problem");
    assert_eq!(told(&text, &[("axes", "[]"), ("links.bottleneck.delay", "1s")]), "no problem");
}

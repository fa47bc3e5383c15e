//! Flows in another flow's association.

use crate::{GOOD, told};

const CALL: &str = "transport = { kind = \"udp\" }\nip";

/// [`GOOD`] with its call over this transport, and a further flow.
fn with(call: &str, flow: &str) -> String {
    assert!(GOOD.contains(CALL), "the call of the good scenario is over UDP");
    let text = GOOD.replace(CALL, &format!("transport = {{ {call} }}\nip"));
    told(&format!("{text}\n{flow}"), &[])
}

fn guest(transport: &str, more: &str) -> String {
    format!(
        "[flows.guest]\nfrom = \"home\"\nto = \"east\"\ntransport = {{ {transport} }}\n\
         source = {{ kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\" }}\n{more}\n"
    )
}

const WITHIN: &str = "kind = \"sctp\", association = \"call\"";
const LATER: &str = "start = \"5s\"";

#[test]
fn flows_that_cannot_share_an_association() {
    let sctp = "kind = \"sctp\"";
    let told = [
        ("kind = \"udp\"", guest(WITHIN, LATER)),
        (sctp, guest("kind = \"sctp\", association = \"cal\"", LATER)),
        (sctp, guest("kind = \"sctp\", association = \"guest\"", LATER)),
        (sctp, guest("kind = \"tcp\", controller = \"cubic\", association = \"call\"", LATER)),
        (sctp, guest("kind = \"sctp\", asociation = \"call\"", LATER)),
        ("kind = \"sctp\", association = \"guest\"", guest(WITHIN, LATER)),
        (sctp, guest(WITHIN, "")),
        (sctp, guest(WITHIN, LATER).replace("\"east\"", "\"west\"")),
        (sctp, guest(&format!("{WITHIN}, mtu = \"600B\", rto_min = \"300ms\""), LATER)),
        (sctp, guest(WITHIN, "start = \"5s\"\ndscp = 5\nip = \"v6\"")),
        ("kind = \"sctp\", streams = 2", guest(WITHIN, "start = \"5s\"\ncount = 2")),
        (
            sctp,
            guest("kind = \"sctp\", association = \"guest-9\"", LATER)
                + &guest("kind = \"sctp\"", "count = 4").replace("guest", "call9")
                + &guest("kind = \"sctp\", association = \"call9\"", "").replace("guest", "third"),
        ),
    ]
    .map(|(call, flow)| with(call, &flow));
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn flows_that_can() {
    for (call, flow) in [
        ("kind = \"sctp\"", guest(WITHIN, LATER)),
        // What is written as the association has it is no contradiction.
        ("kind = \"sctp\", mtu = \"600B\"", guest(&format!("{WITHIN}, mtu = \"600B\""), LATER)),
        ("kind = \"sctp\"", guest(&format!("{WITHIN}, ordered = false, lifetime = \"1s\""), LATER)),
        ("kind = \"sctp\", streams = 3", guest(WITHIN, "start = \"5s\"\ncount = 2")),
        (
            "kind = \"sctp\", streams = 2, multistreaming = false",
            guest(WITHIN, "start = \"5s\"\ncount = 2"),
        ),
    ] {
        assert_eq!(with(call, &flow), "no problem", "{call}");
    }
}

//! tshark (Wireshark's reader) with all its checks on: writes captures for it, reads the fields it
//! prints of each packet, and its complaints.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends};
use talkspurt_record::pcapng::{Pcapng, Remarks};

pub const MEDIA_PORT: u16 = 5004;
pub const PLAIN_PORT: u16 = 40_001;
/// How tshark prints that a checksum was verified and is right.
pub const GOOD: &str = "1";

/// Whether tshark can be run here.
pub fn tshark_is_here() -> bool {
    let here = Command::new("tshark").arg("--version").output().is_ok();
    if !here {
        let required = std::env::var_os("TALKSPURT_REQUIRE_TSHARK").is_some();
        assert!(!required, "TALKSPURT_REQUIRE_TSHARK is set and tshark is not installed");
        println!("skipped: tshark not installed");
    }
    here
}

/// Ends a test that cannot run tshark.
#[allow(unused_macros, reason = "each test file uses its own part")]
macro_rules! needs_tshark {
    () => {
        if !$crate::dissector::tshark_is_here() {
            return;
        }
    };
}

/// Runs tshark with every check on; one row of tab-separated values for each packet.
pub fn tshark(capture: &Path, arguments: &[&str]) -> Vec<String> {
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(capture)
        .args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"])
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "dccp.check_checksum:TRUE"])
        .args(["-o", "sctp.checksum:CRC 32c"])
        .args(["-o", "rtcp.show_roundtrip_calculation:FALSE"])
        .args(["-d", &format!("udp.port=={MEDIA_PORT},rtp")])
        .args(["-d", &format!("tcp.port=={MEDIA_PORT},rtp")])
        .args(arguments)
        .env("TZ", "UTC")
        .output()
        .expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

pub fn fields(capture: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = vec!["-T", "fields", "-E", "separator=/t"];
    arguments.extend(names.iter().flat_map(|name| ["-e", *name]));
    let split = |row: String| row.split('\t').map(str::to_owned).collect();
    tshark(capture, &arguments).into_iter().map(split).collect()
}

/// What tshark may complain of: expert items of warning or worse, malformed packets, bad checksums.
pub const COMPLAINT: &str = "_ws.malformed or _ws.expert.severity >= \"Warning\" \
    or _ws.expert.group == \"Checksum\" or _ws.expert.group == \"Malformed\" \
    or _ws.expert.group == \"Protocol\" \
    or ip.checksum.status == \"Bad\" or udp.checksum.status == \"Bad\" \
    or tcp.checksum.status == \"Bad\" or dccp.checksum.status == \"Bad\" \
    or sctp.checksum.status == \"Bad\" \
    or icmp.checksum.status == \"Bad\" or icmpv6.checksum.status == \"Bad\"";

/// What it complains of.
pub fn complaints(capture: &Path) -> Vec<String> {
    tshark(capture, &["-Y", COMPLAINT, "-V"])
}

pub fn assert_clean(capture: &Path) {
    let complaints = complaints(capture);
    assert!(complaints.is_empty(), "tshark complains:\n{}", complaints.join("\n"));
}

pub fn ends(version: IpVersion, dst_port: u16) -> Ends {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let (src, dst) = match version {
        IpVersion::V4 => (address("10.0.0.1"), address("10.0.0.2")),
        IpVersion::V6 => (address("fd00::1"), address("fd00::2")),
    };
    Ends { src, dst, src_port: 40_000, dst_port }
}

/// What is captured: when in microseconds, whether on the way back, and the packet.
pub type Seen = (u64, bool, Body);

pub fn capture(name: &str, version: IpVersion, port: u16, seen: &[Seen]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{version:?}.pcapng"));
    let mut file = Pcapng::create(&path, &["uplink", "uplink.back"]).expect("writable");
    for (number, (micros, back, body)) in (0..).zip(seen) {
        let (route, hop, dscp, ecn) = (u32::from(*back), 3, 46, Ecn::Ect0);
        let body_id = BodyId(number);
        let label =
            Packet { body: body_id, route, number, hop, ecn, dscp, version, ..Packet::default() };
        let ends = if *back { ends(version, port).reversed() } else { ends(version, port) };
        let mut bytes = Vec::new();
        wire::emit(&label, body, &ends, &mut bytes).expect("fits");
        let now = Instant::from_nanos(micros * 1000 + 7);
        file.packet(u32::from(*back), now, &bytes, bytes.len() as u32, Remarks::default());
    }
    file.finish().expect("complete");
    path
}

/// Runs a test in both IP versions, if tshark is here.
pub fn over_both(test: impl Fn(IpVersion)) {
    if tshark_is_here() {
        test(IpVersion::V4);
        test(IpVersion::V6);
    }
}

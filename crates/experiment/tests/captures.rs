//! Captures of whole runs, read by tshark: a router's Packet Too Big is as Wireshark
//! expects it, and quotes the dropped packet (RFC 792, RFC 4443 §3.2, RFC 5927 §4.1).
//!
//! Without tshark these tests say so and pass, unless `TALKSPURT_REQUIRE_TSHARK` is set.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use talkspurt_experiment::{Shared, run};
use talkspurt_flow::Disk;
use talkspurt_record::Tables;

/// Whether tshark can be run here.
fn tshark_is_here() -> bool {
    let here = Command::new("tshark").arg("--version").output().is_ok();
    if !here {
        let required = std::env::var_os("TALKSPURT_REQUIRE_TSHARK").is_some();
        assert!(!required, "TALKSPURT_REQUIRE_TSHARK is set and tshark is not installed");
        println!("skipped: tshark not installed");
    }
    here
}

/// One row for each packet that passes the filter: these fields of it.
fn fields(capture: &Path, filter: &str, names: &[&str]) -> Vec<Vec<String>> {
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(capture)
        .args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"])
        .args(["-Y", filter, "-T", "fields", "-E", "separator=/t"])
        .args(names.iter().flat_map(|name| ["-e", *name]))
        .output()
        .expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark: {errors}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect()
}

/// Ends a test that cannot run tshark.
macro_rules! needs_tshark {
    () => {
        if !tshark_is_here() {
            return;
        }
    };
}

fn link(name: &str, from: &str, to: &str, more: &str) -> String {
    format!(
        "[links.{name}]\nfrom = '{from}'\nto = '{to}'\nrate = '1Mbit/s'\ndelay = '10ms'\n\
         queue = {{ kind = 'droptail', packets = 1000 }}\n{more}\n"
    )
}

/// Runs a scenario; the folder of its captures.
fn folder_of(name: &str, parts: &[String]) -> PathBuf {
    let text = parts.concat();
    let study = talkspurt_scenario::load(&text, "test", Path::new("."), &[], None);
    let point = study.unwrap_or_else(|problems| panic!("{problems}\n{text}")).points.remove(0);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("captures-{name}"));
    std::fs::create_dir_all(&folder).expect("writable");
    run(&point, &Disk, Some(&folder), Tables::memory(), true, &Shared::default())
        .expect("every packet is captured");
    folder
}

/// The capture of the first link of three, the second of which is narrow, under a TCP flow.
fn captured(ip: &str, mtu: u32) -> PathBuf {
    let parts = [
        "title = 'narrow'\nduration = '10s'\nrecord = { pcapng = ['near'] }\n".to_owned(),
        link("near", "a", "r", ""),
        link("narrow", "r", "s", &format!("mtu = '{mtu}B'")),
        link("far", "s", "z", ""),
        "[nodes.a]\n[nodes.r]\n".to_owned(),
        format!(
            "[flows.f]\nfrom = 'a'\nto = 'z'\nip = '{ip}'\ndscp = 46\n\
             transport = {{ kind = 'tcp', controller = 'newreno', mss = '1440B' }}\n\
             source = {{ kind = 'bulk', total = '100kB' }}\n"
        ),
    ];
    folder_of(ip, &parts).join("near.pcapng")
}

fn sound(capture: &Path) {
    let bad = "_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\" \
        || icmp.checksum.status == \"Bad\" || icmpv6.checksum.status == \"Bad\"";
    assert_eq!(fields(capture, bad, &["frame.number"]), Vec::<Vec<String>>::new());
}

#[test]
fn over_ipv4_the_quote_is_of_the_refused_segment() {
    needs_tshark!();
    let path = captured("v4", 576);
    sound(&path);
    let names = ["ip.id", "ip.len", "tcp.seq_raw", "tcp.srcport", "tcp.dstport", "ip.dst"];
    let refused = fields(&path, "tcp && !icmp && ip.len > 576", &names);
    // In a quote, tshark has the raw number under this name.
    let names = ["ip.id", "ip.len", "tcp.seq", "tcp.srcport", "tcp.dstport", "ip.dst", "ip.src"];
    let answers = fields(&path, "icmp.type == 3 && icmp.code == 4 && icmp.mtu == 576", &names);
    assert!(!answers.is_empty());
    assert_eq!(answers.len(), refused.len());
    let inner = |text: &str| text.split(',').nth(1).expect("a quoted header").to_owned();
    for (answer, refused) in answers.iter().zip(&refused) {
        let quoted = [&answer[0], &answer[1], &answer[5]].map(|field| inner(field));
        assert_eq!(quoted, [&refused[0], &refused[1], &refused[5]].map(String::clone));
        assert_eq!(answer[2..5], refused[2..5]);
    }
    // The router sends its own packets, best effort.
    let router = |row: &Vec<String>| row[6].split(',').next().map(str::to_owned);
    let speakers: BTreeSet<_> = answers.iter().filter_map(router).collect();
    assert_eq!(speakers.len(), 1);
    let ends = fields(&path, "tcp && !icmp", &["ip.src"]).concat();
    assert!(ends.iter().all(|end| !speakers.contains(end)), "{speakers:?}");
    let marks = fields(&path, "icmp", &["ip.dsfield.dscp", "ip.dsfield.ecn"]);
    assert!(marks.iter().all(|mark| *mark == ["0,46", "0,0"]), "{marks:?}");
    assert_eq!(fields(&path, "icmp.checksum.status == \"Good\"", &["ip.id"]).len(), answers.len());
}

#[test]
fn over_ipv6_too() {
    needs_tshark!();
    let path = captured("v6", 1280);
    sound(&path);
    let names = ["ipv6.plen", "ipv6.flow", "tcp.srcport", "tcp.dstport", "ipv6.dst", "tcp.seq_raw"];
    let refused = fields(&path, "tcp && !icmpv6 && ipv6.plen > 1240", &names);
    let names = ["ipv6.plen", "ipv6.flow", "tcp.srcport", "tcp.dstport", "ipv6.dst"];
    let answers = fields(&path, "icmpv6.type == 2 && icmpv6.mtu == 1280", &names);
    assert!(!answers.is_empty());
    assert_eq!(answers.len(), refused.len());
    let inner = |text: &str| text.split(',').nth(1).expect("a quoted header").to_owned();
    for (answer, refused) in answers.iter().zip(&refused) {
        let quoted = [&answer[0], &answer[1], &answer[4]].map(|field| inner(field));
        assert_eq!(quoted, [&refused[0], &refused[1], &refused[4]].map(String::clone));
        assert_eq!(answer[2..4], refused[2..4]);
        // tshark reads no number there: it stands 4 bytes into the quoted segment.
        let [a, b, c, d] = refused[5].parse::<u32>().expect("a number").to_be_bytes();
        let quoting = format!("icmpv6 && frame[92:4] == {a:02x}:{b:02x}:{c:02x}:{d:02x}");
        assert_eq!(fields(&path, &quoting, &["frame.number"]).len(), 1);
    }
    let good = fields(&path, "icmpv6.checksum.status == \"Good\"", &["ipv6.plen"]);
    assert_eq!(good.len(), answers.len());
}

/// RFC 9260 §3.3.2.1, §6.4: each path has its own addresses at both ends, of which INIT and INIT
/// ACK list those that their packet does not show.
#[test]
fn paths_have_addresses_of_their_own() {
    needs_tshark!();
    let parts = [
        "title = 'paths'\nduration = '10s'\nrecord = { pcapng = ['am', 'an'] }\n".to_owned(),
        link("am", "a", "m", ""),
        link("mz", "m", "z", "events = [{ at = '4s', state = 'down' }]"),
        link("an", "a", "n", ""),
        link("nz", "n", "z", ""),
        "[nodes.a]\naddresses = ['192.0.2.1', '198.51.100.1']\n".to_owned(),
        "[flows.f]\nfrom = 'a'\nto = 'z'\ntransport = { kind = 'sctp', potentially_failed = 0 }\n\
         paths = [['a', 'm', 'z'], ['a', 'n', 'z']]\n\
         source = { kind = 'cbr', rate = '16kbit/s', packet = '200B' }\n"
            .to_owned(),
    ];
    let folder = folder_of("paths", &parts);
    let ways = |name: &str| -> BTreeSet<Vec<String>> {
        let capture = folder.join(format!("{name}.pcapng"));
        sound(&capture);
        fields(&capture, "sctp", &["ip.src", "ip.dst"]).into_iter().collect()
    };
    let pair = |a: &str, b: &str| {
        let (a, b) = (a.to_owned(), b.to_owned());
        BTreeSet::from([vec![a.clone(), b.clone()], vec![b, a]])
    };
    // Nodes are a, m, z, n; z's second address is the first behind theirs.
    assert_eq!(ways("am"), pair("192.0.2.1", "10.0.0.3"));
    assert_eq!(ways("an"), pair("198.51.100.1", "10.0.0.5"));
    let told = |chunk: &str| {
        let init = format!("sctp.chunk_type == {chunk}");
        fields(&folder.join("am.pcapng"), &init, &["sctp.parameter_ipv4_address"]).concat()
    };
    assert_eq!((told("1"), told("2")), (vec!["198.51.100.1".into()], vec!["10.0.0.5".into()]));
    // Data is on the other way once the first has failed.
    let data = fields(&folder.join("an.pcapng"), "sctp.chunk_type == 0", &["frame.time_relative"]);
    assert!(data.len() > 40, "{}", data.len());
}

/// A copy made by a medium appears in the captures of later links, with the identification
/// that marks it.
#[test]
fn a_copy_is_captured_behind_the_link_that_made_it() {
    let parts = [
        "title = 'twice'\nduration = '2s'\nrecord = { pcapng = ['far'] }\n".to_owned(),
        link("near", "a", "b", "duplicate = 1.0"),
        link("far", "b", "c", ""),
        "[flows.f]\nfrom = 'a'\nto = 'c'\nstop = '1s'\nrtcp = { enabled = false }\n\
         transport = { kind = 'udp' }\nsource = { kind = 'speech', codec = 'pcmu' }\n"
            .to_owned(),
    ];
    let folder = folder_of("twice", &parts);
    if tshark_is_here() {
        let seen = fields(&folder.join("far.pcapng"), "udp", &["ip.id", "udp.length"]);
        let copies = seen.iter().filter(|row| row[0] == "0xffff").count();
        // The fiftieth frame is complete when the flow stops, and not sent.
        assert_eq!((seen.len(), copies), (98, 49));
    }
    std::fs::remove_dir_all(&folder).expect("cleared");
}

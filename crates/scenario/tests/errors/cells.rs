//! Cells of 802.11.

use crate::{GOOD, told};

#[test]
fn cells() {
    let with = |words: &str| {
        let cell = format!(
            "[cells.cafe]\naccess_point = \"west\"\nstations = {{ phone = {{}} }}\nstandard = \"802.11b\"\nqueue = {{ kind = \"droptail\", packets = 9 }}\n{words}\n"
        );
        // A word that is given takes the place of the usual one.
        let given = words.split(' ').next().unwrap_or_default();
        let usual = cell
            .lines()
            .enumerate()
            .filter(|(at, line)| *at > 4 || !line.starts_with(&format!("{given} =")));
        let cell: Vec<&str> = usual.map(|(_, line)| line).collect();
        format!(
            "{words}\n    {}",
            told(&format!("{GOOD}\n{}\n", cell.join("\n")), &[]).replace('\n', "\n    ")
        )
    };
    assert!(
        with("short_preamble = true").ends_with("no problem"),
        "{}",
        with("short_preamble = true")
    );
    insta::assert_snapshot!(
        [
            "stations = {}",
            "stations = { west = {} }",
            "stations = { \"my phone\" = {} }",
            "standard = \"802.11ax\"",
            "standard = \"802.11g\"\nshort_preamble = true",
            "long_slot = true",
            "rate = { kind = \"fixed\", rate = \"54Mbit/s\" }",
            "stations = { phone = { rate = { kind = \"fixed\", rate = \"6Mbit/s\" } } }",
            "basic_rates = [\"1Mbit/s\", \"6Mbit/s\"]",
            "rate = { kind = \"arf\", up_after = 0 }",
            "rate = { kind = \"minstrel\", update = \"0s\", sample = 1.5 }",
            "cw_min = 20",
            "cw_min = 63\ncw_max = 31",
            "short_retry_limit = 0",
            "mtu = \"3000B\"",
            "mtu = \"60B\"",
            "snr_db = 200.0",
            "contenders = { count = 0 }",
            "contenders = { count = 5000 }",
            "contenders = { count = 5, packet = \"0B\" }",
            "contenders = { count = 5, packet = \"1501B\" }",
            "queue = { kind = \"droptail\" }",
            "queue = { kind = \"droptail\", time = \"300ms\", follow_rate = true }",
            "access_pint = \"west\"",
        ]
        .map(with)
        .join("\n\n")
    );
    // Names, ways and what is only in a cell.
    let text = GOOD
        .replace("to = \"east\"\nstart", "to = \"phone\"\nstart")
        .replace("via = [\"home\", \"west\", \"east\"]", "via = [\"home\", \"west\", \"tablet\"]");
    let cell = "[cells.access]\naccess_point = \"west\"\nstations = { phone = {}, tablet = {} }\nstandard = \"802.11g\"\nqueue = { kind = \"pie\" }";
    insta::assert_snapshot!(
        "cells_by_name",
        told(&format!("{text}\n{cell}\n"), &[("record.pcapng", "[\"cafe\"]")])
    );
    // A cell is a network, too; stations reach each other through the access point.
    let alone = format!(
        "title = \"x\"\nduration = \"1s\"\n{}\n[flows.f]\nfrom = \"phone\"\nto = \"tablet\"\nvia = [\"phone\", \"west\", \"tablet\"]\ntransport = {{ kind = \"udp\" }}\nsource = {{ kind = \"cbr\", rate = \"8kbit/s\", packet = \"100B\" }}",
        cell.replace("cells.access", "cells.cafe")
    );
    assert_eq!(told(&alone, &[]), "no problem");
    let direct = alone.replace("\"phone\", \"west\", \"tablet\"", "\"phone\", \"tablet\"");
    insta::assert_snapshot!("cells_stations_apart", told(&direct, &[]));
}

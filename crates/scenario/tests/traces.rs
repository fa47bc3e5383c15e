//! A link whose rate is in a trace need not repeat it.

use std::path::Path;

use talkspurt_scenario::load;

fn rate(trace: &str, file: &str, bytes: &str) -> Result<u64, String> {
    let folder = std::env::temp_dir().join(format!("talkspurt-{file}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(file), bytes).expect("writing");
    let text = format!(
        "title = \"T\"\nduration = \"10s\"\n[links.air]\nfrom = \"a\"\nto = \"b\"\ndelay = \"1ms\"\n\
         queue = {{ kind = \"droptail\", packets = 9 }}\ntrace = {{ kind = \"{trace}\", file = \"{file}\" }}\n\
         [flows.f]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"udp\" }}\n\
         source = {{ kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\" }}\n"
    );
    let found = load(&text, "t.toml", Path::new(&folder), &[], None);
    std::fs::remove_dir_all(&folder).expect("removing");
    found.map(|study| study.points[0].network.links[0].rate.as_bps()).map_err(|e| e.to_string())
}

#[test]
fn the_rate_of_a_link_may_be_its_trace_s() {
    // Three packets of 1500 bytes in 9 ms.
    assert_eq!(rate("mahimahi", "down", "3\n6\n9\n"), Ok(4_000_000));
    assert_eq!(rate("csv", "pass", "time,rate\n1s,2Mbit/s\n3s,1Mbit/s\n"), Ok(2_000_000));
}

#[test]
fn names_of_columns_can_have_the_unit() {
    for (table, rate_bps) in [
        ("time_s,rate_Mbps\n0.5,1.5\n1,3\n", 1_500_000),
        ("time_ms, rate_kbps\n500,1500.25\n", 1_500_250),
        ("rate_bps,time_us,delay_ms,loss_percent\n1.5e6,100,2.5,0.1\n", 1_500_000),
        ("time,rate_mbps\n1s,1.5\n", 1_500_000),
    ] {
        assert_eq!(rate("csv", "units", table), Ok(rate_bps), "{table}");
    }
}

#[test]
fn a_trace_without_a_rate_leaves_it_to_the_link() {
    let told = rate("csv", "loss", "time,loss\n1s,0.5\n").expect_err("no rate");
    assert!(told.contains("links.air.rate: missing"), "{told}");
    assert!(rate("mahimahi", "none", "").expect_err("empty").contains("rate"));
}

//! Traces of links: the tables that people, spreadsheets and loggers write, and what is said of others.

use std::path::Path;

use talkspurt_scenario::link_profile::LinkProfile;
use talkspurt_scenario::{Study, load};

/// A run of 10 s over a link without a rate of its own, with this trace and further keys.
fn study(trace: &str, file: &str, bytes: &[u8], more: &str) -> Result<Study, String> {
    let folder = std::env::temp_dir().join(format!("talkspurt-{file}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(file), bytes).expect("writing");
    let text = format!(
        "title = \"T\"\nduration = \"10s\"\n[links.air]\nfrom = \"a\"\nto = \"b\"\ndelay = \"1ms\"\n\
         queue = {{ kind = \"droptail\", packets = 9 }}\n{more}\ntrace = {{ {trace}, file = \"{file}\" }}\n\
         [flows.f]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"udp\" }}\n\
         source = {{ kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\" }}\n"
    );
    let found = load(&text, "t.toml", Path::new(&folder), &[], None);
    std::fs::remove_dir_all(&folder).expect("removing");
    found.map_err(|e| e.to_string())
}

fn rate(kind: &str, file: &str, bytes: &str) -> Result<u64, String> {
    let study = study(&format!("kind = \"{kind}\""), file, bytes.as_bytes(), "")?;
    Ok(study.points[0].network.links[0].rate.as_bps())
}

/// Milliseconds and bits per second.
type Steps = Vec<(u64, u64)>;

/// Milliseconds and bits per second of each step, and the notes.
fn steps(file: &str, bytes: &str, more: &str) -> Result<(Steps, Vec<String>), String> {
    let study = study(&format!("kind = \"csv\"{more}"), file, bytes.as_bytes(), "")?;
    let Some(LinkProfile::Steps(steps)) = &study.points[0].network.links[0].course else {
        panic!("a table gives steps");
    };
    let of = |step: &talkspurt_scenario::model::Step| {
        (step.at.as_nanos() / 1_000_000, step.rate.map_or(0, |rate| rate.as_bps()))
    };
    Ok((steps.iter().map(of).collect(), study.notes))
}

#[test]
fn the_rate_of_a_link_may_be_its_trace_s() {
    // Three packets of 1500 bytes in 9 ms.
    assert_eq!(rate("mahimahi", "down", "3\n6\n9\n"), Ok(4_000_000));
    assert_eq!(rate("mahimahi", "dos", "\u{feff}3\r\n6\r\n\r\n9"), Ok(4_000_000));
    assert_eq!(rate("csv", "pass", "time,rate\n1s,2Mbit/s\n3s,1Mbit/s\n"), Ok(2_000_000));
}

#[test]
fn names_of_columns_can_have_the_unit() {
    for (table, rate_bps) in [
        ("time_s,rate_Mbps\n0.5,1.5\n1,3\n", 1_500_000),
        ("time_ms, rate_kbps\n500,1500.25\n", 1_500_250),
        ("rate_bps,time_us,delay_ms,loss_percent\n1.5e6,100,2.5,0.1\n", 1_500_000),
        ("time,rate_mbps\n1s,1.5\n", 1_500_000),
        ("Time [ms],Rate (kbps),Loss %\n1,1500,0.1\n", 1_500_000),
        ("time (s);rate (Mbit/s)\n1;1,5\n", 1_500_000),
    ] {
        assert_eq!(rate("csv", "units", table), Ok(rate_bps), "{table}");
    }
    let bytes = rate("csv", "units", "time_s,rate_MBps\n1,1\n").expect_err("bytes per second");
    assert!(bytes.contains("unknown column \"rate_MBps\": with numbers it is rate_bps"), "{bytes}");
}

/// Byte-order mark, quotes, line ends, separators, decimal commas, empty rows and columns.
#[test]
fn tables_are_read_as_spreadsheets_write_them() {
    let expected = vec![(0, 1_000_000), (1_500, 2_500_000)];
    for table in [
        "\u{feff}time_s,rate_Mbps\r\n0,1\r\n1.5,2.5\r\n",
        "\"time_s\",\"rate_Mbps\"\n\"0\",\"1\"\n\"1.5\",\"2.5\"\n",
        "time_s;rate_Mbps\n0;1\n1,5;2,5\n",
        "time_s\trate_Mbps\n0\t1\n1.5\t2.5",
        "time_s,rate_Mbps,,\n0,1,,\n,,,\n1.5,2.5,,\n",
        "time_s,rate_Mbps\n0,1,\n1.5,2.5,\n",
        "time_s,rate_Mbps\r0,1\r1.5,2.5\r",
    ] {
        assert_eq!(steps("sheet", table, ""), Ok((expected.clone(), Vec::new())), "{table}");
    }
}

#[test]
fn further_columns_are_passed_over_with_a_note() {
    let table = "time_s,RSRP,rate_Mbps,\"cell, sector\",jitter ms\n0,-89,1,\"7, 2\",3\n";
    let (steps, notes) = steps("further", table, "").expect("a table");
    assert_eq!(steps, [(0, 1_000_000)]);
    let note = "links.air.trace.file: ";
    assert!(notes[0].starts_with(note), "{notes:?}");
    let columns = "columns that are not read: \"RSRP\", \"cell, sector\", \"jitter ms\"";
    assert!(notes[0].ends_with(columns) && notes.len() == 1, "{notes:?}");
}

#[test]
fn rows_of_one_second_are_spread_over_it() {
    let table = "time_s,rate_kbps\n0,100\n1,200\n1,300\n3,400\n3,500\n3,600\n3,700\n";
    let (steps, notes) = steps("seconds", table, "").expect("a table");
    let expected =
        [(0, 100), (1000, 200), (2000, 300), (3000, 400), (3500, 500), (4000, 600), (4500, 700)];
    assert_eq!(steps, expected.map(|(ms, kbps)| (ms, 1000 * kbps)));
    assert!(
        notes[0]
            .ends_with("lines with the time of the line before, spread evenly up to the next: 4"),
        "{notes:?}"
    );
}

/// One clock, several quantities: nothing is spread, and the run begins with all of them.
#[test]
fn rows_of_one_time_with_other_columns_are_one_step() {
    let table = "time_s,rate_kbps,loss\n0,100,\n0,,1\n10,200,0\n";
    let study = study("kind = \"csv\"", "quantities", table.as_bytes(), "").expect("a table");
    assert_eq!(study.notes, Vec::<String>::new());
    let Some(LinkProfile::Steps(steps)) = &study.points[0].network.links[0].course else {
        panic!("a table gives steps");
    };
    let of = |step: &talkspurt_scenario::model::Step| (step.at.as_nanos(), step.loss);
    assert_eq!(
        steps.iter().map(of).collect::<Vec<_>>(),
        [(0, Some(1.0)), (10_000_000_000, Some(0.0))]
    );
    // The third has the column of the first: the logger wrote the same time twice.
    let table = "time_s,rate_kbps,loss\n0,100,\n0,,1\n0,300,\n4,200,0\n";
    let (steps, _) = steps_of("twice", table);
    assert_eq!(steps, [(0, 100_000), (2000, 300_000), (4000, 200_000)]);
}

/// Milliseconds that are called seconds.
#[test]
fn a_table_of_which_one_line_is_in_the_run_says_so() {
    let (steps, notes) = steps_of("long", "time_s,rate_kbps\n0,100\n1000,200\n2000,300\n");
    assert_eq!(steps.len(), 3);
    assert!(notes[0].ends_with("only its first line is within the run (10s)"), "{notes:?}");
}

/// At the limits of what is read nothing overflows.
#[test]
fn times_of_centuries_stay_in_order() {
    let (steps, _) = steps_of("far", "time_s,rate_kbps\n0,100\n9000000000,200\n9000000000,300\n");
    assert!(steps.is_sorted() && steps[2].0 > steps[1].0, "{steps:?}");
}

fn steps_of(file: &str, table: &str) -> (Steps, Vec<String>) {
    steps(file, table, "").expect("a table")
}

/// Times since 1970 would leave the link at its own rate until the end of the run.
#[test]
fn times_after_the_end_of_the_run_are_refused_or_count_from_the_first() {
    let table = "time_s,rate_kbps\n1582018702,100\n1582018703.25,200\n";
    let told = steps("epoch", table, "").expect_err("no step within the run");
    let why = "its first time, 1582018702s, is after the end of the run (10s); times count from the \
               start of the run, or with `from_first = true` from the first time";
    assert!(told.contains("t.toml:9: links.air.trace.file: ") && told.ends_with(why), "{told}");
    let expected = Ok((vec![(0, 100_000), (1_250, 200_000)], Vec::new()));
    assert_eq!(steps("epoch", table, ", from_first = true"), expected);
    let milliseconds = "time_us,rate_kbps\n1582018702000000,100\n1582018703250000,200\n";
    assert_eq!(steps("epoch", milliseconds, ", from_first = true"), expected);
    let before = steps("before", "time_s,rate_kbps\n-1,100\n0.25,200\n", "").expect_err("past");
    assert!(before.contains("line 2: -1s is before the start of the run"), "{before}");
    assert_eq!(
        steps("before", "time_s,rate_kbps\n-1,100\n0.25,200\n", ", from_first = true"),
        expected
    );

    let opportunities = "1582018702000\n1582018702003\n1582018702006\n";
    let told = rate("mahimahi", "since", opportunities).expect_err("no opportunity within the run");
    assert!(told.contains("`from_first = true`"), "{told}");
    let late = rate("mahimahi", "late", "20000\n20003\n").expect_err("no opportunity in the run");
    assert!(late.contains("`from_first = true`"), "{late}");
    let trace = "kind = \"mahimahi\", from_first = true";
    let study = study(trace, "since", opportunities.as_bytes(), "").expect("a trace");
    let course = study.points[0].network.links[0].course.clone();
    assert_eq!(course, Some(LinkProfile::Opportunities([0, 3, 6].into())));
}

/// The rate is missing only because the trace is wrong: one problem is reported.
#[test]
fn a_trace_that_cannot_be_read_is_the_only_problem() {
    let one = |kind: &str, bytes: &[u8]| {
        let told = study(kind, "bad", bytes, "").expect_err("unreadable");
        assert!(!told.contains('\n') && !told.contains("air.rate"), "{told}");
        told
    };
    let csv = "kind = \"csv\"";
    assert!(one(csv, b"").ends_with("bad: is empty: it has no line of column names"));
    assert!(one(csv, b"time_s,rate_kbps\n1,fast\n").contains("line 2: \"fast\" is not a number"));
    assert!(one(csv, b"time_s,rate_kbps\n1\n").contains("line 2: 1 cells for 2 columns"));
    assert!(one(csv, b"\xFF\xFEt\0i\0").ends_with("is a text in UTF-16; save it as UTF-8"));
    assert!(one(csv, b"time_s,rate_kbps\n1,\xFF\n").ends_with("is not a text in UTF-8"));
    assert!(one("kind = \"mahimahi\"", b"three\n").contains("line 1: \"three\" is not a time"));
    let word = one("kind = \"cvs\"", b"time,rate\n1s,1Mbit/s\n");
    assert!(word.contains("links.air.trace.kind"), "{word}");
    assert!(one(&format!("{csv}, files = 1"), b"time,rate\n1s,1Mbit/s\n").contains("trace.files"));
}

#[test]
fn a_trace_without_a_rate_leaves_it_to_the_link() {
    let told = rate("csv", "loss", "time,loss\n1s,0.5\n").expect_err("no rate");
    let why =
        "links.air.rate: missing, and the trace has no rate above zero – give the link a `rate`";
    assert!(told.ends_with(why) && !told.contains('\n'), "{told}");
    let loss = study("kind = \"csv\"", "loss", b"time,loss\n1s,0.5\n", "rate = \"1Mbit/s\"");
    assert!(loss.is_ok());
}

/// The queue of a link of 2 Mbit/s whose rate changes or not, in words.
fn queue_in_words(queue: &str, changes: &str) -> String {
    let text = format!(
        "title = \"T\"\nduration = \"10s\"\n[links.air]\nfrom = \"a\"\nto = \"b\"\ndelay = \"1ms\"\n\
         rate = \"2Mbit/s\"\nqueue = {queue}\n{changes}\n[flows.f]\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"udp\" }}\n\
         source = {{ kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\" }}\n"
    );
    let study = load(&text, "t.toml", Path::new("."), &[], None).expect("a scenario");
    study.points[0].network.links[0].queue_words()
}

/// Which rate a limit in time counts at is said only where the rate changes and the limit does not.
#[test]
fn a_limit_in_time_names_the_rate_it_was_computed_for() {
    const CHANGES: &str = "steps = [{ at = \"5s\", rate = \"1Mbit/s\" }]";
    let droptail = |more: &str| format!("{{ kind = \"droptail\", time = \"300ms\"{more} }}");
    let (fixed, follows) = (droptail(""), droptail(", follow_rate = true"));
    assert_eq!(queue_in_words(&fixed, ""), "DropTail 300ms");
    assert_eq!(queue_in_words(&follows, CHANGES), "DropTail 300ms at the current rate");
    let computed = "DropTail 300ms (computed for 2Mbit/s)";
    assert_eq!(queue_in_words(&fixed, CHANGES), computed);
    // Behind a shaper the lower rate counts; of bands, one that does not follow is named.
    let shaper =
        format!("{{ kind = \"shaper\", rate = \"500kbit/s\", burst = \"3kB\", queue = {fixed} }}");
    assert!(queue_in_words(&shaper, CHANGES).ends_with(" (computed for 500kbit/s)"));
    let bands = format!(
        "{{ kind = \"priority\", bands = [{{ dscp = [46], queue = {follows} }}, {{ queue = {fixed} }}] }}"
    );
    assert!(queue_in_words(&bands, CHANGES).ends_with(" (computed for 2Mbit/s)"));
}

/// A trace of mahimahi has no rate at an instant that a limit could follow.
#[test]
fn no_limit_follows_the_opportunities_of_mahimahi() {
    let queue = "queue = { kind = \"droptail\", time = \"300ms\", follow_rate = true }";
    let text = format!(
        "title = \"T\"\nduration = \"10s\"\n[links.air]\nfrom = \"a\"\nto = \"b\"\ndelay = \"1ms\"\n\
         {queue}\ntrace = {{ kind = \"mahimahi\", file = \"t\" }}\n[flows.f]\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"udp\" }}\n\
         source = {{ kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\" }}\n"
    );
    let folder = std::env::temp_dir().join(format!("talkspurt-follows-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("t"), "3\n6\n9\n").expect("writing");
    let found = load(&text, "t.toml", &folder, &[], None);
    std::fs::remove_dir_all(&folder).expect("removing");
    let told = found.map(|_| ()).expect_err("nothing to follow").to_string();
    assert!(told.contains("links.air.queue") && told.contains("follow_rate"), "{told}");
}

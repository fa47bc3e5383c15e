//! A run can be stopped, regardless of the number of events between two checks.

use std::sync::atomic::{AtomicBool, Ordering};

use talkspurt_flow::Materials;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_sim::build::build;
use talkspurt_sim::drive::{Timetable, drive};
use talkspurt_sim::world::World;

use crate::support::{flow, link, ms, point, scenario};

/// An hour of packets of 1000 bits.
fn world(rate: &str) -> World<()> {
    let cbr = format!("{{ kind = 'cbr', rate = '{rate}', packet = '125B' }}");
    let parts = [link("l", "a-z", "1Gbit/s", "1ms", ""), flow("f", "a-z", "udp", &cbr, "")];
    let point = point(&scenario("1h", &parts));
    build(&point.scenario, &point.network, &Materials::default(), ())
}

#[test]
fn a_quiet_run_stops_at_the_next_edge() {
    let mut world = world("1kbit/s");
    let timetable = Timetable {
        duration: Duration::from_secs(3600),
        interval: Duration::from_millis(1),
        window: (Instant::ZERO, ms(3_600_000)),
        settle: None,
    };
    let cancel = AtomicBool::new(false);
    let mut looks = 0;
    let finished = drive(&mut world, &timetable, &cancel, |now, _, ()| {
        looks += 1;
        cancel.store(now == ms(5), Ordering::Relaxed);
    });
    assert!(!finished);
    assert_eq!((looks, world.now()), (6, ms(5)));
}

#[test]
fn short_bins_do_not_hide_the_flag() {
    // A few events a bin: a count that began anew in each would never come to its end.
    let mut world = world("1Mbit/s");
    let cancel = AtomicBool::new(true);
    let mut bins = 1..=10_000;
    assert!(bins.any(|bin| !world.run_until(ms(bin), &cancel)));
    assert_eq!(world.events(), 4096);
}

use super::super::adaptive::tests::{play, steady};
use super::super::{Config, Profile};

fn neteq() -> Config {
    Config { profile: Some(Profile::Libwebrtc), ..Config::default() }
}

/// Mean delay of these frames in ms.
fn mean(fates: &[(u32, Option<i64>)]) -> i64 {
    let delays: Vec<_> = fates.iter().filter_map(|(_, delay)| *delay).collect();
    delays.iter().sum::<i64>() / delays.len() as i64
}

#[test]
fn the_first_frame_is_played_at_once_and_the_delay_follows_the_target() {
    let (fates, pauses, _) = play(&steady(1000, |_| Some(50)), &neteq());
    assert_eq!(fates[0], (0, Some(50)));
    // The initial target is 80 ms; after half a second it is that of a path without jitter.
    assert!(mean(&fates[15..25]) > 60, "{fates:?}");
    assert!(matches!(mean(&fates[500..]), 50..=110), "{}", mean(&fates[500..]));
    assert!(fates.iter().all(|(_, delay)| delay.is_some()) && pauses.is_empty());
}

#[test]
fn lost_frames_are_concealed_in_their_time() {
    let lost = |slot| (slot % 50 < 45).then_some(40);
    let (fates, pauses, _) = play(&steady(1000, lost), &neteq());
    assert_eq!(fates.len(), 900);
    assert!(fates.iter().all(|(_, delay)| delay.is_some()), "{fates:?}");
    assert!(pauses.iter().all(|(_, pause)| *pause <= 20), "{pauses:?}");
}

#[test]
fn what_arrives_at_once_after_an_outage_is_played_slowly() {
    // Three seconds are held back, and released at once.
    let held = |slot: u32| {
        let sent = i64::from(slot) * 20;
        Some(if (10_000..13_000).contains(&sent) { 13_040 - sent } else { 40 })
    };
    let (fates, _, _) = play(&steady(1500, held), &neteq());
    let at = |ms: i64| (ms / 20) as usize;
    assert!(fates.iter().all(|(_, delay)| delay.is_some()));
    // Little is removed while the outage is among the arrivals of the last two seconds.
    assert!(mean(&fates[at(11_000)..at(11_500)]) > 2700, "{}", mean(&fates[at(11_000)..]));
    assert!(mean(&fates[at(25_000)..]) < 400, "{}", mean(&fates[at(25_000)..]));
}

#[test]
fn more_than_the_room_empties_the_buffer() {
    let held = |slot: u32| Some(if slot < 50 { 30 } else { 30.max(7000 - i64::from(slot) * 20) });
    let (fates, _, _) = play(&steady(600, held), &neteq());
    assert_eq!(fates.len(), 600);
    assert_eq!(fates.iter().filter(|(_, delay)| delay.is_none()).count(), 200);
}

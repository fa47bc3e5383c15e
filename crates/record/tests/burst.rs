//! The burst ratio of ITU-T G.107: 1 for random loss, above 1 for bursts, below for losses
//! that keep apart.

use talkspurt_proto::rng::Rng;
use talkspurt_record::burst_ratio;

fn pattern(text: &str) -> Option<f64> {
    burst_ratio(text.bytes().map(|byte| byte == b'x'))
}

#[test]
fn by_hand() {
    assert_eq!(pattern("......"), None);
    assert_eq!(pattern(""), None);
    // One run of 2 in 8 frames: 2 · (1 − 2/8).
    assert_eq!(pattern("...xx..."), Some(1.5));
    // Runs of 1 and 3: mean 2, loss 4/8.
    assert_eq!(pattern("x..xxx.."), Some(1.0));
    // Every second frame: runs of 1, loss 1/2.
    assert_eq!(pattern("x.x.x.x."), Some(0.5));
    assert_eq!(pattern("xxxx"), Some(0.0));
}

#[test]
fn is_one_for_random_loss() {
    let mut rng = Rng::new(1, "burst");
    for loss in [0.01, 0.05, 0.2, 0.5] {
        let ratio = burst_ratio((0..400_000).map(|_| rng.chance(loss))).unwrap();
        assert!((ratio - 1.0).abs() < 0.03, "loss {loss}: {ratio}");
    }
}

#[test]
fn follows_the_closed_form_of_a_two_state_chain() {
    // G.107: a chain with p (to loss) and q (back) has BurstR = 1 / (p + q).
    for (p, q) in [(0.01, 0.25), (0.02, 0.5), (0.1, 0.9), (0.3, 0.9)] {
        let mut rng = Rng::new(2, "chain");
        let mut lost = false;
        let ratio = burst_ratio((0..400_000).map(|_| {
            lost = if lost { !rng.chance(q) } else { rng.chance(p) };
            lost
        }));
        let expected = 1.0 / (p + q);
        assert!((ratio.unwrap() / expected - 1.0).abs() < 0.03, "p {p} q {q}: {ratio:?}");
    }
}

//! The knobs of CCID 2, each told by itself: the machine's own check stops at the first that cannot
//! be.

use talkspurt_proto::dccp::ccid2::Config;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::time::Duration;

use super::time::at_most;
use crate::path::Path;
use crate::problem::Findings;

/// Packets in a window that are beyond any path.
const MOST_WINDOW: u32 = 65_535;
const MOST_TIMEOUT: Duration = Duration::from_secs(3600);
const MOST_ACK_DELAY: Duration = Duration::from_secs(60);

pub(super) fn check(path: &Path, window: &Config, profile: Profile, found: &mut Findings) {
    let none = Config::default;
    let alone = [
        ("initial_window", Config { initial_window: window.initial_window, ..none() }),
        ("initial_ssthresh", Config { initial_ssthresh: window.initial_ssthresh, ..none() }),
        ("ack_ratio", Config { ack_ratio: window.ack_ratio, ..none() }),
        ("initial_rto", Config { initial_rto: window.initial_rto, ..none() }),
        ("ack_delay", Config { ack_delay: window.ack_delay, ..none() }),
        ("min_rto", Config { min_rto: window.min_rto, max_rto: window.max_rto, ..none() }),
    ];
    for (knob, config) in alone {
        if let Err(error) = config.check(profile) {
            found.add(path.key(knob), error.to_string());
        }
    }
    if let Some(packets) = window.initial_window.filter(|packets| *packets > MOST_WINDOW) {
        let message = format!("{packets} packets are absurd here: at most {MOST_WINDOW}");
        found.add(path.key("initial_window"), message);
    }
    let spans = [
        ("initial_rto", window.initial_rto, MOST_TIMEOUT),
        ("max_rto", window.max_rto, MOST_TIMEOUT),
        ("ack_delay", window.ack_delay, MOST_ACK_DELAY),
    ];
    for (knob, span, most) in spans {
        span.into_iter().for_each(|span| at_most(path.key(knob), span, most, found));
    }
}

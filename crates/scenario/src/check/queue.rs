//! Queues: limits, thresholds, probabilities and times that contradict themselves.

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use crate::model::{DropTail, Queue, Red};
use crate::path::Path;
use crate::problem::Findings;

pub(super) fn queue(path: &Path, queue: &Queue, found: &mut Findings) {
    match queue {
        Queue::Droptail(limits) => drop_tail(path, limits, found),
        Queue::Red(words) => red(path, words, found),
        Queue::Codel(codel) => delay(path, codel.target, codel.interval, found),
        Queue::FqCodel(codel) => {
            delay(path, codel.target, codel.interval, found);
            some(path, "quantum", codel.quantum, found);
        }
        Queue::Pie(pie) => {
            positive(path, "target", pie.target, found);
            positive(path, "update", pie.update, found);
        }
    }
}

fn drop_tail(path: &Path, limits: &DropTail, found: &mut Findings) {
    if limits.packets.is_none() && limits.bytes.is_none() && limits.time.is_none() {
        found
            .add(path.clone(), "a droptail queue needs a limit: `packets`, `bytes` or `time`")
            .hint("for example packets = 50".to_owned());
    }
    if limits.bytes == Some(Size::from_bytes(0)) {
        found.add(
            path.key("bytes"),
            "a queue for 0 bytes drops all that must wait; give a packet's length or more",
        );
    }
    if let Some(time) = limits.time {
        positive(path, "time", time, found);
    }
    if limits.ns2 && limits.packets.is_none_or(|packets| packets < 2) {
        found.add(
            path.key("ns2"),
            "a queue of N packets holds N − 1 in ns-2; give `packets`, 2 or more",
        );
    }
}

fn red(path: &Path, red: &Red, found: &mut Findings) {
    for (key, threshold) in
        [("min_threshold", red.min_threshold), ("max_threshold", red.max_threshold)]
    {
        if threshold.is_some_and(|threshold| threshold <= 0.0) {
            found.add(path.key(key), "a threshold is above 0 packets");
        }
    }
    match (red.min_threshold, red.max_threshold) {
        (Some(min), Some(max)) if max <= min => {
            let message = format!("{max} is not above min_threshold ({min})");
            found.add(path.key("max_threshold"), message);
        }
        (None, Some(_)) => {
            found.add(path.key("min_threshold"), "missing, though max_threshold is given");
        }
        _ => {}
    }
    let highest = red.max_threshold.or(red.min_threshold.map(|min| 3.0 * min));
    if let Some(highest) = highest.filter(|highest| *highest > f64::from(red.packets)) {
        let message = format!(
            "the average of a queue of {} packets never reaches the upper threshold ({highest})",
            red.packets
        );
        found.add(path.key("packets"), message);
    }
    if red.max_p == 0.0 {
        found.add(path.key("max_p"), "with probability 0 nothing is dropped early");
    }
    if red.weight == Some(0.0) {
        found.add(path.key("weight"), "with weight 0 the average never moves");
    }
    some(path, "mean_packet", red.mean_packet, found);
    positive(path, "target_delay", red.target_delay, found);
}

fn delay(path: &Path, target: Duration, interval: Duration, found: &mut Findings) {
    positive(path, "target", target, found);
    positive(path, "interval", interval, found);
    if interval <= target && !interval.is_zero() {
        let message = format!("{interval} is not longer than target ({target})");
        found
            .add(path.key("interval"), message)
            .hint("the target is 5 to 10% of the interval (RFC 8289 §4.3)".to_owned());
    }
}

fn positive(path: &Path, key: &str, time: Duration, found: &mut Findings) {
    if time.is_zero() {
        found.add(path.key(key), "must be longer than nothing");
    }
}

fn some(path: &Path, key: &str, size: Size, found: &mut Findings) {
    if size == Size::from_bytes(0) {
        found.add(path.key(key), "must be 1B or more");
    }
}

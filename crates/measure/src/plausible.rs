//! Notes of the other end are from the network: those that no honest end takes are left out, so that the
//! recorder meets only times and lengths that it can add up.

use std::collections::BTreeMap;

use talkspurt_proto::time::Duration;

use crate::notes::{Row, What};
use crate::plan::Plan;

/// How much later than its end a measurement may have notes, by whatever clock.
const SLACK: Duration = Duration::from_secs(600);
/// Longest IP packet.
const LONGEST: u32 = 65_535;

/// Leaves out rows with times and lengths that no honest end notes; returns how many that were.
pub(crate) fn sift(plan: &Plan, rows: &mut Vec<Row>) -> usize {
    let latest = (plan.end() + SLACK).as_nanos();
    let (peers, all) = (2 * plan.flows.len(), rows.len());
    rows.retain(|row| usize::from(row.peer) < peers && row.at <= latest && fits(&row.what, latest));
    all - rows.len()
}

/// The order in which an honest end notes: packets and frames are numbered one after another, by peer.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The next number.
    sent: BTreeMap<u16, u32>,
    /// The same, and the last time of capture.
    generated: BTreeMap<u16, (u32, u64)>,
}

impl Order {
    /// Whether a row follows those before it, in order of time.
    pub(crate) fn admits(&mut self, row: &Row) -> bool {
        match row.what {
            What::Sent { number, .. } => {
                let next = self.sent.entry(row.peer).or_default();
                let follows = *next == number && number < u32::MAX;
                *next += u32::from(follows);
                follows
            }
            What::Generated { index, captured, .. } => {
                let (next, last) = self.generated.entry(row.peer).or_default();
                let is_next = *next == index && index < u32::MAX;
                let follows = is_next && (*last..=row.at).contains(&captured);
                (*next, *last) = if follows { (index + 1, captured) } else { (*next, *last) };
                follows
            }
            _ => true,
        }
    }
}

fn fits(what: &What, latest: u64) -> bool {
    match *what {
        What::Generated { bytes, .. }
        | What::Delivered { bytes, .. }
        | What::Repair { bytes, .. } => bytes <= LONGEST,
        What::Sent { bytes, transport, media, payload, .. } => {
            let layers = [transport.into(), media.into(), payload];
            bytes <= LONGEST && layers.iter().all(|layer: &u32| *layer <= LONGEST)
        }
        What::Received { bytes, sent, .. } => bytes <= LONGEST && sent <= latest,
        What::Played { at, .. } | What::Recovered { at, .. } | What::Late { at, .. } => {
            at <= latest
        }
        What::Heard { sent } => sent <= latest,
        What::Answered { asked, came } => asked.max(came) <= latest,
        What::Paused { nanos, .. } | What::InOrder { nanos } | What::RoundTrip { nanos } => {
            nanos <= latest
        }
        What::Gauge { value, .. } => value.is_finite(),
        What::Picture { .. }
        | What::HandedOver { .. }
        | What::Discarded { .. }
        | What::Encoding { .. }
        | What::Rejected { .. }
        | What::Event { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{FlowPlan, Traffic};
    use crate::transport::Transport;

    #[test]
    fn notes_that_no_honest_end_takes_are_left_out() {
        let flow = FlowPlan {
            name: "flow".to_owned(),
            transport: Transport::known("udp"),
            up: Some(Traffic::Talkspurts { codec: "pcmu".to_owned() }),
            down: None,
        };
        let duration = Duration::from_secs(1).as_nanos();
        let plan = Plan { seed: 1, duration, mtu: 1500, ipv6: false, flows: vec![flow] };
        let row = |at, what| Row { at, peer: 0, what };
        let generated =
            |index, captured, at| row(at, What::Generated { index, bytes: 160, captured });
        let sent = |number, at| {
            row(at, What::Sent { number, bytes: 200, transport: 8, media: 12, payload: 160 })
        };
        let honest = [generated(0, 5, 6), sent(0, 6), generated(1, 25, 26), sent(1, 26)];
        let false_ones = [
            row(u64::MAX, What::HandedOver { index: 0 }),
            Row { peer: 2, ..honest[0] },
            row(30, What::Paused { index: 0, nanos: u64::MAX }),
            row(30, What::Gauge { gauge: 0, value: f64::NAN }),
            row(30, What::Sent { number: 2, bytes: u32::MAX, transport: 0, media: 0, payload: 0 }),
        ];
        let mut rows = [&honest[..], &false_ones].concat();
        assert_eq!(sift(&plan, &mut rows), false_ones.len());
        assert_eq!(rows, honest);
        let mut order = Order::default();
        assert!(honest.iter().all(|row| order.admits(row)));
        // Numbers again, numbers that were skipped, captured before the last frame, and later than noted.
        let late = [sent(1, 40), sent(3, 40), generated(1, 30, 40), generated(3, 30, 40)];
        let captured = [generated(2, 24, 40), generated(2, 41, 40)];
        assert!(!late.iter().chain(&captured).any(|row| order.admits(row)));
        assert!(order.admits(&generated(2, 40, 40)) && order.admits(&sent(2, 40)));
    }
}

//! Coupled congestion control of sessions that share a bottleneck: the Active FSE of RFC 8699 §5.3.1.

use crate::time::{Duration, Instant};

/// A session that sends nothing for this long has stopped, or pauses.
const PAUSE: Duration = Duration::from_secs(1);

/// A session in the exchange.
#[derive(Debug)]
struct Flow {
    priority: f64,
    desired: f64,
    /// FSE_R, while it is registered.
    rate: Option<f64>,
    sent: Instant,
}

/// The flow state exchange of one flow group. Rates are in bit/s.
#[derive(Debug, Default)]
pub struct FlowStateExchange {
    flows: Vec<Flow>,
    /// S_CR.
    sum: f64,
}

impl FlowStateExchange {
    /// Adds a session with its priority and the highest rate that it can use; returns its number. It is
    /// registered when it sends.
    pub fn join(&mut self, priority: f64, desired: f64) -> usize {
        self.flows.push(Flow { priority, desired, rate: None, sent: Instant::ZERO });
        self.flows.len() - 1
    }

    /// A packet of a session leaves, whose controller has this rate: step 1, if it begins.
    pub fn on_sent(&mut self, now: Instant, number: usize, rate: f64) {
        let flow = &mut self.flows[number];
        flow.sent = now;
        if flow.rate.is_none() {
            flow.rate = Some(rate);
            self.sum += rate;
        }
    }

    /// The rate of a session; `None` before it sends, and in a pause.
    #[must_use]
    pub fn rate(&self, number: usize) -> Option<f64> {
        self.flows[number].rate
    }

    /// The controller of a session determined a new rate: step 3, after step 2 for sessions that pause.
    pub fn update(&mut self, now: Instant, number: usize, rate: f64) {
        let Some(before) = self.flows[number].rate else { return };
        self.sum += rate - before;
        for (place, flow) in self.flows.iter_mut().enumerate() {
            if place != number && now.saturating_since(flow.sent) > PAUSE {
                flow.rate = None;
            }
        }
        let active = || self.flows.iter().filter(|flow| flow.rate.is_some());
        // By the letter, S_CR keeps what no flow can use, and a flow would not slow down at congestion.
        self.sum = self.sum.min(active().map(|flow| flow.desired).sum());
        let (mut left, mut priorities) =
            (self.sum, active().map(|flow| flow.priority).sum::<f64>());
        let mut open: Vec<usize> =
            (0..self.flows.len()).filter(|place| self.flows[*place].rate.is_some()).collect();
        loop {
            let count = open.len();
            open.retain(|place| {
                let flow = &mut self.flows[*place];
                let share = left * flow.priority / priorities;
                let is_limited = share >= flow.desired;
                flow.rate = Some(share.min(flow.desired));
                if is_limited {
                    left -= flow.desired;
                    priorities -= flow.priority;
                }
                !is_limited
            });
            if open.is_empty() || open.len() == count {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(flows: &[(f64, f64, f64)]) -> FlowStateExchange {
        let mut exchange = FlowStateExchange::default();
        for (priority, desired, rate) in flows {
            let number = exchange.join(*priority, *desired);
            exchange.on_sent(Instant::ZERO, number, *rate);
        }
        exchange
    }

    fn rates(exchange: &FlowStateExchange) -> Vec<f64> {
        exchange.flows.iter().map(|flow| flow.rate.unwrap_or(0.0)).collect()
    }

    /// RFC 8699 §5.3.1 by hand: 10 + (8 - 10) = 8 of priorities 2, 1 and 1.
    #[test]
    fn a_flow_has_its_priority_portion() {
        let mut exchange = exchange(&[(2.0, 100.0, 5.0), (1.0, 100.0, 10.0), (1.0, 100.0, 3.0)]);
        exchange.update(Instant::ZERO, 1, 8.0);
        assert_eq!(rates(&exchange), [8.0, 4.0, 4.0]);
    }

    /// 18 between three with 2 : 1 : 1: the first takes no more than 5, so that the others have 6.5 each.
    #[test]
    fn what_a_limited_flow_leaves_is_for_the_others() {
        let mut exchange = exchange(&[(2.0, 5.0, 5.0), (1.0, 100.0, 10.0), (1.0, 100.0, 3.0)]);
        exchange.update(Instant::ZERO, 1, 10.0);
        assert_eq!(rates(&exchange), [5.0, 6.5, 6.5]);
    }

    #[test]
    fn a_pause_leaves_the_portion_to_others_and_no_more_than_they_can_use() {
        let mut exchange = exchange(&[(1.0, 10.0, 6.0), (1.0, 10.0, 6.0)]);
        let later = Instant::ZERO + Duration::from_secs(2);
        exchange.on_sent(later, 0, 6.0);
        exchange.update(later, 0, 6.0);
        assert_eq!(rates(&exchange), [10.0, 0.0]);
        // The sum is 10 and not 12: congestion slows the flow down at once.
        exchange.update(later, 0, 8.0);
        assert_eq!(rates(&exchange), [8.0, 0.0]);
        exchange.on_sent(later, 1, 2.0);
        exchange.update(later, 1, 2.0);
        assert_eq!(rates(&exchange), [5.0, 5.0]);
    }
}

//! Delivery rate measurement (draft-ietf-ccwg-bbr-06 §4.1) for controllers that use it: the state of
//! the connection, the state of each segment in flight ([`Snapshot`], beside the scoreboard's
//! records), and the sample made for each acknowledgement of new data.
//!
//! Only connections with such a controller use it; others pay one check per segment.

use super::Tcp;
use super::records::Record;
use super::scoreboard::AckOutcome;
use super::selective::Selective;
use crate::congestion::{CongestionControl, LostPacket, RateSample};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// State when a segment left (§4.1.2.1.2). P.send_time and P.packet_id are in the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    delivered: u64,
    delivered_time: Instant,
    first_send_time: Instant,
    lost: u64,
    tx_in_flight: u64,
    is_app_limited: bool,
}

/// State of the connection (§4.1.2.1.1).
#[derive(Debug, Default)]
pub(super) struct Delivery {
    delivered: u64,
    delivered_time: Instant,
    lost: u64,
    first_send_time: Instant,
    /// C.app_limited: the gap in the pipe is gone when this much has arrived.
    app_limited: Option<u64>,
    /// The window was full; this counts for the last round trip until this much has arrived.
    cwnd_limited: u64,
    /// C.min_rtt.
    min_rtt: Option<Duration>,
    /// The newest segment covered by the current acknowledgement.
    newest: Option<(Record, Snapshot)>,
    /// After the segment declared lost last.
    lost_after: Seq,
}

impl Delivery {
    /// §4.1.2.2: a segment of `len` bytes leaves, with `inflight` bytes before it.
    fn on_sent(&mut self, now: Instant, len: u64, inflight: u64, window: u64) -> Snapshot {
        if inflight == 0 {
            (self.first_send_time, self.delivered_time) = (now, now);
        }
        let tx_in_flight = inflight + len;
        if tx_in_flight + len > window {
            self.cwnd_limited = self.delivered + tx_in_flight;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_send_time: self.first_send_time,
            lost: self.lost,
            tx_in_flight,
            is_app_limited: self.app_limited.is_some(),
        }
    }

    /// §4.1.2.3: UpdateRateSample. `sample` computes the sums once for all segments.
    pub(super) fn on_arrived(&mut self, record: &Record, snapshot: &Snapshot) {
        let newer = self.newest.as_ref().is_none_or(|(newest, _)| {
            record.sent > self.first_send_time
                || (record.sent == self.first_send_time && record.end > newest.end)
        });
        if newer {
            self.newest = Some((*record, *snapshot));
            self.first_send_time = record.sent;
        }
    }

    /// §4.1.2.3: GenerateRateSample; `None` if no whole segment has arrived.
    fn sample(&mut self, now: Instant, news: &AckOutcome) -> Option<RateSample> {
        self.delivered += news.delivered;
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        let (record, snapshot) = self.newest.take()?;
        self.delivered_time = now;
        let rtt = now.saturating_since(record.sent);
        // §4.2: the RTT of a retransmitted segment is ambiguous.
        let rtt = Some(rtt).filter(|_| !record.ambiguous);
        self.min_rtt = [self.min_rtt, rtt].into_iter().flatten().min();
        let send_elapsed = record.sent.saturating_since(snapshot.first_send_time);
        let ack_elapsed = now.saturating_since(snapshot.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - snapshot.delivered;
        let plausible = interval > Duration::ZERO && self.min_rtt.is_none_or(|rtt| interval >= rtt);
        Some(RateSample {
            newly_acked: news.delivered,
            total_delivered: self.delivered,
            prior_delivered: snapshot.delivered,
            delivered,
            delivery_rate: if plausible { delivered as f64 / interval.as_secs_f64() } else { 0.0 },
            is_app_limited: snapshot.is_app_limited,
            tx_in_flight: snapshot.tx_in_flight,
            lost: self.lost - snapshot.lost,
            rtt,
            is_cwnd_limited: self.delivered <= self.cwnd_limited,
            ..RateSample::default()
        })
    }

    fn mark_app_limited(&mut self, inflight: u64) {
        self.app_limited = Some((self.delivered + inflight).max(1));
    }
}

impl Tcp {
    /// The state to record for a segment of `len` bytes about to leave, if delivery is measured.
    #[inline]
    pub(super) fn snapshot(
        &mut self,
        now: Instant,
        selective: &mut Selective,
        len: u64,
    ) -> Option<Snapshot> {
        let delivery = selective.delivery.as_mut()?;
        let inflight = selective.board.pipe();
        if inflight == 0 && delivery.app_limited.is_some() {
            self.cc.on_restart(now);
        }
        Some(delivery.on_sent(now, len, inflight, self.cc.window()))
    }

    /// §4.1.2.4: CheckIfApplicationLimited, before an application write, an acknowledgement or a
    /// timeout is processed.
    pub(super) fn check_if_application_limited(&mut self) {
        if let Some(Selective { board, delivery: Some(delivery), .. }) =
            self.selective.as_deref_mut()
            && self.tx.nxt >= self.tx.end()
            && board.pipe() < self.cc.window()
            && !board.has_pending()
        {
            delivery.mark_app_limited(board.pipe());
        }
    }

    /// Reports losses to the controller (§5.2.4).
    pub(super) fn report_losses(&mut self, now: Instant, selective: &mut Selective) {
        let Some(delivery) = selective.delivery.as_mut() else { return };
        for (record, snapshot) in selective.board.take_fallen() {
            delivery.lost += record.len();
            let packet = LostPacket {
                size: record.len(),
                tx_in_flight: snapshot.tx_in_flight,
                lost: delivery.lost - snapshot.lost,
                is_app_limited: snapshot.is_app_limited,
                is_new_range: record.start != delivery.lost_after,
            };
            delivery.lost_after = record.end;
            self.cc.on_lost(now, &packet);
        }
    }

    /// Reports arrivals to the controller (§5.2.3).
    pub(super) fn report_delivery(
        &mut self,
        now: Instant,
        selective: &mut Selective,
        (news, prior_inflight): (&AckOutcome, u64),
    ) {
        self.report_losses(now, selective);
        let recovering = self.recovery.is_fast() || self.tx.una < self.recovery.recover;
        let inflight = selective.board.pipe();
        let Some(delivery) = selective.delivery.as_mut() else { return };
        let Some(sample) = delivery.sample(now, news) else { return };
        let sample = RateSample { inflight, prior_inflight, recovering, ..sample };
        if self.cc.on_sample(now, &sample, &self.rtt) {
            delivery.mark_app_limited(inflight);
        }
    }

    /// True if the controller uses delivery rates.
    pub(super) fn wants_delivery(&self) -> bool {
        self.cc.uses_samples()
    }
}

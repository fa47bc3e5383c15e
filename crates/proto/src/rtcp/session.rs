//! One participant's RTCP: when its next report is due (RFC 3550 §6.3), the report's contents, and processing
//! of the other side's report (§6.4.1). A session has two parties; a third source's reports are ignored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::{Census, Share, deterministic, randomised};
use super::ntp::{from_short, short};
use super::{Compound, Feedback, Message, NtpTime, ReportBlock, SenderInfo};
use crate::math;
use crate::rng::Rng;
use crate::rtp::{Receiver, Reception, Sender};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::validate::config;

/// First guess of a compound packet's length, before any was sent (RFC 3550 §6.3.2).
const FIRST_GUESS: u64 = 100;
/// Time constant of the average of the fractions lost: that of libwebrtc's encoder of Opus. With one packet in
/// a hundred lost, every second report on five seconds may say that none was.
const LOSS_MEMORY: Duration = Duration::from_secs(10);

config! {
    /// Parameters of RTCP.
    pub struct Config {
        /// Whether reports are sent.
        enabled: bool = true,
        /// Part of the session bandwidth that reports may take (RFC 3550 §6.2: 5 %).
        #[schemars(range(min = 0.001, max = 1.0))]
        bandwidth_fraction: f64 = 0.05,
        /// Lower bound of the calculated interval between reports (RFC 3550 §6.2: 5 s); half of it
        /// before the first report. What is waited is random, 0.41 to 1.23 of the interval.
        minimum_interval: Duration = Duration::from_secs(5),
        /// Lower the bound to 360 s divided by the session bandwidth in kbit/s (RFC 3550 §6.2).
        reduced_minimum: bool = false,
    }
}

impl Config {
    fn share(&self, session: Rate) -> Share {
        let part = session.as_bps() as f64 * self.bandwidth_fraction / 8.0;
        let reduced = (360_000_u128 * 1_000_000_000)
            .checked_div(u128::from(session.as_bps()))
            .map_or(Duration::MAX, |nanos| Duration::from_nanos(nanos as u64));
        let minimum = if self.reduced_minimum {
            self.minimum_interval.min(reduced)
        } else {
            self.minimum_interval
        };
        Share { bytes_per_second: crate::math::round_u64(part), minimum }
    }
}

/// State of the other party.
#[derive(Clone, Copy, Debug)]
struct Peer {
    ssrc: u32,
    /// Whether its last report was a sender report.
    sends: bool,
    /// Middle of the NTP time of its last sender report, and when that arrived.
    last_sr: Option<(u32, Instant)>,
    /// When it was last heard from.
    heard: Instant,
}

/// One participant of a two-party session.
#[derive(Clone, Debug)]
pub struct Session {
    ssrc: u32,
    cname: String,
    share: Share,
    rng: Rng,
    peer: Option<Peer>,
    /// RFC 3550 §6.3: tn, absent when no more reports are due.
    next: Option<Instant>,
    /// RFC 3550 §6.3: tp.
    previous: Instant,
    initial: bool,
    /// Header bytes below a report, included in its size (RFC 3550 §6.2).
    lower_layers: u64,
    mean_size_x16: u64,
    /// Packet counts of the sender at the last two reports (§6.4: whether it has sent since).
    sent_before: [u32; 2],
    we_sent: bool,
    rtt: Option<Duration>,
    /// Share of our packets that will be lost, by the reports so far, and when the last one came.
    expected_loss: Option<(f64, Instant)>,
    /// It was not taken since then.
    is_news: bool,
    /// The other participant sent BYE.
    peer_left: bool,
}

impl Session {
    /// A participant that reports as `ssrc` and `cname` from `now` on. `session` is the session
    /// bandwidth (RFC 3550 §6.2: of the media with its UDP and IP headers), `lower_layers` the
    /// bytes of transport and IP header in front of a report.
    #[must_use]
    pub fn new(
        config: &Config,
        session: Rate,
        lower_layers: u32,
        ssrc: u32,
        cname: String,
        now: Instant,
        rng: Rng,
    ) -> Self {
        let lower_layers = u64::from(lower_layers);
        let mut participant = Self {
            ssrc,
            cname,
            share: config.share(session),
            rng,
            peer: None,
            next: None,
            previous: now,
            initial: true,
            lower_layers,
            mean_size_x16: (FIRST_GUESS + lower_layers) * 16,
            sent_before: [0; 2],
            we_sent: false,
            rtt: None,
            expected_loss: None,
            is_news: false,
            peer_left: false,
        };
        if config.enabled {
            // RFC 3550 §6.3.2: the first report waits a full random interval.
            participant.next = Some(now + participant.interval());
        }
        participant
    }

    /// SSRC of its packets.
    #[must_use]
    pub const fn ssrc(&self) -> u32 {
        self.ssrc
    }
    /// Whether this is the other participant.
    #[must_use]
    pub fn is_peer(&self, ssrc: u32) -> bool {
        self.peer.is_some_and(|peer| peer.ssrc == ssrc)
    }
    /// When [`Session::report`] is to be called; `None` if reports are off or BYE was sent.
    #[must_use]
    pub const fn next(&self) -> Option<Instant> {
        self.next
    }
    /// The lower bound of the interval between reports (RFC 3550 §6.2).
    #[must_use]
    pub const fn minimum_interval(&self) -> Duration {
        self.share.minimum
    }
    /// The last round-trip time from a report (RFC 3550 §6.4.1).
    #[must_use]
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The share of our packets that is expected to be lost, 0 to 1: an exponential average of the fractions
    /// lost in the receiver's reports (RFC 3550 §6.4.1); `None` if no report came since the last call.
    pub fn take_expected_loss(&mut self) -> Option<f64> {
        let is_news = std::mem::replace(&mut self.is_news, false);
        self.expected_loss.filter(|_| is_news).map(|(loss, _)| loss)
    }

    /// The interval has passed: the report to send, or `None` if the interval, reconsidered, has
    /// grown beyond `now`; either way [`Session::next`] changes.
    pub fn report(
        &mut self,
        now: Instant,
        sender: Option<&Sender>,
        receiver: Option<&mut Receiver>,
    ) -> Option<Compound> {
        let due = self.next?;
        if now < due {
            return None;
        }
        self.expire_peer(now);
        self.observe(sender);
        // RFC 3550 §6.3.6: timer reconsideration.
        let reconsidered = self.previous + self.interval();
        if reconsidered > now {
            self.next = Some(reconsidered);
            return None;
        }
        let compound = self.compound(now, sender, receiver, false);
        self.on_size(&compound);
        self.previous = now;
        self.initial = false;
        self.next = Some(now + self.interval());
        if let Some(sender) = sender {
            self.sent_before = [sender.packets(), self.sent_before[0]];
        }
        Some(compound)
    }

    /// True once the other participant has sent BYE.
    #[must_use]
    pub const fn peer_left(&self) -> bool {
        self.peer_left
    }

    /// The last packet of a leaving participant, with a BYE (RFC 3550 §6.3.7: at once, the
    /// session having fewer than fifty members); `None` if reports are off or none was ever sent.
    pub fn bye(
        &mut self,
        now: Instant,
        sender: Option<&Sender>,
        receiver: Option<&mut Receiver>,
    ) -> Option<Compound> {
        self.next.take()?;
        self.observe(sender);
        // RFC 3550 §6.3.7: no BYE if neither RTP nor RTCP was sent.
        if self.initial && !self.we_sent {
            return None;
        }
        Some(self.compound(now, sender, receiver, true))
    }

    /// Processes the other party's report, which arrived at `now`; returns the round-trip time if
    /// it answers a sender report of ours (RFC 3550 §6.4.1).
    pub fn on_report(&mut self, now: Instant, compound: &Compound) -> Option<Duration> {
        if compound.ssrc == self.ssrc {
            return None;
        }
        let known = *self.peer.get_or_insert(Peer {
            ssrc: compound.ssrc,
            sends: false,
            last_sr: None,
            heard: now,
        });
        if known.ssrc != compound.ssrc {
            return None;
        }
        self.on_size(compound);
        if compound.reduced {
            return None;
        }
        let sr = compound.sender.map(|info| (info.ntp.middle(), now));
        self.peer =
            Some(Peer { sends: sr.is_some(), last_sr: sr.or(known.last_sr), heard: now, ..known });
        if compound.bye {
            self.on_bye(now);
        }
        let block = compound.reports.iter().find(|block| block.ssrc == self.ssrc)?;
        self.on_fraction_lost(now, f64::from(block.fraction_lost) / 256.0);
        let rtt = round_trip(now, block)?;
        self.rtt = Some(rtt);
        Some(rtt)
    }

    fn on_fraction_lost(&mut self, now: Instant, fraction: f64) {
        let loss = self.expected_loss.map_or(fraction, |(before, then)| {
            let age = now.saturating_since(then).as_secs_f64();
            let keep = math::exp(-age / LOSS_MEMORY.as_secs_f64());
            keep * before + (1.0 - keep) * fraction
        });
        (self.expected_loss, self.is_news) = (Some((loss, now)), true);
    }

    fn interval(&mut self) -> Duration {
        randomised(deterministic(&self.census(), &self.share), &mut self.rng)
    }

    fn census(&self) -> Census {
        let peer_sends = self.peer.is_some_and(|peer| peer.sends);
        Census {
            members: 1 + u64::from(self.peer.is_some()),
            senders: u64::from(self.we_sent) + u64::from(peer_sends),
            we_sent: self.we_sent,
            initial: self.initial,
            mean_size_x16: self.mean_size_x16,
        }
    }

    /// RFC 3550 §6.4: a sender report if media was sent since the last report or the one before.
    fn observe(&mut self, sender: Option<&Sender>) {
        self.we_sent = sender.is_some_and(|sender| sender.packets() != self.sent_before[1]);
    }

    /// RFC 3550 §6.3.5: a peer silent for five deterministic receiver intervals has left.
    fn expire_peer(&mut self, now: Instant) {
        let receiver = Census { we_sent: false, ..self.census() };
        let limit = deterministic(&receiver, &self.share) * 5;
        self.peer = self.peer.filter(|peer| now.saturating_since(peer.heard) <= limit);
    }

    /// RFC 3550 §6.3.4, reverse reconsideration: with one member of two left, both times halve.
    fn on_bye(&mut self, now: Instant) {
        (self.peer, self.peer_left) = (None, true);
        if let Some(next) = self.next {
            self.next = Some(now + next.saturating_since(now) / 2);
            let since = now.saturating_since(self.previous) / 2;
            self.previous = Instant::from_nanos(now.as_nanos() - since.as_nanos());
        }
    }

    /// RFC 3550 §6.3.3: avg_rtcp_size moves by a sixteenth.
    fn on_size(&mut self, compound: &Compound) {
        let size = compound.wire_bytes() as u64 + self.lower_layers;
        self.mean_size_x16 = self.mean_size_x16 + size - self.mean_size_x16 / 16;
    }

    fn compound(
        &self,
        now: Instant,
        sender: Option<&Sender>,
        receiver: Option<&mut Receiver>,
        bye: bool,
    ) -> Compound {
        let info = sender.filter(|_| self.we_sent).map(|sender| SenderInfo {
            ntp: NtpTime::from(now),
            rtp_timestamp: sender.timestamp_at(now),
            packets: sender.packets(),
            octets: sender.octets(),
        });
        let block = receiver.and_then(Receiver::report).map(|seen| self.block(now, seen));
        Compound {
            ssrc: self.ssrc,
            sender: info,
            reports: block.into_iter().collect(),
            cname: self.cname.clone(),
            feedback: Vec::new(),
            bye,
            reduced: false,
        }
    }

    /// A packet of feedback alone (RFC 5506), which counts in the average size (§3.4.2).
    pub fn feedback(&mut self, messages: Vec<Message>) -> Compound {
        let sender = self.ssrc;
        let feedback = messages.into_iter().map(|message| Feedback { sender, message }).collect();
        let compound = Compound { ssrc: self.ssrc, feedback, reduced: true, ..Compound::default() };
        self.on_size(&compound);
        compound
    }

    fn block(&self, now: Instant, seen: Reception) -> ReportBlock {
        let (last_sr, delay_since_last_sr) = self
            .peer
            .filter(|peer| peer.ssrc == seen.ssrc)
            .and_then(|peer| peer.last_sr)
            .map_or((0, 0), |(sr, arrived)| (sr, short(now.saturating_since(arrived))));
        ReportBlock {
            ssrc: seen.ssrc,
            fraction_lost: seen.fraction_lost,
            cumulative_lost: seen.cumulative_lost,
            highest_sequence: seen.highest_sequence,
            jitter: seen.jitter,
            last_sr,
            delay_since_last_sr,
        }
    }
}

/// RFC 3550 §6.4.1: A − LSR − DLSR, `None` without LSR or when a jumping clock makes it negative.
fn round_trip(now: Instant, block: &ReportBlock) -> Option<Duration> {
    if block.last_sr == 0 {
        return None;
    }
    let arrival = NtpTime::from(now).middle();
    let rtt = arrival.wrapping_sub(block.last_sr).wrapping_sub(block.delay_since_last_sr);
    (rtt as i32 >= 0).then(|| from_short(rtt))
}

//! TFRC with a token bucket (Maldonado, Baset and Schulzrinne 2005, TFRC-TB): the source sends at
//! the highest rung of its ladder within TFRC's rate X; the surplus of X fills a bucket; when X
//! falls below the rung, tokens sustain it until they are spent. Below the lowest rung packets
//! leave at X, as in TFRC; above the best one nothing more is requested.
//!
//! The accounts are integers, in bits times nanoseconds. Two hold all that may be sent: the pace,
//! which X fills and every packet draws on, and the tokens, which only the pace's overflow fills and
//! which only refill the pace. So the bytes sent never exceed the integral of X and one packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ladder::Ladder;
use super::{Permit, RateControl, Report, Rung};
use crate::gauge::{EndpointProbe, Gauge, Topic};
use crate::time::{Duration, Instant};
use crate::units::{Rate, Size};
use crate::validate::config;

config! {
    /// A token bucket over the rate of TFRC (Maldonado, Baset and Schulzrinne 2005). The study describes
    /// the mechanism but none of these values; the ladder is the source's.
    pub struct Config {
        /// Capacity in tokens; 0B makes a plain ladder. The default sustains G.711 in 20 ms packets for 2 s
        /// while the fair rate only covers 32 kbit/s of G.726: eight round trips of 250 ms, in which TFRC
        /// forgets one loss event. It is also the maximum by which a flow may exceed its fair share after a
        /// time of surplus.
        depth: Size = Size::from_bytes(8000),
        /// Time for which X must cover a better rung before it is used. The default is a few round trips of
        /// a telephone path and much shorter than a talkspurt (ITU-T P.59: 1 s); with 0s every rise of X is
        /// followed at once.
        step_up: Duration = Duration::from_millis(500),
        /// Share of `depth` that must be in the bucket before a better rung is used, 0 to 1. With 0 only X
        /// decides, as in the study ("highest codec rate below X").
        #[schemars(range(min = 0, max = 1))]
        step_up_tokens: f64 = 0.0,
        /// Header bytes counted per packet in the rungs, X and the tokens, besides those handed to the
        /// transport. The study counts IP and UDP headers (20 and 8) beside RTP's, which is handed over.
        /// CCID 4 counts its own headers instead (RFC 4828 §4.2).
        header_bytes: u32 = 28,
        /// Initial rung, 0 being the best; absent means the lowest, as the path is unknown before the first
        /// feedback.
        #[serde(skip_serializing_if = "Option::is_none")]
        initial_rung: Option<u8> = None,
    }
}

/// A byte in bits times nanoseconds: the unit of the accounts is the bit per second times the nanosecond.
const BYTE: i128 = 8_000_000_000;
/// Packets the pace may hold: one that is due, and one delayed by the source's noise, so that its
/// lateness is kept.
const PACE_PACKETS: i128 = 2;

/// A token bucket around a rate controller.
#[derive(Clone, Debug)]
pub struct Bucket<C> {
    inner: C,
    ladder: Ladder,
    config: Config,
    /// Shortest time between two packets.
    minimum_interval: Duration,
    /// What may leave now; below zero after a packet longer than the account can hold.
    pace: i128,
    /// Bytes of the packet that may leave before X has earned anything.
    first_bytes: u32,
    tokens: i128,
    /// Overflow of the pace the bucket may still take: evidence beyond the rung.
    mint: i128,
    /// The accounts are settled up to here.
    settled: Instant,
    last_sent: Option<Instant>,
    /// Since when X covers each rung.
    pays: Vec<Option<Instant>>,
    /// The X for which this was found.
    looked_at: Option<Rate>,
    /// Tokens without which no better rung is used.
    wanted: f64,
    /// The rung is due for a change at the next timeout, which has a probe.
    pending: bool,
    /// Longest packets handed over since the last report and in the interval before.
    longest: [u32; 2],
}

impl<C: RateControl> Bucket<C> {
    /// A bucket around `inner` for a source with these rungs, best first, at least one.
    /// `minimum_interval` is the shortest time between two packets (RFC 4828 §4.3), or zero.
    ///
    /// # Panics
    /// If there are no rungs.
    #[must_use]
    pub fn new(
        now: Instant,
        config: &Config,
        rungs: &[Rung],
        minimum_interval: Duration,
        inner: C,
    ) -> Self {
        let mut ladder = Ladder::new(rungs, config.header_bytes);
        assert!(!ladder.is_empty(), "a token bucket needs a ladder of at least one rung");
        ladder.rung = config.initial_rung.unwrap_or(u8::MAX).min(ladder.lowest());
        let first_bytes = ladder.cost(ladder.rung).packet_bytes;
        Self {
            inner,
            config: config.clone(),
            minimum_interval,
            pace: bits(first_bytes),
            first_bytes,
            tokens: 0,
            mint: 0,
            settled: now,
            last_sent: None,
            pays: vec![None; ladder.len()],
            looked_at: None,
            wanted: (i128::from(config.depth.as_bytes()) * BYTE) as f64
                * config.step_up_tokens.clamp(0.0, 1.0),
            pending: false,
            longest: [0; 2],
            ladder,
        }
    }

    /// The inner controller.
    #[must_use]
    pub const fn inner(&self) -> &C {
        &self.inner
    }
    /// Gives `news` access to the inner controller; the accounts are settled first, and the rung
    /// follows at the next timeout.
    pub fn inform<R>(&mut self, now: Instant, news: impl FnOnce(&mut C) -> R) -> R {
        self.settle(now);
        let answer = news(&mut self.inner);
        self.pending = true;
        answer
    }
    /// Tokens in the bucket, in whole bytes.
    #[must_use]
    pub const fn tokens(&self) -> Size {
        Size::from_bytes((self.tokens / BYTE) as u64)
    }
    /// The rung in use.
    #[must_use]
    pub const fn rung(&self) -> u8 {
        self.ladder.rung
    }

    /// Updates the accounts to `now`, at the rate in force since.
    fn settle(&mut self, now: Instant) {
        let span = i128::from(now.saturating_since(self.settled).as_nanos());
        self.settled = self.settled.max(now);
        if span == 0 {
            return;
        }
        let (x, rung) = (rate_of(&self.inner), self.ladder.cost(self.ladder.rung));
        let r = i128::from(rung.rate.as_bps());
        let full = self.full();
        let filled = self.pace + x * span;
        self.pace = filled.min(full.max(self.pace));
        let overflow = filled - self.pace;
        if x < r {
            self.mint = 0;
            let drawn = ((r - x) * span).min(full - self.pace).clamp(0, self.tokens);
            self.tokens -= drawn;
            self.pace += drawn;
            return;
        }
        // Silence earns no more than speech would: the evidence beyond the rung, sent or not.
        let shown = x.min(i128::from(self.inner.evidence().as_bps()));
        self.mint += (shown - r).max(0) * span;
        let minted = overflow.min(self.mint);
        self.mint = (self.mint - minted).min(full);
        self.tokens = (self.tokens + minted).min(self.depth());
    }

    /// Capacity of the pace. A longer packet leaves it below zero, but by less than its excess over the first.
    fn full(&self) -> i128 {
        PACE_PACKETS * bits(self.ladder.cost(self.ladder.rung).packet_bytes.max(self.first_bytes))
    }

    fn depth(&self) -> i128 {
        i128::from(self.config.depth.as_bytes()) * BYTE
    }

    /// True if the bucket cannot sustain the rung for another packet.
    fn is_spent(&self) -> bool {
        let rung = self.ladder.cost(self.ladder.rung);
        let short = i128::from(rung.rate.as_bps()) - rate_of(&self.inner);
        short > 0 && self.tokens < short * i128::from(rung.interval.as_nanos())
    }

    /// The best of the better rungs that X has covered for long enough.
    fn next_up(&self) -> Option<u8> {
        // Converting the tokens takes longer than all the rest.
        if self.wanted > 0.0 && (self.tokens as f64) < self.wanted {
            return None;
        }
        let paid = |since: &Option<Instant>| {
            since.is_some_and(|since| since + self.config.step_up <= self.settled)
        };
        let better = &self.pays[..usize::from(self.ladder.rung)];
        better.iter().position(paid).map(|rung| rung as u8)
    }

    /// Updates since when X covers each rung.
    fn look_at_rate(&mut self) {
        let x = self.inner.rate();
        if self.looked_at.replace(x) == Some(x) {
            return;
        }
        for (rung, since) in self.pays.iter_mut().enumerate() {
            let pays = self.ladder.cost(rung as u8).rate <= x;
            *since = if pays { since.or(Some(self.settled)) } else { None };
        }
    }

    /// Changes the rung if it is due, and reports.
    fn choose<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        self.pending = false;
        self.look_at_rate();
        if self.is_spent() {
            self.ladder.rung =
                self.ladder.within(self.inner.rate()).unwrap_or(self.ladder.lowest());
            // A pace for longer packets is cut.
            self.pace = self.pace.min(self.full());
            self.mint = 0;
        } else if let Some(rung) = self.next_up() {
            self.ladder.rung = rung;
            self.mint = 0;
        }
        if !probe.observes(Topic::Gauge) {
            return;
        }
        probe.gauge(now, Gauge::Tokens, self.tokens.max(0) as f64 / BYTE as f64);
        self.ladder.tell(now, probe);
    }

    /// When the pace will reach `wanted`.
    fn ready(&self, wanted: i128) -> Option<Instant> {
        let x = rate_of(&self.inner);
        let r = i128::from(self.ladder.cost(self.ladder.rung).rate.as_bps());
        let missing = wanted - self.pace;
        // With tokens the pace rises at the rung's rate until they are spent.
        let held = if x < r { self.tokens / (r - x) } else { 0 };
        let nanos = if missing <= held * r {
            div_ceil(missing, r)
        } else if x > 0 {
            held + div_ceil(missing - held * r, x)
        } else {
            return None;
        };
        let nanos = u64::try_from(nanos.max(1)).unwrap_or(u64::MAX);
        Some(self.settled + Duration::from_nanos(nanos))
    }

    /// Converts a report to the unit of the accounts: the receiver counts payload without headers.
    /// The longest packet it may cover gives the minimum of the headers' bytes.
    fn counted(&mut self, report: &Report) -> Report {
        let longest = u64::from(self.longest[0].max(self.longest[1]));
        self.longest = [0, self.longest[0]];
        let headers = report.receive_rate * u64::from(self.config.header_bytes);
        let added = headers.checked_div(longest).unwrap_or(0);
        Report { receive_rate: report.receive_rate.saturating_add(added), ..*report }
    }
}

impl<C: RateControl> RateControl for Bucket<C> {
    fn permit(&mut self, now: Instant, bytes: u32) -> Permit {
        self.settle(now);
        let counted = bytes.saturating_add(self.config.header_bytes);
        if self.inner.permit(now, counted) == Permit::Blocked {
            return Permit::Blocked;
        }
        if let Some(spaced) = self.last_sent.map(|last| last + self.minimum_interval)
            && now < spaced
        {
            return Permit::At(spaced);
        }
        let wanted = bits(counted).min(self.full());
        if self.pace >= wanted {
            return Permit::Now;
        }
        self.ready(wanted).map_or(Permit::Blocked, Permit::At)
    }

    fn on_unused(&mut self, now: Instant) {
        self.settle(now);
        self.inner.on_unused(now);
    }

    fn on_sent(&mut self, now: Instant, bytes: u32) {
        self.settle(now);
        let counted = bytes.saturating_add(self.config.header_bytes);
        self.pace -= bits(counted);
        self.last_sent = Some(now);
        self.longest[0] = self.longest[0].max(bytes);
        self.inner.on_sent(now, counted);
        self.look_at_rate();
        self.pending |= self.is_spent() && self.ladder.rung < self.ladder.lowest();
        self.pending |= self.next_up().is_some();
    }

    fn on_report<P: EndpointProbe>(&mut self, now: Instant, report: &Report, probe: &mut P) {
        self.settle(now);
        let report = self.counted(report);
        self.inner.on_report(now, &report, probe);
        self.choose(now, probe);
    }

    fn set_initial_rtt<P: EndpointProbe>(&mut self, now: Instant, rtt: Duration, probe: &mut P) {
        self.settle(now);
        self.inner.set_initial_rtt(now, rtt, probe);
        self.choose(now, probe);
    }

    fn deadline(&self) -> Option<Instant> {
        let paid = self.pays[..usize::from(self.ladder.rung)].iter().flatten();
        let up = paid.map(|since| *since + self.config.step_up).filter(|at| *at > self.settled);
        let pending = self.pending.then_some(self.settled);
        up.chain(self.inner.deadline()).chain(pending).min()
    }

    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        self.settle(now);
        if self.inner.deadline().is_some_and(|deadline| deadline <= now) {
            self.inner.on_timeout(now, probe);
        }
        self.choose(now, probe);
    }

    fn rate(&self) -> Rate {
        self.inner.rate()
    }
    fn rtt(&self) -> Option<Duration> {
        self.inner.rtt()
    }
    fn segment_size(&self) -> f64 {
        self.inner.segment_size()
    }
    fn paced_size(&self) -> f64 {
        self.inner.paced_size()
    }
    fn timeout_ticks(&self) -> u8 {
        self.inner.timeout_ticks()
    }
    fn footprint(&self) -> usize {
        self.inner.footprint()
    }
    fn evidence(&self) -> Rate {
        self.inner.evidence()
    }
    fn target_rate(&mut self) -> Option<Rate> {
        self.ladder.target_rate()
    }
}

fn rate_of<C: RateControl>(controller: &C) -> i128 {
    i128::from(controller.rate().as_bps())
}

fn bits(bytes: u32) -> i128 {
    i128::from(bytes) * BYTE
}

/// For non-negative numbers.
const fn div_ceil(a: i128, b: i128) -> i128 {
    (a + b - 1) / b
}

//! Effects of a medium beyond a delay and independent loss: bursts of loss, bit errors, copies, reordering, and
//! conditions that change with time. A link without any of these has no medium and pays one comparison per
//! packet.

use talkspurt_proto::math;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_scenario::link_profile::LinkProfile;
use talkspurt_scenario::model;
use talkspurt_scenario::network::DirectedLink;

/// The medium of one direction of a link.
#[derive(Debug)]
pub struct Medium {
    bursts: Option<GilbertElliott>,
    loss: f64,
    /// Logarithm of the probability that a byte survives, not above 0.
    byte_survives_ln: f64,
    duplicate: f64,
    conditions: Vec<Conditions>,
    /// Whether packets may be reordered.
    pub reorder: bool,
    /// Lower bound of the delay.
    pub least_delay: Duration,
    loss_rng: Rng,
    error_rng: Rng,
    copy_rng: Rng,
}

/// Conditions from an instant on.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    from: Instant,
    delay: Duration,
    /// Loss that replaces the link's own.
    loss: Option<f64>,
}

impl Medium {
    /// The medium of a link, if it needs one.
    #[must_use]
    pub fn of(seed: u64, link: &DirectedLink) -> Option<Box<Self>> {
        let conditions = conditions(link);
        let plain = link.gilbert_elliott.is_none()
            && link.bit_error_rate == 0.0
            && link.duplicate == 0.0
            && !link.reorder
            && conditions.is_empty();
        if plain {
            return None;
        }
        let rng = |purpose| Rng::new(seed, &format!("link/{}/{purpose}", link.name));
        let mut loss_rng = rng("loss");
        let least = conditions.iter().map(|c| c.delay).min();
        Some(Box::new(Self {
            bursts: link.gilbert_elliott.map(|chain| GilbertElliott::new(chain, &mut loss_rng)),
            loss: link.loss,
            byte_survives_ln: 8.0 * math::ln(1.0 - link.bit_error_rate),
            duplicate: link.duplicate,
            conditions,
            reorder: link.reorder,
            least_delay: least.map_or(link.delay, |least| least.min(link.delay)),
            loss_rng,
            error_rng: rng("bit-errors"),
            copy_rng: rng("duplicate"),
        }))
    }

    /// Whether a packet of this wire length, whose transmission ends then, is lost, and if not, its delay;
    /// `delay` is the link's own.
    pub(crate) fn crosses(
        &mut self,
        finish: Instant,
        wire_bytes: u64,
        delay: Duration,
    ) -> Option<Duration> {
        let so_far = self.conditions.partition_point(|conditions| conditions.from <= finish);
        let now = so_far.checked_sub(1).map(|at| self.conditions[at]);
        let lost = match (now.and_then(|now| now.loss), &mut self.bursts) {
            (Some(loss), _) => loss > 0.0 && self.loss_rng.chance(loss),
            (None, Some(chain)) => chain.loses(&mut self.loss_rng),
            (None, None) => self.loss > 0.0 && self.loss_rng.chance(self.loss),
        };
        if lost || self.damages(wire_bytes) {
            return None;
        }
        Some(now.map_or(delay, |now| now.delay))
    }

    /// Independent errors: all 8n bits survive with (1 − b)^(8n).
    fn damages(&mut self, wire_bytes: u64) -> bool {
        self.byte_survives_ln < 0.0
            && !self.error_rng.chance(math::exp(self.byte_survives_ln * wire_bytes as f64))
    }

    /// Whether a packet that survived is duplicated.
    pub(crate) fn copies(&mut self) -> bool {
        self.duplicate > 0.0 && self.copy_rng.chance(self.duplicate)
    }
}

/// Delay and loss from each step on that changes one of them.
fn conditions(link: &DirectedLink) -> Vec<Conditions> {
    let Some(LinkProfile::Steps(steps)) = &link.course else { return Vec::new() };
    let (mut delay, mut loss) = (link.delay, None);
    let changes = steps.iter().filter(|step| step.delay.is_some() || step.loss.is_some());
    let told = changes.map(|step| {
        delay = step.delay.unwrap_or(delay);
        loss = step.loss.or(loss);
        Conditions { from: Instant::ZERO + step.at, delay, loss }
    });
    told.collect()
}

/// A two-state chain with one step per packet.
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    chain: model::GilbertElliott,
    bad: bool,
}

impl GilbertElliott {
    /// A chain in a state drawn from the stationary distribution.
    pub fn new(chain: model::GilbertElliott, rng: &mut Rng) -> Self {
        Self { chain, bad: rng.chance(chain.p / (chain.p + chain.r)) }
    }
    /// Whether this packet is lost; then advances the chain.
    pub fn loses(&mut self, rng: &mut Rng) -> bool {
        let (survives, leaves) = match self.bad {
            true => (self.chain.h, self.chain.r),
            false => (self.chain.k, self.chain.p),
        };
        let lost = !rng.chance(survives);
        self.bad ^= rng.chance(leaves);
        lost
    }
}

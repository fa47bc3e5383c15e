//! The codecs of a call: their names, what is offered and agreed on, and which of them are sent.

use talkspurt_app::codec::{Codec, Encoding};
use talkspurt_proto::time::Duration;

use crate::Failure;
use crate::transport::Transport;

/// Shortest packets, except of codecs with longer frames.
const PACKET: Duration = Duration::from_millis(20);
/// Codecs that a ladder may have.
const MAX_RUNGS: usize = 8;
/// Codecs that may be offered.
const MAX_CODECS: usize = 32;

/// The codec of a name in scenarios.
pub(crate) fn codec(name: &str) -> Option<Codec> {
    Codec::ALL.iter().copied().find(|codec| codec.word() == name)
}

pub(crate) fn names(codecs: &[Codec]) -> Vec<String> {
    codecs.iter().map(|codec| codec.word().to_owned()).collect()
}

/// A codec in packets of 20 ms, or of its frames if these are longer.
pub(crate) fn encoding(codec: Codec) -> Encoding {
    let step = codec.spec().step;
    Encoding::new(codec, step * PACKET.as_nanos().div_ceil(step.as_nanos()).max(1))
}

/// The names of the codecs that a call can have here: those whose sound can be encoded and decoded.
#[must_use]
pub fn call_codecs() -> Vec<String> {
    let sounds = |it: &Codec| it.has_sound() && encoding(*it).mute_error().is_none();
    names(&Codec::ALL.iter().copied().filter(sounds).collect::<Vec<_>>())
}

/// What is sent after an agreement: the first codec or, where the transport chooses, all that have its sample
/// rate and a lower rate than those before them.
pub(crate) fn rungs(transport: &Transport, agreed: &[Codec]) -> Vec<Encoding> {
    let most = if transport.chooses() { MAX_RUNGS } else { 1 };
    let mut rungs = Vec::<Encoding>::new();
    for encoding in agreed.iter().copied().map(encoding) {
        let samples = |it: &Encoding| it.codec.spec().sample_rate;
        let lower = rungs.last().is_none_or(|last| {
            encoding.rung().rate() < last.rung().rate() && samples(&encoding) == samples(last)
        });
        if lower && rungs.len() < most {
            rungs.push(encoding);
        }
    }
    rungs
}

/// The codecs offered that we have, in the order of the offer.
pub(crate) fn agree(offered: &[String], ours: &[Codec]) -> Result<Vec<Codec>, Failure> {
    let known = offered.iter().take(MAX_CODECS).filter_map(|name| codec(name));
    let mut agreed = Vec::new();
    for codec in known.filter(|codec| ours.contains(codec)) {
        if !agreed.contains(&codec) {
            agreed.push(codec);
        }
    }
    if agreed.is_empty() {
        // Only names: what was offered comes from the network.
        let offered = offered.iter().take(MAX_CODECS);
        let offered: Vec<_> = offered.filter_map(|it| codec(it)).map(Codec::word).collect();
        let offered =
            if offered.is_empty() { "none that is known".to_owned() } else { offered.join(", ") };
        let ours = names(ours).join(", ");
        return Err(Failure::Refused(format!(
            "no common codec: the caller offers {offered}; the answerer has {ours}"
        )));
    }
    Ok(agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_offer_decides() {
        let ours = [Codec::Pcmu, Codec::G722, Codec::G726At32];
        let offer = |names: &[&str]| {
            agree(&names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), &ours)
        };
        assert_eq!(
            offer(&["opus", "g722", "nonsense", "pcmu", "g722"]),
            Ok(vec![Codec::G722, Codec::Pcmu])
        );
        let why = offer(&["opus", "\u{1b}[2J"]).expect_err("nothing in common").to_string();
        assert!(why.contains("offers opus; the answerer has pcmu, g722, g726-32"), "{why}");
    }

    /// Only TFRC-TB chooses, and only among codecs of falling rate.
    #[test]
    fn a_ladder_has_falling_rates() {
        let agreed = [Codec::G726At32, Codec::Pcmu, Codec::G726At24, Codec::G726At16];
        let [chooses, other] =
            ["tfrc-tb", "udp"].map(|name| Transport::named(name).expect("it is known"));
        let rungs =
            |transport| rungs(transport, &agreed).iter().map(|it| it.codec).collect::<Vec<_>>();
        let falling = [Codec::G726At32, Codec::G726At24, Codec::G726At16];
        assert_eq!(rungs(&chooses), falling);
        assert_eq!(rungs(&other), falling[..1]);
        let rungs = super::rungs(&chooses, &[Codec::Opus, Codec::G726At16]);
        assert_eq!(rungs.len(), 1, "of one sample rate");
    }
}

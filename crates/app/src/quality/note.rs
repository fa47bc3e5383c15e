//! The note beside every score: assumptions, and violations of G.107's range of validity.

use super::emodel::Parameters;
use super::range::{MAX_DELAY_MS, MAX_LOSS, SOME_LOSS, max_burst};
use super::{Config, Declared, Echo, Score};
use crate::codec::Codec;
use crate::playout::Concealment;

/// Clauses, joined at the end.
pub(super) struct Note {
    clauses: Vec<String>,
    /// Number of clauses before those of limits, which are the last.
    assumed: usize,
}

impl Note {
    pub(super) fn assuming(
        config: &Config,
        heard: &[(Codec, u64)],
        concealment: Concealment,
    ) -> Self {
        let echo = match config.echo {
            Echo::Perfect => "perfect echo control assumed (T = Tr = 0)".to_owned(),
            Echo::Loss => {
                format!("echo with TELR {} dB assumed (T = Ta, Tr = 2 Ta)", config.telr)
            }
        };
        let frames: u64 = heard.iter().map(|(_, frames)| frames).sum();
        let used = |(_, of): &&(Codec, u64)| *of > 0 || heard.len() == 1;
        let codecs: Vec<_> = heard.iter().filter(used).collect();
        let several = codecs.len() > 1;
        let mean = several.then(|| {
            let share = |(codec, of): &&(Codec, u64)| {
                format!("{} {:.0} %", codec.spec().name, 100.0 * *of as f64 / frames as f64)
            };
            let shares: Vec<_> = codecs.iter().map(share).collect();
            format!("Ie and Bpl are means over the frames heard: {}", shares.join(", "))
        });
        let of = |(codec, _): &&(Codec, u64)| robustness(config, *codec, concealment);
        let codecs = codecs.iter().flat_map(of);
        let advantage = (config.advantage != 0.0)
            .then(|| format!("advantage factor A = {} (quality.advantage)", config.advantage));
        let first = [Some(echo), advantage, mean].into_iter().flatten();
        let clauses: Vec<_> = first.chain(codecs).collect();
        Self { assumed: clauses.len(), clauses }
    }

    /// Adds a clause for every range of G.107 §7.7 that the run exceeded.
    pub(super) fn limits(&mut self, p: &Parameters) {
        if p.ta > MAX_DELAY_MS {
            self.add(format!("{:.0} ms of delay is beyond G.107's {MAX_DELAY_MS}", p.ta));
        }
        if p.ppl > MAX_LOSS {
            self.add(format!("{:.1} % of loss is beyond G.107's {MAX_LOSS}", p.ppl));
        }
        if p.burst_r > max_burst(p.ppl) {
            let burst = p.burst_r;
            self.add(if p.ppl >= SOME_LOSS {
                format!("burst ratio {burst:.1} at {:.1} % of loss is beyond G.107's 2", p.ppl)
            } else {
                format!("burst ratio {burst:.1} is beyond G.107's 8")
            });
        }
    }

    fn add(&mut self, clause: String) {
        self.clauses.push(clause);
    }

    /// The ranges that were exceeded.
    pub(super) fn exceeded(&self) -> &[String] {
        &self.clauses[self.assumed..]
    }

    pub(super) fn without_score(mut self, why: &str) -> Score {
        self.clauses.insert(0, why.to_owned());
        Score {
            r: None,
            mos: None,
            bounds: None,
            lost_to_delay: None,
            lost_to_loss: None,
            lost_to_codec: None,
            limits: Vec::new(),
            note: self.text(),
        }
    }

    pub(super) fn text(self) -> String {
        self.clauses.join("; ")
    }
}

/// Why there is no score where a factor of some codecs heard is not published, and what would give one.
pub(super) fn without(
    factor: &str,
    heard: &[(Codec, u64)],
    concealment: Concealment,
    value: impl Fn(Codec) -> Option<f64>,
) -> String {
    let lacks =
        |(codec, of): &&(Codec, u64)| (*of > 0 || heard.len() == 1) && value(*codec).is_none();
    let lacking: Vec<Codec> = heard.iter().filter(lacks).map(|(codec, _)| *codec).collect();
    let names: Vec<_> = lacking.iter().map(|codec| codec.spec().name).collect();
    let mut why = format!(
        "no score: G.113 Appendix I has no {factor} for {}, and quality.codecs declares none",
        names.join(" and ")
    );
    let mut others: Vec<&str> = Vec::new();
    for codec in lacking {
        let other = codec.relative_with_factors(concealment).map(Codec::word);
        others.extend(other.filter(|word| !others.contains(word)));
    }
    if !others.is_empty() {
        let codecs = others.join(" or ");
        why.push_str(&format!(": declare one, or use {codecs}, which has both factors"));
    }
    why
}

/// Sources of a codec's values: what was declared, and the robustness to loss of G.113.
fn robustness(config: &Config, codec: Codec, concealment: Concealment) -> Vec<String> {
    let declared = config.declared(codec);
    let own = declared.map(|Declared { ie, bpl, source, .. }| {
        let bpl = bpl.map_or_else(String::new, |bpl| format!(" and Bpl {bpl}"));
        format!(
            "Ie {ie}{bpl} for {} as declared, not from ITU-T: {}",
            codec.spec().name,
            one(source)
        )
    });
    let published = declared.is_none_or(|declared| declared.bpl.is_none());
    let table = codec.bpl(concealment).filter(|_| published);
    own.into_iter().chain(table.map(|bpl| published_bpl(codec, concealment, bpl))).collect()
}

/// A source as part of a clause: clauses are separated by semicolons.
fn one(source: &str) -> String {
    source.replace(';', ",")
}

fn published_bpl(codec: Codec, concealment: Concealment, bpl: f64) -> String {
    // G.113 Appendix I gives each for one packet duration.
    let how = match (codec.conceals(), concealment) {
        (true, _) => "gaps concealed by the decoder",
        (false, Concealment::Silence) => "gaps played as silence",
        (false, _) => "gaps concealed by G.711 Appendix I",
    };
    let ms = codec.spec().bpl_packet.as_nanos() / 1_000_000;
    format!("Bpl {bpl} for {}, {how} (G.113 Appendix I, {ms} ms packets)", codec.spec().name)
}

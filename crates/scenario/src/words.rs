//! The nearest known word to the one that was written, for "did you mean".

/// How alike two words must be (1 is equal) before one is offered for the other.
const ALIKE: f64 = 0.55;

/// Letters of a word beyond which it is like no other: comparing takes time and memory by its length.
const LONGEST: usize = 64;

/// The candidate most like `word`; among equals the first.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = plain(word);
    let mut best = (ALIKE, None);
    for candidate in candidates {
        if candidate.len() > LONGEST {
            continue;
        }
        let other = plain(candidate);
        let starts = word.len() >= 3 && (other.starts_with(&word) || word.starts_with(&other));
        let bonus = if starts { 0.4 } else { 0.0 };
        let likeness = strsim::normalized_damerau_levenshtein(&word, &other) + bonus;
        if likeness > best.0 {
            best = (likeness, Some(candidate));
        }
    }
    best.1
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace(['-', ' '], "_")
}

/// `did you mean "udp"?`, or else what there is to choose from.
pub(crate) fn did_you_mean<'a>(
    what: &str,
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<String> {
    if let Some(near) = nearest(word, candidates.clone()) {
        return Some(format!("did you mean \"{near}\"?"));
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    if all.is_empty() { None } else { Some(format!("{what}: {}", list(&all))) }
}

/// `a, b, c`, cut where a reader would stop.
pub(crate) fn list(words: &[&str]) -> String {
    const SHOWN: usize = 16;
    let mut text = words[..words.len().min(SHOWN)].join(", ");
    if words.len() > SHOWN {
        text.push_str(&format!(" and {} more", words.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_what_was_meant_and_nothing_far_fetched() {
        assert_eq!(nearest("udpp", ["udp", "tcp"]), Some("udp"));
        assert_eq!(nearest("UDP", ["tcp", "udp"]), Some("udp"));
        assert_eq!(nearest("bottelneck", ["access", "bottleneck"]), Some("bottleneck"));
        assert_eq!(nearest("new-reno", ["newreno"]), Some("newreno"));
        assert_eq!(nearest("dur", ["delay", "duration"]), Some("duration"));
        assert_eq!(nearest("satellite", ["access", "bottleneck"]), None);
        let long = "udp".repeat(1_000_000);
        assert_eq!(nearest(&long, ["udp"]), None);
        assert_eq!(nearest("udp", [long.as_str()]), None);
    }
}

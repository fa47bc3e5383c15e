//! The nearest known word to an unknown one, for "did you mean".

/// Minimum similarity (1 is equal) for a suggestion.
const ALIKE: f64 = 0.55;

/// Maximum letters of a word to compare: the cost grows with its length.
const LONGEST: usize = 64;

/// The candidate most similar to `word`; among equals, the first.
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

/// `did you mean "udp"?`, or else the available words.
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

/// `a, b, c`, truncated to a readable length.
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

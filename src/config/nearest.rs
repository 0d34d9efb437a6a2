//! "Did you mean ...?": the known word nearest to one that isn't known.

/// The word of `known` that `typed` is most likely meant to be, if one is near enough.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let distance = |word: &str| strsim::damerau_levenshtein(&typed, &word.to_lowercase());
    let (word, errors) = known.into_iter().map(|w| (w, distance(w))).min_by_key(|(_, d)| *d)?;
    // One error in three letters; two words that share nothing are never near.
    (errors * 3 <= word.len().max(3) && errors < word.len()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_not() {
        let commands = ["plan", "prune", "setup", "drop"];
        for (typed, meant) in
            [("prnue", "prune"), ("plna", "plan"), ("stup", "setup"), ("dropp", "drop"), ("PRUNE", "prune")]
        {
            assert_eq!(nearest(typed, commands), Some(meant), "{typed}");
        }
        for typed in ["src", "app", "x", "", "project", "run"] {
            assert_eq!(nearest(typed, commands), None, "{typed}");
        }
    }
}

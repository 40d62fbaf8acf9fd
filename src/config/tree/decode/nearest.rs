//! "Did you mean": the accepted word that is nearest to what was written.

/// The nearest of `words`, if it is near enough to be a slip.
pub(super) fn nearest(written: &str, words: &'static [&'static str]) -> Option<&'static str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let written = plain(written);
    let reach = (written.chars().count() / 3).clamp(1, 3);
    words
        .iter()
        .copied()
        .map(|word| (distance(&written, &plain(word)), word))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many letters must be put in, taken out or replaced (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, a) in left.chars().enumerate() {
        let mut above = std::iter::once(index + 1).collect::<Vec<_>>();
        for ((b, pair), last) in right.iter().zip(row.windows(2)).zip(0..) {
            let (diagonal, up) = (pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0));
            let side = above.get::<usize>(last).copied().unwrap_or(0);
            above.push((diagonal + usize::from(a != *b)).min(up + 1).min(side + 1));
        }
        row = above;
    }
    row.last().copied().unwrap_or(0)
}

//! Suggestions of similar names for misspelt ones.

/// The candidate that is most similar to `name`; `None` if no candidate is similar enough.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match name.chars().count() {
        0 => return None,
        1..=4 => 1,
        5..=7 => 2,
        n => n / 3,
    };
    candidates
        .into_iter()
        .filter(|c| *c != name && !c.starts_with('_'))
        .filter_map(|c| Some((edit_distance(name, c, limit)?, c)))
        .min()
        // Replacing every letter does not count as similar.
        .filter(|(d, c)| *d < name.len().max(c.len()))
        .map(|(_, c)| c)
}

/// The hint "did you mean ...?" with the most similar candidate; `None` if no candidate is similar enough.
///
/// # Examples
/// ```
/// use pliant_diag::spelling_suggestions::did_you_mean;
///
/// let help = did_you_mean("mathmul", ["add", "matmul", "multiply"]);
/// assert_eq!(help.as_deref(), Some("did you mean 'matmul'?"));
/// ```
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    closest(name, candidates).map(|c| format!("did you mean '{c}'?"))
}

/// The edit distance of two names: the number of letters to insert, delete, replace or swap to change `a` into `b`.
/// `None` if it exceeds `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(64).collect(), b.chars().take(64).collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut two_back = Vec::new();
    let mut before: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = usize::from(!a[i].eq_ignore_ascii_case(&b[j]));
            let mut best = (before[j] + change).min(before[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                let swapped: &Vec<usize> = &two_back;
                best = best.min(swapped[j - 1] + 1);
            }
            row.push(best);
        }
        two_back = std::mem::replace(&mut before, row);
    }
    before.last().copied().filter(|d| *d <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        assert_eq!(closest("mathmul", ["add", "matmul", "multiply"]), Some("matmul"));
        assert_eq!(closest("dataflwo", ["dataflow", "output"]), Some("dataflow"));
        assert_eq!(closest("x", ["y", "zebra"]), None);
        assert_eq!(closest("lv1", ["lv", "foo"]), Some("lv"));
        assert_eq!(closest("unknown_thing", ["add"]), None);
    }
}

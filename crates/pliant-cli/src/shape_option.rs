//! Parses `--shape`: sizes or ranges of symbols. Enumerates the combinations of the sizes.

use crate::Failure;

/// Maximum number of shapes that one command measures, and maximum number of sizes in a range.
const MAX_SHAPES: usize = 10_000;

/// A symbol (named dim), and the sizes at which to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The name of the symbol.
    pub symbol: String,
    /// The sizes of the symbol, in the order of the command line.
    pub sizes: Vec<i64>,
}

/// One shape to run at: a size for each symbol.
pub type Point = Vec<(String, i64)>;

/// Parses texts such as `batch=1..32,seq=64`. A symbol that occurs several times takes all its
/// sizes.
///
/// # Errors
/// If a text is invalid.
pub fn parse(texts: &[String]) -> Result<Vec<Axis>, Failure> {
    let mut axes: Vec<Axis> = Vec::new();
    for part in texts.iter().flat_map(|t| t.split(',')).filter(|p| !p.trim().is_empty()) {
        let invalid = |why: &str| Failure::new(format!("error: --shape {part}: {why}"));
        let (symbol, sizes) = part.split_once('=').ok_or_else(|| {
            invalid("write the size of a symbolic dim as SYMBOL=N, or its sizes as SYMBOL=A..B")
        })?;
        let sizes = range(sizes.trim()).map_err(|why| invalid(&why))?;
        let symbol = symbol.trim();
        match axes.iter_mut().find(|a| a.symbol == symbol) {
            Some(axis) => axis.sizes.extend(sizes),
            None => axes.push(Axis { symbol: symbol.into(), sizes }),
        }
    }
    Ok(axes)
}

/// Parses the sizes of a symbol: `N`, `A..B` (A, its doubles, and B) or `A..B:STEP`.
fn range(text: &str) -> Result<Vec<i64>, String> {
    let number = |t: &str| match t.trim().parse::<i64>() {
        Ok(n) if n >= 0 => Ok(n),
        Ok(n) => {
            Err(format!("the number {n} is negative, but sizes and steps must not be negative"))
        }
        Err(_) => Err(format!("'{t}' is not an integer, but sizes and steps must be integers")),
    };
    let Some((first, rest)) = text.split_once("..") else { return Ok(vec![number(text)?]) };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (number(last)?, Some(number(step)?)),
        None => (number(rest)?, None),
    };
    let first = number(first)?;
    if last < first {
        return Err(format!(
            "the last size {last} of the range is less than the first size {first}"
        ));
    }
    if step == Some(0) {
        return Err("the step of the range must be at least 1, but is 0".into());
    }
    let mut sizes = Vec::new();
    let mut at = first;
    while at < last {
        sizes.push(at);
        if sizes.len() > MAX_SHAPES {
            return Err(format!("the range has more than the maximum of {MAX_SHAPES} sizes"));
        }
        at = match step {
            Some(step) => at.saturating_add(step),
            None => at.saturating_mul(2).max(1),
        };
    }
    // A range with a step contains the last size only if a step reaches it.
    if step.is_none() || at == last {
        sizes.push(last);
    }
    Ok(sizes)
}

/// Returns all combinations of sizes. The last symbol varies fastest.
///
/// # Errors
/// If there are more than [`MAX_SHAPES`] combinations.
pub fn points(axes: &[Axis]) -> Result<Vec<Point>, Failure> {
    let count = axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.sizes.len()));
    if count.is_none_or(|n| n > MAX_SHAPES) {
        return Err(Failure::new(format!(
            "error: --shape: the sizes of all symbols have more than the maximum of {MAX_SHAPES} combinations"
        )));
    }
    let mut points: Vec<Point> = vec![Vec::new()];
    for axis in axes {
        let extend = |p: &Point, size: i64| {
            p.iter().cloned().chain([(axis.symbol.clone(), size)]).collect::<Point>()
        };
        points = points
            .iter()
            .flat_map(|p| axis.sizes.iter().map(|&size| extend(p, size)).collect::<Vec<_>>())
            .collect();
    }
    Ok(points)
}

/// Formats the symbol sizes of a point as text, such as `batch=4, seq=128`.
pub fn text(point: &[(String, i64)]) -> String {
    point.iter().map(|(s, n)| format!("{s}={n}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Vec<i64> {
        range(text).unwrap()
    }

    #[test]
    fn ranges_double_or_use_a_step() {
        assert_eq!(sizes("7"), [7]);
        assert_eq!(sizes("1..32"), [1, 2, 4, 8, 16, 32]);
        assert_eq!(sizes("0..5"), [0, 1, 2, 4, 5]);
        assert_eq!(sizes("64..256:64"), [64, 128, 192, 256]);
        assert_eq!(sizes("1..10:4"), [1, 5, 9]);
        assert_eq!(sizes("3..3"), [3]);
        for invalid in ["", "a", "-1", "4..2", "1..9:0", "0..99999999:1", "1..x"] {
            assert!(range(invalid).is_err(), "{invalid}");
        }
        assert_eq!(sizes("1..9223372036854775807").len(), 64);
    }

    #[test]
    fn symbols_are_combined() {
        let texts = ["batch=1..2,seq=8".to_string(), "seq=32".to_string()];
        let axes = parse(&texts).unwrap_or_default();
        let points = points(&axes).unwrap_or_default();
        let shown: Vec<String> = points.iter().map(|p| text(p)).collect();
        assert_eq!(
            shown,
            ["batch=1, seq=8", "batch=1, seq=32", "batch=2, seq=8", "batch=2, seq=32"]
        );
        assert!(parse(&["batch".to_string()]).is_err());
    }
}

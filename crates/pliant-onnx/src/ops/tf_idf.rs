//! Converter of `TfIdfVectorizer` over integers, which counts how often each n-gram of a pool occurs in a row.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_sym::Sym;
use pliant_tensor::Tensor;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};

pub(super) static OPS: &[OnnxOp] = &[op("TfIdfVectorizer", tf_idf_vectorizer)];

/// Maximum skip distance. The limit exists because each skip distance is unrolled.
const MAX_SKIPS: i64 = 64;
/// Maximum number of elements of an n-gram.
const MAX_GRAM_LENGTH: i64 = 64;

/// The pool of n-grams that the attributes list.
struct NgramPool<'a> {
    /// All n-grams, concatenated in the order of their lengths.
    items: &'a [i64],
    /// The offsets in `items` at which the n-grams of length 1, 2 and so on start.
    starts: &'a [i64],
    /// The output column of each n-gram.
    columns: &'a [i64],
}

impl NgramPool<'_> {
    /// The n-grams of the given length, one after another in a flat list.
    fn grams_of_length(&self, length: usize) -> Result<&[i64], Problem> {
        let index = |i: usize| match self.starts.get(i) {
            Some(&start) => usize::try_from(start).ok(),
            None => Some(self.items.len()),
        };
        let wrong = || {
            let items = self.items.len();
            Problem::invalid(format!(
                "the start positions in 'ngram_counts' must ascend and be at most {items}, the number of elements of 'pool_int64s', \
                 but the position for n-grams of length {length} does not"
            ))
        };
        let (Some(from), Some(to)) = (index(length - 1), index(length)) else {
            return Err(wrong());
        };
        let grams = self.items.get(from..to).ok_or_else(wrong)?;
        if grams.len().is_multiple_of(length) { Ok(grams) } else { Err(wrong()) }
    }
}

fn tf_idf_vectorizer(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let int_attr = |name: &str, max_value: i64| {
        let value = attrs.int(name)?;
        let value =
            value.ok_or_else(|| Problem::attribute(format!("attribute '{name}' is missing")))?;
        match value {
            v if v < 0 => {
                let text = format!("attribute '{name}' must not be negative, but is {v}");
                Err(Problem::attribute(text))
            }
            v if v > max_value => Err(Problem::unsupported(format!(
                "attribute '{name}' is {v}, but values above {max_value} are not supported"
            ))),
            v => Ok(v),
        }
    };
    if attrs.has("pool_strings") {
        return Err(Problem::unsupported("n-grams of strings (pool_strings) are not supported")
            .with_help("map the strings to integers before they are passed to the model, and use pool_int64s"));
    }
    let mode = attrs.choice("mode", &["TF", "IDF", "TFIDF"])?;
    let min = int_attr("min_gram_length", MAX_GRAM_LENGTH)?.max(1);
    let max_value = int_attr("max_gram_length", MAX_GRAM_LENGTH)?;
    let skips = int_attr("max_skip_count", MAX_SKIPS)?;
    let pool = NgramPool {
        items: attrs.ints("pool_int64s")?.unwrap_or_default(),
        starts: attrs.ints("ngram_counts")?.unwrap_or_default(),
        columns: attrs.ints("ngram_indexes")?.unwrap_or_default(),
    };
    let x = n.tensor(0)?;
    let x = n.cast(x, DType::Int64)?;
    let dims = n.dims(x)?;
    let one = n.func().syms.int(1);
    let (rows, length) = match dims[..] {
        [length] => (one, length),
        [rows, length] => (rows, length),
        _ => {
            let text = format!("the input must have 1 or 2 dims, but has {}", dims.len());
            return Err(Problem::invalid(text));
        }
    };
    let x = n.reshape(x, &[rows, length])?;
    let mut counts = Vec::new();
    for size in 1..=pool.starts.len() {
        let grams = pool.grams_of_length(size)?;
        if !grams.is_empty() {
            let gram_elements = (min..=max_value).contains(&(size as i64));
            // An n-gram with one element has no gaps to skip.
            let skips = if size == 1 { 0 } else { skips };
            counts.push(match gram_elements {
                true => count_ngrams(n, x, grams, size, skips, [rows, length])?,
                false => zero_counts(n, rows, (grams.len() / size) as i64)?,
            });
        }
    }
    counts.push(zero_counts(n, rows, 1)?);
    let counts = n.concat(&counts, 1)?;
    let y = counts_to_columns(n, counts, pool.columns)?;
    let y = apply_weights(n, y, mode)?;
    let width = n.dims(y)?[1];
    Ok(vec![match dims.len() {
        1 => n.reshape(y, &[width])?.into(),
        _ => y.into(),
    }])
}

/// Creates zero counts for `columns` n-grams in each row.
fn zero_counts(n: &mut Node<'_, '_>, rows: Sym, columns: i64) -> ExprResult {
    let zero = n.scalar_as(0.0, DType::Float32)?;
    let columns = n.func().syms.int(columns);
    n.full(&[rows, columns], zero)
}

/// Counts the occurrences of each n-gram of `size` elements in each row. Adjacent elements of an n-gram may be 0 to `skips`
/// elements apart.
fn count_ngrams(
    n: &mut Node<'_, '_>,
    x: Expr,
    grams: &[i64],
    size: usize,
    skips: i64,
    [rows, length]: [Sym; 2],
) -> ExprResult {
    let count = (grams.len() / size) as i64;
    let one = n.func().syms.int(1);
    let mut total: Option<Expr> = None;
    for step in 1..=skips + 1 {
        let span = (size as i64 - 1) * step;
        let syms = &mut n.func().syms;
        let (span, zero) = (syms.int(span), syms.int(0));
        let positions = syms.sub(length, span);
        let positions = syms.max(positions, zero);
        let mut matches: Option<Expr> = None;
        for k in 0..size {
            let index = n.iota(positions)?;
            let offset = n.scalar(k as i64 * step)?;
            let index = n.op("relax.add", &[index, offset])?;
            let elements = n.take(x, index, 1)?;
            let elements = n.reshape(elements, &[rows, positions, one])?;
            let gram_elements: Vec<i64> = grams.iter().skip(k).step_by(size).copied().collect();
            let gram_elements = Tensor::from_slice(&[1, 1, count], &gram_elements);
            let gram_elements = gram_elements.map_err(|e| Problem::invalid(e.to_string()))?;
            let gram_elements = n.importer.constant(&gram_elements);
            let same = n.op("relax.equal", &[elements, gram_elements])?;
            matches = Some(match matches {
                Some(before) => n.op("relax.logical_and", &[before, same])?,
                None => same,
            });
        }
        let Some(matches) = matches else { continue };
        let matches = n.cast(matches, DType::Float32)?;
        let matches = n.op_with("relax.sum", &[matches], ints_attr("axis", 1))?;
        total = Some(match total {
            Some(before) => n.op("relax.add", &[before, matches])?,
            None => matches,
        });
    }
    total.ok_or_else(|| Problem::invalid("'pool_int64s' contains an n-gram without elements"))
}

/// Permutes the counts to their output columns. The last column of `counts` is zero, and is used for output columns without an
/// n-gram.
fn counts_to_columns(n: &mut Node<'_, '_>, counts: Expr, columns: &[i64]) -> ExprResult {
    let known = n.dims(counts)?[1];
    let known = n.func().syms.as_int(known).unwrap_or(0);
    let max_column = columns.iter().copied().max().unwrap_or(-1);
    let fits = columns.len() as i64 == known - 1 && columns.iter().all(|&c| c >= 0);
    if !fits || max_column >= known.saturating_mul(16) {
        return Err(Problem::invalid(format!(
            "'ngram_indexes' must have {} column numbers from 0 to {}, one for each n-gram in 'pool_int64s', but has {} numbers \
             from {} to {max_column}",
            known - 1,
            known.saturating_mul(16) - 1,
            columns.len(),
            columns.iter().copied().min().unwrap_or(-1)
        )));
    }
    let mut from = vec![known - 1; (max_column + 1) as usize];
    for (i, &column) in columns.iter().enumerate() {
        from[column as usize] = i as i64;
    }
    let from = n.int_vector(&from)?;
    n.take(counts, from, 1)
}

/// Converts the counts of n-grams to the result that the attribute `mode` selects: the counts (`TF`), 1 for each n-gram
/// that occurs (`IDF`), or the counts (`TFIDF`). Except for `TF`, the result is multiplied by the attribute `weights`,
/// if it is present.
fn apply_weights(n: &mut Node<'_, '_>, y: Expr, mode: &str) -> ExprResult {
    let mut y = y;
    if mode == "IDF" {
        let zero = n.scalar_as(0.0, DType::Float32)?;
        let occurs = n.op("relax.greater", &[y, zero])?;
        y = n.cast(occurs, DType::Float32)?;
    }
    let weights = n.attrs().floats("weights")?;
    let (Some(weights), true) = (weights, mode != "TF") else { return Ok(y) };
    let width = n.dims(y)?[1];
    if n.func().syms.as_int(width) != Some(weights.len() as i64) {
        return Err(Problem::invalid(format!(
            "'weights' has {} numbers, but must have one for each column of the result",
            weights.len()
        )));
    }
    let weights = Tensor::from_slice(&[weights.len() as i64], weights);
    let weights = n.importer.constant(&weights.map_err(|e| Problem::invalid(e.to_string()))?);
    n.op("relax.multiply", &[y, weights])
}

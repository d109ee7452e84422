//! Attention as the library's kernel does it, in plain form (`pliant_kernels::attention`).

use std::rc::Rc;

use pliant_ir::DType;

use super::Loops;
use super::scalar::{Val, malformed, round};
use super::view::View;
use crate::error::Result;

/// An operand: its memory, its first element, and its strides.
pub(super) struct Operand<'a> {
    pub view: &'a Rc<View>,
    first: i64,
    strides: &'a [Val],
}

impl<'a> Operand<'a> {
    pub fn new(args: &'a [Val]) -> Result<Operand<'a>> {
        match args {
            [Val::Address(view, first), strides @ ..] => {
                Ok(Operand { view, first: *first, strides })
            }
            _ => Err(malformed("an operand of an attention is no address")),
        }
    }

    pub fn position(&self, at: &[i64]) -> Result<i64> {
        let mut position = self.first;
        for (&i, stride) in at.iter().zip(self.strides) {
            position = position.saturating_add(i.saturating_mul(stride.int()?));
        }
        // Beyond the strides lie neighbours.
        let rest: i64 = at.iter().skip(self.strides.len()).sum();
        Ok(position.saturating_add(rest))
    }

    pub fn get(&self, at: &[i64]) -> Result<f64> {
        self.view.read_at(self.position(at)?)?.float()
    }

    fn is_true(&self, at: &[i64]) -> Result<bool> {
        self.view.read_at(self.position(at)?)?.is_true()
    }
}

/// The mask by place.
struct Causal {
    on: bool,
    offset: i64,
    window: i64,
}

impl Causal {
    fn sees(&self, query: i64, key: i64) -> bool {
        let place = query.saturating_add(self.offset);
        !self.on || key <= place && (self.window <= 0 || key > place - self.window)
    }
}

impl Loops<'_, '_, '_> {
    /// `pliant_attend_f32`: sizes, operands, scale and cap, bias, mask by place, what blind queries get, mask
    /// and what it makes of scores.
    pub(super) fn attend(&mut self, args: &[Val]) -> Result<Val> {
        if args.len() != 43 {
            return Err(malformed("an attention takes 43 arguments"));
        }
        let mut sizes = [0; 7];
        for (size, arg) in sizes.iter_mut().zip(args) {
            *size = arg.int()?;
        }
        let [batch, heads, kv_heads, queries, keys, size, value_size] = sizes;
        let (q, k) = (Operand::new(&args[7..11])?, Operand::new(&args[11..15])?);
        let (v, out) = (Operand::new(&args[15..19])?, Operand::new(&args[19..23])?);
        let (scale, cap) = (args[23].float()?, args[24].float()?);
        let bias = match args[25].int()? {
            0 => None,
            _ => Some(Operand::new(&args[26..31])?),
        };
        let mask = match args[35].int()? {
            0 => None,
            _ => Some(Operand::new(&args[36..41])?),
        };
        let (hidden, mask_first) = (args[41].float()?, args[42].int()? != 0);
        let causal =
            Causal { on: args[31].int()? != 0, offset: args[32].int()?, window: args[33].int()? };
        let (nan_is_blind, blind) = match args[34].int()? {
            1 if keys > 0 => (false, f64::NAN),
            of => (of == 2, 0.0),
        };
        if heads > 0 && (kv_heads <= 0 || heads % kv_heads != 0) {
            return Err(malformed("the heads of an attention do not share those of the keys"));
        }
        for (b, h, i) in places(batch, heads, queries) {
            let own = h / (heads / kv_heads).max(1);
            let mut scores = Vec::new();
            for j in 0..keys {
                self.m.step(size.max(0) as u64 + value_size.max(0) as u64 + 1)?;
                let mut score = 0.0;
                for p in 0..size {
                    score += q.get(&[b, h, i, p])? * k.get(&[b, own, j, p])?;
                }
                score *= scale;
                if cap != 0.0 {
                    score = cap * (score / cap).tanh();
                }
                let masked = match &mask {
                    Some(mask) => !mask.is_true(&[b, h, i, j])?,
                    None => false,
                };
                if masked && mask_first {
                    score = hidden;
                }
                if let Some(bias) = &bias {
                    score += bias.get(&[b, h, i, j])?;
                }
                if masked && !mask_first {
                    score = hidden;
                }
                scores.push(if causal.sees(i, j) { score } else { f64::NEG_INFINITY });
            }
            let largest = scores.iter().fold(f64::NEG_INFINITY, |a, &x| a.max(x));
            let base = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
            let weights: Vec<f64> = scores.iter().map(|x| (x - base).exp()).collect();
            let total: f64 = weights.iter().sum();
            for p in 0..value_size {
                let mut sum = 0.0;
                for (j, &weight) in (0..).zip(&weights) {
                    if causal.sees(i, j) {
                        sum += weight * v.get(&[b, own, j, p])?;
                    }
                }
                let none = total == 0.0 || nan_is_blind && total.is_nan();
                let result = if none { blind } else { sum / total };
                let at = out.position(&[b, h, i, p])?;
                out.view.write_at(at, &Val::Float(round(result, DType::Float32)))?;
            }
        }
        Ok(Val::Int(0))
    }
}

/// All batches, heads and queries.
fn places(batch: i64, heads: i64, queries: i64) -> impl Iterator<Item = (i64, i64, i64)> {
    (0..batch).flat_map(move |b| (0..heads).flat_map(move |h| (0..queries).map(move |i| (b, h, i))))
}

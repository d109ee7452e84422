//! Pooling.

use pliant_ir::DType;

use super::super::scalar::{Val, round};
use super::Args;
use super::window::{Windows, positions};
use crate::error::Result;
use crate::machine::Machine;

/// Computes the largest element or the mean of each window.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let channels = args.sizes.get("channels");
    let w = Windows::of_pool(&args.call, &args.sizes);
    let (x, out) = (args.present("x")?, args.present("out")?);
    let largest = args.call.int("kind") == 0;
    for (b, c) in (0..w.batch).flat_map(|b| (0..channels).map(move |c| (b, c))) {
        for at in positions(w.output) {
            let (mut value, mut count) = (if largest { f64::NEG_INFINITY } else { 0.0 }, 0);
            for tap in positions(w.kernel) {
                m.step(1)?;
                let Some([i, j, k]) = w.position(at, tap) else { continue };
                let element = x.float(&[b, c, i, j, k])?;
                count += 1;
                value = match largest {
                    true if element.is_nan() || element > value => element,
                    true => value,
                    false => value + element,
                };
            }
            let result = if largest { value } else { value / f64::from(count) };
            let [i, j, k] = at;
            let result = Val::Float(round(result, DType::Float32));
            out.write(out.position(&[b, c, i, j, k])?, &result)?;
        }
    }
    Ok(())
}

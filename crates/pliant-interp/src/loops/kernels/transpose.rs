//! Transposes.

use super::Args;
use crate::error::Result;
use crate::machine::Machine;

/// Copies each element.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    for i in 0..args.sizes.get("*elements") {
        m.step(1)?;
        let element = args.read("x", &[("*elements", i)])?;
        args.write("out", &[("*elements", i)], &element)?;
    }
    Ok(())
}

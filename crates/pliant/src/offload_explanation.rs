//! [`Explanation`]: which calls a compilation offloaded to kernels, which calls it kept in loops and why (kept calls), and which
//! loops are slow.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use pliant_diag::SourceMap;
use pliant_ir::{IRModule, Span};
use pliant_pass::{Remark, RemarkKind, Remarks};

/// Adds a remark for each slow innermost loop of lowered loop functions.
pub(crate) fn remark_slow_loops(lowered: &IRModule, remarks: &Remarks) {
    for (name, func) in lowered.prim_funcs() {
        for slow in pliant_tir::slow_inner_loop_diagnostics::slow_loops(func) {
            remarks.add(Remark {
                kind: RemarkKind::Analysis,
                rule: "loops".into(),
                function: name.clone(),
                subject: slow.var.as_str().into(),
                span: Span::NONE,
                message: slow.description(),
            });
        }
    }
}

/// A report on a compilation: how often each rule replaced a call by a kernel call, the calls that
/// stayed loops and why, and the slow innermost loops of loop functions. `Display` prints it as
/// text.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, RemarkKind, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 16), "float32")):
///     with R.dataflow():
///         y = R.matmul(x, w)
///         R.output(y)
///     return y
/// "#;
/// let module = pliant::parse("matmul.py", script).map_err(|(error, _)| error)?.module;
/// let program = compile(module, &CompileOptions::default())?;
/// let explanation = &program.stats().explanation;
/// // The rule packs constant right operands only.
/// let mut missed = explanation.remarks.iter().filter(|r| r.kind == RemarkKind::Missed);
/// assert!(missed.any(|remark| &*remark.rule == "matmul_packed"));
/// assert!(explanation.to_string().contains("Kept in loop functions:"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The remarks of the passes, in order.
    pub remarks: Vec<Remark>,
    /// The sources of the module, which name the nodes of an imported model.
    pub(crate) sources: Option<Arc<SourceMap>>,
    /// The text at the start of the report, such as that library kernels are disabled; `None` for a loaded program.
    pub(crate) note: Option<&'static str>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(note) = self.note else {
            return writeln!(
                f,
                "This program was loaded from a file. Only a program compiled in this process can be explained."
            );
        };
        f.write_str(note)?;
        let of_kind = |kind: RemarkKind| self.remarks.iter().filter(move |r| r.kind == kind);
        let mut applied: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for r in of_kind(RemarkKind::Applied) {
            *applied.entry((&r.rule, &r.message)).or_default() += 1;
        }
        let applied =
            applied.iter().map(|((rule, kernel), n)| format!("{rule:<24}{n:>5}  {kernel}"));
        section(f, "Offloaded to kernels", applied)?;
        // A later pass may have replaced a call that an earlier pass kept.
        let replaced: HashSet<(&str, Span)> =
            of_kind(RemarkKind::Applied).map(|r| (&*r.function, r.span)).collect();
        let still_kept =
            |r: &&Remark| r.span == Span::NONE || !replaced.contains(&(&*r.function, r.span));
        let missed = of_kind(RemarkKind::Missed).filter(still_kept).map(|r| {
            let location = self.location(r);
            format!("{} {location}: rule {} does not apply: {}", r.subject, r.rule, r.message)
        });
        section(f, "Kept in loop functions", missed)?;
        let slow = of_kind(RemarkKind::Analysis).map(|r| format!("{}: {}", r.function, r.message));
        section(f, "Slow loops", slow)
    }
}

impl Explanation {
    /// Formats the location of a remark: the node of an imported model if it is known, otherwise
    /// the function.
    fn location(&self, r: &Remark) -> String {
        match self.sources.as_ref().and_then(|map| map.nodes(r.span)) {
            Some(node) => format!("at {node}"),
            None => format!("in function {}", r.function),
        }
    }
}

/// Writes a section of the report: its title and its lines. Equal lines are written once, with the number of times that they occur.
fn section(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    lines: impl Iterator<Item = String>,
) -> fmt::Result {
    let mut seen: IndexMap<String, usize> = IndexMap::new();
    lines.for_each(|line| *seen.entry(line).or_default() += 1);
    writeln!(f, "{title}:")?;
    if seen.is_empty() {
        writeln!(f, "  nothing")?;
    }
    for (line, count) in seen {
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        writeln!(f, "  {line}{times}")?;
    }
    Ok(())
}

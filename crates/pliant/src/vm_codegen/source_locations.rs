//! Determines the source locations that bytecode instructions get from the bindings they implement.

use pliant_diag::Span;
use pliant_exec::NODE;
use pliant_ir::relax::Binding;

use super::FunctionGen;

impl FunctionGen<'_> {
    /// Returns the source locations of bindings. A binding without a location was inserted by
    /// lowering for the binding after it, and gets the location of that binding.
    pub(super) fn spans(&self, bindings: &[Binding]) -> Vec<Span> {
        let mut spans: Vec<Span> = bindings.iter().map(|b| self.func.var(b.var).span).collect();
        for i in (1..spans.len()).rev() {
            if spans[i - 1].is_none() {
                spans[i - 1] = spans[i];
            }
        }
        spans
    }

    /// Sets the source location of the following instructions. An unknown location leaves the
    /// previous one in effect.
    pub(super) fn set_location(&mut self, span: Span) {
        let Some(sources) = self.sources else { return };
        if let Some(nodes) = sources.nodes(span) {
            let location = (&*nodes, NODE, NODE);
            self.exec.set_lines((!nodes.is_empty()).then_some(location));
        } else if let Some((file, line, last)) = sources.lines(span) {
            self.exec.set_lines(Some((file, line, last)));
        }
    }
}

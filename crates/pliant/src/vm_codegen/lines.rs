//! From bindings to the lines of the source that instructions come from.

use pliant_diag::Span;
use pliant_exec::NODE;
use pliant_ir::relax::Binding;

use super::FunctionGen;

impl FunctionGen<'_> {
    /// Where bindings stand in the source. What lowering has put in stands before what it is for, and is taken to come
    /// from there.
    pub(super) fn spans(&self, bindings: &[Binding]) -> Vec<Span> {
        let mut spans: Vec<Span> = bindings.iter().map(|b| self.func.var(b.var).span).collect();
        for i in (1..spans.len()).rev() {
            if spans[i - 1].is_none() {
                spans[i - 1] = spans[i];
            }
        }
        spans
    }

    /// The instructions that follow come from there. Where that is not known, they come from where those before do.
    pub(super) fn at(&mut self, span: Span) {
        let Some(sources) = self.sources else { return };
        if let Some(nodes) = sources.nodes(span) {
            let place = (&*nodes, NODE, NODE);
            self.exec.set_lines((!nodes.is_empty()).then_some(place));
        } else if let Some((file, line, last)) = sources.lines(span) {
            self.exec.set_lines(Some((file, line, last)));
        }
    }
}

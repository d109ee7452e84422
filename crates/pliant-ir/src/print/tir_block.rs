//! Prints blocks of loop functions.

use super::literals::{attr_map, py_str};
use super::tir::{Pending, TirPrinter, line};
use crate::tir::{BlockData, BufferRegion, ExprData, IterKind, IterVar};

impl TirPrinter<'_> {
    /// Prints the lines of a block that precede its body: `with T.block`, axes, regions and allocations. Queues the
    /// body for printing.
    pub(super) fn block(
        &mut self,
        out: &mut String,
        b: &BlockData,
        indent: usize,
        stack: &mut Vec<Pending>,
    ) {
        line(out, indent, &format!("with T.block({}):", py_str(&b.name)));
        self.enter();
        let indent = indent + 1;
        self.axes(out, &b.iters, indent);
        if let Some(p) = b.predicate {
            let text = format!("T.where({})", self.expr(p));
            line(out, indent, &text);
        }
        // The buffers are named before the regions, which may refer to them.
        let mut allocs = Vec::new();
        for &buffer in &b.allocs {
            let args = self.buffer_args(buffer);
            allocs.push(format!("{} = T.alloc_buffer({args})", self.buffer_name(buffer)));
        }
        self.regions(out, "reads", b.reads.as_deref(), indent);
        self.regions(out, "writes", b.writes.as_deref(), indent);
        if !b.annotations.is_empty() {
            let mut text = String::from("T.block_attr(");
            attr_map(&mut text, b.annotations.iter().map(|(k, v)| (&**k, v)));
            text.push(')');
            line(out, indent, &text);
        }
        for text in allocs {
            line(out, indent, &text);
        }
        stack.push(Pending::Leave);
        stack.push(Pending::Body { stmt: b.body, indent, in_block: true });
        if let Some(init) = b.init {
            line(out, indent, "with T.init():");
            self.nested(init, indent, stack);
        }
    }

    fn axes(&mut self, out: &mut String, iters: &[IterVar], indent: usize) {
        let mut i = 0;
        while i < iters.len() {
            let run = iters[i..].iter().take_while(|it| self.can_remap(it)).count();
            if run < 2 {
                let text = self.axis(&iters[i]);
                line(out, indent, &text);
                i += 1;
                continue;
            }
            let axes = &iters[i..i + run];
            let kinds: String = axes.iter().map(|it| axis_letter(it.kind)).collect();
            let bindings: Vec<String> = axes.iter().map(|it| self.expr(it.binding)).collect();
            let names: Vec<String> = axes.iter().map(|it| self.var_name(it.var)).collect();
            let bindings = bindings.join(", ");
            line(
                out,
                indent,
                &format!("{} = T.axis.remap(\"{kinds}\", [{bindings}])", names.join(", ")),
            );
            i += run;
        }
    }

    /// Whether an axis has the same range as the loop to which it is bound, so that it can be printed as `T.axis.remap`.
    fn can_remap(&self, it: &IterVar) -> bool {
        match self.f.expr(it.binding) {
            ExprData::Var(v) => {
                self.f.var(*v).ty == self.f.var(it.var).ty
                    && self
                        .loops
                        .get(v)
                        .is_some_and(|&(min, extent)| min == it.min && extent == it.extent)
            }
            _ => false,
        }
    }

    fn axis(&mut self, it: &IterVar) -> String {
        let binding = self.expr(it.binding);
        let mut range = self.range(it.min, it.extent);
        let dom = if range.len() == 1 { range.remove(0) } else { super::tuple(&range) };
        let kind = match it.kind {
            IterKind::Spatial => "spatial",
            IterKind::Reduce => "reduce",
            IterKind::Opaque => "opaque",
        };
        format!("{} = T.axis.{kind}({dom}, {binding})", self.var_name(it.var))
    }

    fn regions(
        &mut self,
        out: &mut String,
        what: &str,
        regions: Option<&[BufferRegion]>,
        indent: usize,
    ) {
        let Some(regions) = regions else { return };
        let texts: Vec<String> = regions.iter().map(|r| self.region(r)).collect();
        line(out, indent, &format!("T.{what}({})", texts.join(", ")));
    }

    fn region(&mut self, r: &BufferRegion) -> String {
        let name = self.buffer_name(r.buffer);
        if r.region.is_empty() {
            return format!("{name}[()]");
        }
        let mut dims = Vec::with_capacity(r.region.len());
        for &(start, extent) in &r.region {
            if self.f.as_int(extent) == Some(1) {
                dims.push(self.expr(start));
            } else if self.f.as_int(start) == Some(0) {
                dims.push(format!("0:{}", self.expr(extent)));
            } else {
                dims.push(format!("{}:{}", self.expr(start), self.end(start, extent)));
            }
        }
        format!("{name}[{}]", dims.join(", "))
    }
}

fn axis_letter(kind: IterKind) -> char {
    match kind {
        IterKind::Spatial => 'S',
        IterKind::Reduce => 'R',
        IterKind::Opaque => 'O',
    }
}

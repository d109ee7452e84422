//! Prints loop functions: signatures and statements. The module `tir_block` prints blocks, and `tir_expr` prints expressions.

use rustc_hash::{FxHashMap, FxHashSet};

use super::literals::{attr_map, func_attrs, py_str};
use super::unique_names::Names;
use crate::AttrValue;
use crate::tir::{
    BinOp, Buffer, Expr, ExprData, ForKind, PrimFunc, Scope, Stmt, StmtData, Var, VarTy,
};

/// The printer of one loop function.
pub(super) struct TirPrinter<'a> {
    pub f: &'a PrimFunc,
    names: Names,
    vars: FxHashMap<Var, String>,
    buffers: FxHashMap<Buffer, String>,
    /// The variables and buffers that were named in each open scope.
    scopes: Vec<Vec<Named>>,
    /// The first value and the extent of each visible loop, by loop variable. Block axes that have the range of their loop are
    /// printed as `T.axis.remap`.
    pub loops: FxHashMap<Var, (Expr, Expr)>,
}

/// A variable or buffer whose name is released at the end of its scope.
enum Named {
    Var(Var),
    Buffer(Buffer),
}

/// An element of the printer's explicit stack: output that remains to be printed.
pub(super) enum Pending {
    /// The body `stmt` of a statement. It is printed as a list of statements, after nested sequences are flattened. `in_block` is
    /// set if this list is directly in a block.
    Body {
        stmt: Stmt,
        indent: usize,
        in_block: bool,
    },
    /// A statement of a list. `last` is set for the last statement of the list. In that position, a `let`, an allocation or an
    /// assertion can be printed as a plain statement that applies to the rest of the list.
    Item {
        stmt: Stmt,
        indent: usize,
        in_block: bool,
        last: bool,
    },
    Line(usize, String),
    /// Opens a scope of variable and buffer names.
    Enter,
    /// Closes the innermost scope of variable and buffer names.
    Leave,
}

/// Prints a loop function with its decorator at the given indentation level.
pub(super) fn print(out: &mut String, name: &str, f: &PrimFunc, indent: usize) {
    TirPrinter::for_messages(f).function(out, name, indent);
}

pub(super) fn line(out: &mut String, indent: usize, text: &str) {
    for _ in 0..indent {
        out.push_str("    ");
    }
    out.push_str(text);
    out.push('\n');
}

impl<'a> TirPrinter<'a> {
    /// Creates a printer for error messages. It names variables at their first occurrence.
    pub(super) fn for_messages(f: &'a PrimFunc) -> Self {
        TirPrinter {
            f,
            names: Names::new(),
            vars: FxHashMap::default(),
            buffers: FxHashMap::default(),
            scopes: Vec::new(),
            loops: FxHashMap::default(),
        }
    }

    // ---- names ----

    /// The printed name of a variable, chosen at its first occurrence.
    pub(super) fn var_name(&mut self, v: Var) -> String {
        if let Some(name) = self.vars.get(&v) {
            return name.clone();
        }
        let name = self.names.take(&self.f.var(v).name);
        self.vars.insert(v, name.clone());
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(Named::Var(v));
        }
        name
    }

    /// The printed name of a buffer, chosen at its first occurrence.
    pub(super) fn buffer_name(&mut self, b: Buffer) -> String {
        if let Some(name) = self.buffers.get(&b) {
            return name.clone();
        }
        let name = self.names.take(&self.f.buffer(b).name);
        self.buffers.insert(b, name.clone());
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(Named::Buffer(b));
        }
        name
    }

    /// Opens a scope. When the scope is closed, the names of the variables and buffers that were named in it become available
    /// again.
    pub(super) fn enter(&mut self) {
        self.scopes.push(Vec::new());
    }

    fn leave(&mut self) {
        for named in self.scopes.pop().unwrap_or_default().into_iter().rev() {
            let name = match named {
                Named::Var(v) => {
                    self.loops.remove(&v);
                    self.vars.remove(&v)
                }
                Named::Buffer(b) => self.buffers.remove(&b),
            };
            if let Some(name) = name {
                self.names.release(&name);
            }
        }
    }

    // ---- the signature ----

    fn function(&mut self, out: &mut String, name: &str, indent: usize) {
        let f = self.f;
        line(out, indent, if f.private { "@T.prim_func(private=True)" } else { "@T.prim_func" });
        let mut params = Vec::new();
        let mut matched = Vec::new();
        for &p in &f.params {
            match (f.var(p).ty, f.buffer_map.get(&p)) {
                (VarTy::Handle, Some(&b)) if self.is_plain(b) => {
                    params.push(format!("{}: {}", self.buffer_name(b), self.buffer_ty(b)));
                }
                (VarTy::Handle, b) => {
                    params.push(format!("{}: T.handle", self.handle_name(p, b.copied())));
                    matched.extend(b.map(|&b| (p, b)));
                }
                (VarTy::Value(ty), _) => params.push(format!("{}: T.{ty}", self.var_name(p))),
            }
        }
        line(out, indent, &format!("def {name}({}):", params.join(", ")));
        let indent = indent + 1;
        if !f.attrs.is_empty() {
            line(out, indent, &format!("T.func_attr({})", func_attrs(&f.attrs)));
        }
        for v in self.size_vars() {
            if let VarTy::Value(ty) = f.var(v).ty {
                line(out, indent, &format!("{} = T.{ty}()", self.var_name(v)));
            }
        }
        for (p, b) in matched {
            let (p, name) = (self.var_name(p), self.buffer_name(b));
            line(out, indent, &format!("{name} = T.match_buffer({p}, {})", self.buffer_args(b)));
        }
        self.statements(out, f.body, indent);
    }

    /// The printed name of a handle parameter (a parameter that stands for a tensor). It must differ from the name of the
    /// parameter's buffer.
    fn handle_name(&mut self, p: Var, buffer: Option<Buffer>) -> String {
        let (own, buffer) = (&self.f.var(p).name, buffer.map(|b| &self.f.buffer(b).name));
        if buffer == Some(own) {
            let name = self.names.take(&format!("var_{own}"));
            self.vars.insert(p, name.clone());
            return name;
        }
        self.var_name(p)
    }

    /// Whether a buffer parameter can be printed with the type of the buffer as its annotation, without a separate
    /// `T.match_buffer`.
    fn is_plain(&self, b: Buffer) -> bool {
        let data = self.f.buffer(b);
        data.strides.is_empty()
            && data.elem_offset.is_none()
            && data.scope == Scope::Global
            && data.shape.iter().all(|&d| self.f.as_int(d).is_some())
    }

    fn buffer_ty(&mut self, b: Buffer) -> String {
        format!("T.Buffer({})", self.buffer_args(b))
    }

    /// The printed arguments of a buffer type: shape, dtype, and each property that differs from
    /// its default (compact, in global memory).
    pub(super) fn buffer_args(&mut self, b: Buffer) -> String {
        let data = self.f.buffer(b);
        let mut out = format!("{}, \"{}\"", self.expr_tuple(&data.shape), data.dtype);
        if !data.strides.is_empty() {
            out.push_str(&format!(", strides={}", self.expr_tuple(&data.strides)));
        }
        if let Some(offset) = data.elem_offset {
            out.push_str(&format!(", elem_offset={}", self.expr(offset)));
        }
        if data.scope != Scope::Global {
            out.push_str(&format!(", scope=\"{}\"", data.scope.name()));
        }
        out
    }

    fn expr_tuple(&mut self, items: &[Expr]) -> String {
        let items: Vec<String> = items.iter().map(|&e| self.expr(e)).collect();
        super::tuple(&items)
    }

    /// The size variables that the buffer parameters define, in the order of their occurrence.
    fn size_vars(&self) -> Vec<Var> {
        let mut seen: FxHashSet<Var> = self.f.params.iter().copied().collect();
        let mut vars = Vec::new();
        for p in &self.f.params {
            let Some(&b) = self.f.buffer_map.get(p) else { continue };
            let data = self.f.buffer(b);
            let exprs = data.shape.iter().chain(&data.strides).chain(&data.elem_offset);
            for &e in exprs {
                self.vars_of(e, &mut seen, &mut vars);
            }
        }
        vars
    }

    fn vars_of(&self, e: Expr, seen: &mut FxHashSet<Var>, out: &mut Vec<Var>) {
        crate::tir::visit::for_each_expr(self.f, e, |e| {
            if let ExprData::Var(v) = self.f.expr(e)
                && seen.insert(*v)
            {
                out.push(*v);
            }
        });
    }

    // ---- statements ----

    fn statements(&mut self, out: &mut String, body: Stmt, indent: usize) {
        let mut stack = vec![Pending::Body { stmt: body, indent, in_block: false }];
        while let Some(pending) = stack.pop() {
            match pending {
                Pending::Line(indent, text) => line(out, indent, &text),
                Pending::Enter => self.enter(),
                Pending::Leave => self.leave(),
                Pending::Body { stmt, indent, in_block } => {
                    let items = self.flatten(stmt);
                    if items.is_empty() {
                        line(out, indent, "pass");
                    }
                    let count = items.len();
                    for (i, &stmt) in items.iter().enumerate().rev() {
                        stack.push(Pending::Item { stmt, indent, in_block, last: i + 1 == count });
                    }
                }
                Pending::Item { stmt, indent, in_block, last } => {
                    self.item(out, stmt, indent, in_block, last, &mut stack);
                }
            }
        }
    }

    /// Returns the statements of a sequence as a flat list, without nested sequences. For any other statement, the list contains
    /// only this statement.
    fn flatten(&self, stmt: Stmt) -> Vec<Stmt> {
        let mut out = Vec::new();
        let mut stack = vec![stmt];
        while let Some(s) = stack.pop() {
            match self.f.stmt(s) {
                StmtData::Seq(items) => stack.extend(items.iter().rev()),
                _ => out.push(s),
            }
        }
        out
    }

    /// Queues `body`, the scope of the statement just printed (such as a `let`), for printing at the same indentation. In
    /// the script, `body` continues the same statement list.
    fn rest(&self, body: Stmt, indent: usize, in_block: bool, stack: &mut Vec<Pending>) {
        if !self.flatten(body).is_empty() {
            stack.push(Pending::Body { stmt: body, indent, in_block });
        }
    }

    fn item(
        &mut self,
        out: &mut String,
        stmt: Stmt,
        indent: usize,
        in_block: bool,
        last: bool,
        stack: &mut Vec<Pending>,
    ) {
        let f = self.f;
        match f.stmt(stmt) {
            StmtData::Seq(_) => stack.push(Pending::Body { stmt, indent, in_block }),
            StmtData::For { .. } => self.for_loop(out, stmt, indent, stack),
            StmtData::While(cond, body) => {
                let text = format!("while {}:", self.expr(*cond));
                line(out, indent, &text);
                self.nested(*body, indent, stack);
            }
            StmtData::If(cond, then, otherwise) => {
                let text = format!("if {}:", self.expr(*cond));
                line(out, indent, &text);
                if let Some(otherwise) = otherwise {
                    self.nested(*otherwise, indent, stack);
                    stack.push(Pending::Line(indent, "else:".into()));
                }
                self.nested(*then, indent, stack);
            }
            StmtData::Let(v, value, body) => {
                let value = self.expr(*value);
                if last {
                    let ty = match f.var(*v).ty {
                        VarTy::Value(ty) => ty.to_string(),
                        VarTy::Handle => "handle".into(),
                    };
                    let text = format!("{}: T.{ty} = {value}", self.var_name(*v));
                    line(out, indent, &text);
                    self.rest(*body, indent, in_block, stack);
                } else {
                    self.enter();
                    let text = format!("with T.LetStmt({value}) as {}:", self.var_name(*v));
                    line(out, indent, &text);
                    stack.push(Pending::Leave);
                    self.nested(*body, indent, stack);
                }
            }
            StmtData::Alloc(b, body) => {
                let args = self.buffer_args(*b);
                let call = if in_block { "T.decl_buffer" } else { "T.alloc_buffer" };
                if last {
                    let text = format!("{} = {call}({args})", self.buffer_name(*b));
                    line(out, indent, &text);
                    self.rest(*body, indent, in_block, stack);
                } else {
                    self.enter();
                    let text = format!("with T.decl_buffer({args}) as {}:", self.buffer_name(*b));
                    line(out, indent, &text);
                    stack.push(Pending::Leave);
                    self.nested(*body, indent, stack);
                }
            }
            StmtData::Assert(cond, message, body) => {
                let (cond, message) = (self.expr(*cond), py_str(message));
                if last {
                    line(out, indent, &format!("assert {cond}, {message}"));
                    self.rest(*body, indent, in_block, stack);
                } else {
                    line(out, indent, &format!("with T.Assert({cond}, {message}):"));
                    self.nested(*body, indent, stack);
                }
            }
            StmtData::Store { buffer, indices, value } => {
                let target = self.element_text(*buffer, indices);
                let text = format!("{target} = {}", self.expr(*value));
                line(out, indent, &text);
            }
            StmtData::Evaluate(e) => {
                let text = format!("T.evaluate({})", self.expr(*e));
                line(out, indent, &text);
            }
            StmtData::Block(block) => self.block(out, block, indent, stack),
        }
    }

    /// Queues a body for printing at the next indentation level, in its own scope.
    pub(super) fn nested(&mut self, body: Stmt, indent: usize, stack: &mut Vec<Pending>) {
        stack.push(Pending::Leave);
        stack.push(Pending::Body { stmt: body, indent: indent + 1, in_block: false });
        stack.push(Pending::Enter);
    }

    // ---- loops ----

    fn for_loop(&mut self, out: &mut String, stmt: Stmt, indent: usize, stack: &mut Vec<Pending>) {
        let f = self.f;
        self.enter();
        let nest = self.grid(stmt);
        let innermost = *nest.last().unwrap_or(&stmt);
        let StmtData::For { var, min, extent, kind, body, annotations } = f.stmt(innermost) else {
            return;
        };
        let text = if nest.len() > 1 {
            let mut vars = Vec::new();
            let mut extents = Vec::new();
            for &s in &nest {
                if let StmtData::For { var, min, extent, .. } = f.stmt(s) {
                    // Extents first: the loop variables are not visible in them.
                    extents.push(self.expr(*extent));
                    self.loops.insert(*var, (*min, *extent));
                    vars.push(*var);
                }
            }
            let vars: Vec<String> = vars.into_iter().map(|v| self.var_name(v)).collect();
            format!("for {} in T.grid({}):", vars.join(", "), extents.join(", "))
        } else {
            let mut args = self.range(*min, *extent);
            args.extend(annotations_arg(annotations));
            let plain = *kind == ForKind::Serial && annotations.is_empty();
            let name = if plain { "range".into() } else { format!("T.{}", kind.name()) };
            self.loops.insert(*var, (*min, *extent));
            format!("for {} in {name}({}):", self.var_name(*var), args.join(", "))
        };
        line(out, indent, &text);
        stack.push(Pending::Leave);
        stack.push(Pending::Body { stmt: *body, indent: indent + 1, in_block: false });
    }

    /// The loops that can be printed as one `T.grid`, outermost first. They are serial, start at zero and have no annotations. Each
    /// one is the whole body of the previous one, and no extent depends on a variable of the nest.
    fn grid(&self, stmt: Stmt) -> Vec<Stmt> {
        let mut nest = Vec::new();
        let mut vars: FxHashSet<Var> = FxHashSet::default();
        let mut next = stmt;
        while let StmtData::For { var, min, extent, kind: ForKind::Serial, body, annotations } =
            self.f.stmt(next)
        {
            let mut uses = FxHashSet::default();
            let mut used = Vec::new();
            self.vars_of(*extent, &mut uses, &mut used);
            let plain = annotations.is_empty() && self.f.as_int(*min) == Some(0);
            if !plain || used.iter().any(|v| vars.contains(v)) || vars.contains(var) {
                break;
            }
            nest.push(next);
            vars.insert(*var);
            match self.flatten(*body).as_slice() {
                [only] => next = *only,
                _ => break,
            }
        }
        nest
    }

    /// The printed arguments of a loop range: `extent`, or `min, end` if the range does not start at 0.
    pub(super) fn range(&mut self, min: Expr, extent: Expr) -> Vec<String> {
        if self.f.as_int(min) == Some(0) {
            return vec![self.expr(extent)];
        }
        vec![self.expr(min), self.end(min, extent)]
    }

    /// The printed end of a range, from which the parser restores the extent; see the format in the module documentation of
    /// [`super`].
    pub(super) fn end(&mut self, min: Expr, extent: Expr) -> String {
        let f = self.f;
        if let (Some(a), Some(n)) = (f.as_int(min), f.as_int(extent))
            && let (Some(end), true) = (a.checked_add(n), f.expr_ty(min) == crate::tir::Ty::I64)
        {
            return end.to_string();
        }
        if let ExprData::Binary(BinOp::Sub, b, a) = f.expr(extent) {
            let ambiguous = matches!(f.expr(*b), ExprData::Binary(BinOp::Add, x, _) if x == a);
            if *a == min && !ambiguous {
                return self.expr(*b);
            }
        }
        format!("{} + {}", self.addend(min), self.addend(extent))
    }

    /// Prints an element access such as `A[i, j]`.
    pub(super) fn element_text(&mut self, buffer: Buffer, indices: &[Expr]) -> String {
        let name = self.buffer_name(buffer);
        if indices.is_empty() {
            return format!("{name}[()]");
        }
        let indices: Vec<String> = indices.iter().map(|&i| self.expr(i)).collect();
        format!("{name}[{}]", indices.join(", "))
    }
}

fn annotations_arg(annotations: &[(std::sync::Arc<str>, AttrValue)]) -> Option<String> {
    if annotations.is_empty() {
        return None;
    }
    let mut out = String::from("annotations=");
    attr_map(&mut out, annotations.iter().map(|(k, v)| (&**k, v)));
    Some(out)
}

//! Compares graph functions: structural equality up to renaming, and a compatible hash.

use std::hash::{Hash, Hasher};

use pliant_sym::{Sym, SymKind, SymVar};
use pliant_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::{Comparison, Difference, hash_attrs, same, same_attrs};
use crate::print::type_text;
use crate::relax::visit::{Event, for_each_expr, walk};
use crate::relax::{
    Binding, Callee, Expr, ExprData, FuncId, Function, Seq, TensorShape, Type, TypeData, Var,
};

/// Compares two graph functions in lockstep, and records which variables and symbols of the two correspond.
pub(super) struct Matcher<'a> {
    a: &'a Function,
    b: &'a Function,
    vars: FxHashMap<Var, Var>,
    vars_back: FxHashMap<Var, Var>,
    syms: FxHashMap<SymVar, SymVar>,
    syms_back: FxHashMap<SymVar, SymVar>,
    equal_types: FxHashSet<(Type, Type)>,
    equal_syms: FxHashSet<(Sym, Sym)>,
}

/// An element of the stack of comparisons that remain to be made.
enum Pending {
    Func(FuncId, FuncId),
    Bindings(Vec<Step>, Vec<Step>, usize, Seq, Seq),
}

/// An element of a sequence that is compared: a binding, or the start or end of a dataflow block.
#[derive(Clone, Copy)]
enum Step {
    Begin,
    End,
    Bind(Binding),
}

impl<'a> Matcher<'a> {
    pub(super) fn new(a: &'a Function, b: &'a Function) -> Self {
        Matcher {
            a,
            b,
            vars: FxHashMap::default(),
            vars_back: FxHashMap::default(),
            syms: FxHashMap::default(),
            syms_back: FxHashMap::default(),
            equal_types: FxHashSet::default(),
            equal_syms: FxHashSet::default(),
        }
    }

    pub(super) fn functions(&mut self) -> Comparison {
        same_attrs(&self.a.attrs, &self.b.attrs)?;
        same("visibility (private)", self.a.private, self.b.private)?;
        let mut stack = vec![Pending::Func(self.a.root(), self.b.root())];
        while let Some(pending) = stack.pop() {
            match pending {
                Pending::Func(x, y) => self.func(x, y, &mut stack)?,
                Pending::Bindings(x, y, start, s, t) => {
                    self.bindings(x, y, start, (s, t), &mut stack)?
                }
            }
        }
        Ok(())
    }

    fn func(&mut self, x: FuncId, y: FuncId, stack: &mut Vec<Pending>) -> Comparison {
        let (f, g) = (self.a.func(x), self.b.func(y));
        same("purity", f.pure, g.pure)?;
        same_attrs(&f.attrs, &g.attrs)?;
        same("number of parameters", f.params.len(), g.params.len())?;
        for (&p, &q) in f.params.iter().zip(&g.params) {
            self.pair_symbols(self.a.var(p).ty, self.b.var(q).ty);
        }
        for (i, (&p, &q)) in f.params.iter().zip(&g.params).enumerate() {
            self.define(p, q)
                .map_err(|d| d.at(format!("parameter {i} ({})", self.a.var(p).name)))?;
        }
        self.ty(f.ret_ty, g.ret_ty).map_err(|d| d.at("return type"))?;
        self.push_seq(f.body, g.body, stack);
        Ok(())
    }

    fn push_seq(&self, x: Seq, y: Seq, stack: &mut Vec<Pending>) {
        stack.push(Pending::Bindings(steps(self.a, x), steps(self.b, y), 0, x, y));
    }

    fn bindings(
        &mut self,
        x: Vec<Step>,
        y: Vec<Step>,
        start: usize,
        (s, t): (Seq, Seq),
        stack: &mut Vec<Pending>,
    ) -> Comparison {
        for i in start..x.len().max(y.len()) {
            let (p, q) = match (x.get(i), y.get(i)) {
                (Some(Step::Bind(p)), Some(Step::Bind(q))) => (*p, *q),
                (Some(Step::Begin), Some(Step::Begin)) | (Some(Step::End), Some(Step::End)) => {
                    continue;
                }
                (left, right) => {
                    let (l, r) = (self.step_name(self.a, left), self.step_name(self.b, right));
                    return Err(Difference::sides("binding", l, r).at(format!("step {i}")));
                }
            };
            let at_binding =
                |d: Difference| d.at(format!("binding of '{}'", self.a.var(p.var).name));
            match (self.a.expr(p.value), self.b.expr(q.value)) {
                (
                    ExprData::If { cond: c, then_seq: x1, else_seq: y1 },
                    ExprData::If { cond: d, then_seq: x2, else_seq: y2 },
                ) => {
                    let (c, d) = (*c, *d);
                    let (x1, y1, x2, y2) = (*x1, *y1, *x2, *y2);
                    self.expr(c, d).map_err(at_binding)?;
                    self.define(p.var, q.var).map_err(at_binding)?;
                    stack.push(Pending::Bindings(x, y, i + 1, s, t));
                    self.push_seq(y1, y2, stack);
                    self.push_seq(x1, x2, stack);
                    return Ok(());
                }
                (ExprData::Func(f), ExprData::Func(g)) => {
                    let (f, g) = (*f, *g);
                    // The variables are already paired if an earlier local function of the same run calls this one.
                    self.use_var(p.var, q.var).map_err(at_binding)?;
                    stack.push(Pending::Bindings(x, y, i + 1, s, t));
                    stack.push(Pending::Func(f, g));
                    return Ok(());
                }
                _ => {
                    self.expr(p.value, q.value).map_err(at_binding)?;
                    match (p.cast.expand(), q.cast.expand()) {
                        (Some(c), Some(d)) => self.ty(c, d).map_err(at_binding)?,
                        (None, None) => {}
                        _ => {
                            return Err(at_binding(Difference::new(
                                "the binding is a match_cast on one side only",
                            )));
                        }
                    }
                    self.define(p.var, q.var).map_err(at_binding)?;
                }
            }
        }
        let (x, y) = (self.a.seq(s).result, self.b.seq(t).result);
        self.expr(x, y).map_err(|d| d.at("result"))
    }

    fn step_name(&self, f: &Function, step: Option<&Step>) -> String {
        match step {
            None => "nothing".into(),
            Some(Step::Begin) => "a dataflow block".into(),
            Some(Step::End) => "the end of a dataflow block".into(),
            Some(Step::Bind(b)) => format!("'{}'", f.var(b.var).name),
        }
    }

    // ---- variables, symbols, types ----

    fn define_var(&mut self, x: Var, y: Var) {
        self.vars.insert(x, y);
        self.vars_back.insert(y, x);
    }

    fn define(&mut self, x: Var, y: Var) -> Comparison {
        let (s, t) = (self.a.var(x), self.b.var(y));
        self.ty(s.ty, t.ty)?;
        if s.dataflow != t.dataflow {
            return Err(Difference::new(
                "the variable is local to its dataflow block on one side, but an output of it on the other",
            ));
        }
        self.define_var(x, y);
        Ok(())
    }

    fn use_var(&mut self, x: Var, y: Var) -> Comparison {
        match (self.vars.get(&x), self.vars_back.get(&y)) {
            (Some(&t), Some(&s)) if t == y && s == x => Ok(()),
            (None, None) => {
                self.define_var(x, y);
                Ok(())
            }
            _ => Err(Difference::sides("variable", &self.a.var(x).name, &self.b.var(y).name)),
        }
    }

    fn ty(&mut self, x: Type, y: Type) -> Comparison {
        let mut stack = vec![(x, y)];
        while let Some((x, y)) = stack.pop() {
            if self.equal_types.contains(&(x, y)) {
                continue;
            }
            let (a, b) = (self.a, self.b);
            let ok = match (a.types.get(x), b.types.get(y)) {
                (TypeData::Any, TypeData::Any) => true,
                (TypeData::Prim { dtype: d, value: v }, TypeData::Prim { dtype: e, value: w }) => {
                    d == e && self.dims(v.as_slice(), w.as_slice())
                }
                (TypeData::Shape { dims: p, ndim: n }, TypeData::Shape { dims: q, ndim: m }) => {
                    n == m && p.is_some() == q.is_some() && {
                        self.dims(p.as_deref().unwrap_or(&[]), q.as_deref().unwrap_or(&[]))
                    }
                }
                (
                    TypeData::Tensor { shape: p, dtype: d },
                    TypeData::Tensor { shape: q, dtype: e },
                ) => {
                    d == e
                        && match (p, q) {
                            (TensorShape::Dims(p), TensorShape::Dims(q)) => self.dims(p, q),
                            (TensorShape::Var(v), TensorShape::Var(w)) => {
                                self.use_var(*v, *w).is_ok()
                            }
                            (p, q) => p == q,
                        }
                }
                (TypeData::Tuple(p), TypeData::Tuple(q)) => {
                    stack.extend(p.iter().copied().zip(q.iter().copied()).rev());
                    p.len() == q.len()
                }
                (
                    TypeData::Callable { params: p, ret: r, pure: u },
                    TypeData::Callable { params: q, ret: s, pure: v },
                ) => {
                    stack.push((*r, *s));
                    let (n, m) = (p.as_ref().map(|p| p.len()), q.as_ref().map(|q| q.len()));
                    if let (Some(p), Some(q)) = (p, q) {
                        stack.extend(p.iter().copied().zip(q.iter().copied()).rev());
                    }
                    u == v && n == m
                }
                _ => false,
            };
            if !ok {
                return Err(Difference::sides("type", type_text(a, x), type_text(b, y)));
            }
            if !matches!(a.types.get(x), TypeData::Tuple(_) | TypeData::Callable { .. }) {
                self.equal_types.insert((x, y));
            }
        }
        Ok(())
    }

    fn dims(&mut self, x: &[Sym], y: &[Sym]) -> bool {
        self.pair_dims(x, y);
        x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| self.sym(x, y))
    }

    /// Pairs the symbols that occur as whole dims at the same positions of two types. This happens before any composite dims, such
    /// as `n * m`, are compared, because composite dims do not determine which symbols correspond.
    fn pair_symbols(&mut self, x: Type, y: Type) {
        let mut stack = vec![(x, y)];
        while let Some((x, y)) = stack.pop() {
            let (s, t) = (self.a.types.get(x), self.b.types.get(y));
            if let (Some(x), Some(y)) = (s.dims(), t.dims()) {
                self.pair_dims(x, y);
            }
            match (s, t) {
                (TypeData::Prim { value: Some(v), .. }, TypeData::Prim { value: Some(w), .. }) => {
                    self.pair_dims(&[*v], &[*w])
                }
                (TypeData::Tuple(x), TypeData::Tuple(y)) => {
                    stack.extend(x.iter().copied().zip(y.iter().copied()).rev());
                }
                _ => {}
            }
        }
    }

    /// Pairs the symbols that are whole dims at the same position of two shapes, if neither symbol has been paired yet. Whether
    /// all dims are equal is checked later.
    fn pair_dims(&mut self, x: &[Sym], y: &[Sym]) {
        for (&x, &y) in x.iter().zip(y) {
            if let (SymKind::Var(v), SymKind::Var(w)) = (self.a.syms.kind(x), self.b.syms.kind(y)) {
                self.sym_var(v, w);
            }
        }
    }

    fn sym(&mut self, x: Sym, y: Sym) -> bool {
        if self.equal_syms.contains(&(x, y)) {
            return true;
        }
        let (a, b) = (&self.a.syms, &self.b.syms);
        match (a.kind(x), b.kind(y)) {
            (SymKind::Int(m), SymKind::Int(n)) => return m == n,
            (SymKind::Var(v), SymKind::Var(w)) => return self.sym_var(v, w),
            (SymKind::Int(_) | SymKind::Var(_), _) | (_, SymKind::Int(_) | SymKind::Var(_)) => {
                return false;
            }
            _ => {}
        }
        // The order of operands depends on the order of creation, so both terms are imported into one arena, where equal terms have
        // the same id. New symbols are paired in the order of their creation.
        let (left, right) = (self.sym_vars(true, x), self.sym_vars(false, y));
        if left.len() != right.len() {
            return false;
        }
        let new = |v: &&SymVar| !self.syms.contains_key(v);
        let new_left: Vec<SymVar> = left.iter().filter(new).copied().collect();
        let new_right: Vec<SymVar> =
            right.iter().filter(|w| !self.syms_back.contains_key(w)).copied().collect();
        if new_left.len() != new_right.len() || !self.equal_if_paired(x, y, &new_left, &new_right) {
            return false;
        }
        for (&v, &w) in new_left.iter().zip(&new_right) {
            self.sym_var(v, w);
        }
        self.equal_syms.insert((x, y));
        true
    }

    fn sym_vars(&self, left: bool, s: Sym) -> Vec<SymVar> {
        let arena = if left { &self.a.syms } else { &self.b.syms };
        let mut vars: Vec<SymVar> = arena.free_vars(s).into_iter().collect();
        vars.sort();
        vars
    }

    /// Whether two terms are equal if the new symbols of the left term are renamed, in order, to
    /// the new symbols of the right term.
    fn equal_if_paired(&self, x: Sym, y: Sym, new_left: &[SymVar], new_right: &[SymVar]) -> bool {
        let mut arena = pliant_sym::SymArena::new();
        let mut imported: FxHashMap<SymVar, Sym> = FxHashMap::default();
        let right = arena.import(&self.b.syms, y, &mut |arena, w| {
            *imported.entry(w).or_insert_with(|| {
                let v = arena.fresh_var("s");
                arena.var(v)
            })
        });
        let pair = |v: SymVar| {
            let index = new_left.iter().position(|&f| f == v);
            index.map(|i| new_right[i]).or_else(|| self.syms.get(&v).copied())
        };
        let left = arena.import(&self.a.syms, x, &mut |arena, v| match pair(v)
            .and_then(|w| imported.get(&w).copied())
        {
            Some(s) => s,
            None => {
                let v = arena.fresh_var("unpaired");
                arena.var(v)
            }
        });
        left == right
    }

    fn sym_var(&mut self, v: SymVar, w: SymVar) -> bool {
        match (self.syms.get(&v), self.syms_back.get(&w)) {
            (Some(&t), Some(&s)) => t == w && s == v,
            (None, None) => {
                self.syms.insert(v, w);
                self.syms_back.insert(w, v);
                true
            }
            _ => false,
        }
    }

    // ---- expressions ----

    fn expr(&mut self, x: Expr, y: Expr) -> Comparison {
        let mut stack = vec![(x, y)];
        while let Some((x, y)) = stack.pop() {
            let (a, b) = (self.a, self.b);
            let (s, t) = (a.expr(x), b.expr(y));
            let ok = match (s, t) {
                (ExprData::Var(v), ExprData::Var(w)) => {
                    self.use_var(*v, *w)?;
                    true
                }
                (ExprData::Global(v), ExprData::Global(w))
                | (ExprData::Extern(v), ExprData::Extern(w))
                | (ExprData::Str(v), ExprData::Str(w)) => a.str(*v) == b.str(*w),
                (ExprData::Constant(c), ExprData::Constant(d)) => {
                    if !same_tensor(a.const_tensor(*c), b.const_tensor(*d)) {
                        let (c, d) = (a.const_tensor(*c), b.const_tensor(*d));
                        return Err(Difference::new(format!(
                            "the constant differs: {c:?} on the left, {d:?} on the right"
                        )));
                    }
                    true
                }
                (ExprData::Shape(p), ExprData::Shape(q)) => self.dims(p, q),
                (ExprData::Int(v, d), ExprData::Int(w, e)) => d == e && self.sym(*v, *w),
                (ExprData::Float(v, d), ExprData::Float(w, e)) => v == w && d == e,
                (ExprData::DType(d), ExprData::DType(e)) => d == e,
                (ExprData::Tuple(p), ExprData::Tuple(q)) => {
                    let (p, q) = (a.list(*p), b.list(*q));
                    stack.extend(p.iter().copied().zip(q.iter().copied()).rev());
                    p.len() == q.len()
                }
                (ExprData::TupleGetItem(p, i), ExprData::TupleGetItem(q, j)) => {
                    stack.push((*p, *q));
                    i == j
                }
                (ExprData::Call { .. }, ExprData::Call { .. }) => self.call(x, y, &mut stack)?,
                _ => false,
            };
            if !ok {
                let text = |f, e| crate::print::expr_text(f, e, &crate::op::NoOps);
                return Err(Difference::sides("expression", text(a, x), text(b, y)));
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        x: Expr,
        y: Expr,
        stack: &mut Vec<(Expr, Expr)>,
    ) -> Result<bool, Difference> {
        let (a, b) = (self.a, self.b);
        let (
            ExprData::Call { callee: f, args: p, attrs: m, ty_args: s },
            ExprData::Call { callee: g, args: q, attrs: n, ty_args: t },
        ) = (a.expr(x), b.expr(y))
        else {
            return Ok(false);
        };
        match (f, g) {
            (Callee::Op(f), Callee::Op(g)) => same("operator", f.name(), g.name())?,
            (Callee::Expr(f), Callee::Expr(g)) => stack.push((*f, *g)),
            _ => return Ok(false),
        }
        let (p, q) = (a.list(*p), b.list(*q));
        same("number of arguments", p.len(), q.len())?;
        stack.extend(p.iter().copied().zip(q.iter().copied()).rev());
        if a.call_attrs(*m) != b.call_attrs(*n) {
            return Err(Difference::new(
                "the attributes of the call differ between the left and the right",
            ));
        }
        let (s, t) = (a.type_list(*s), b.type_list(*t));
        same("number of result types", s.len(), t.len())?;
        for (&s, &t) in s.iter().zip(t) {
            self.ty(s, t)?;
        }
        Ok(true)
    }
}

/// The bindings of a sequence, with the boundaries of dataflow blocks. The boundaries of all other blocks are ignored, because
/// these blocks only group bindings.
fn steps(f: &Function, seq: Seq) -> Vec<Step> {
    let mut out = Vec::new();
    for &b in &f.seq(seq).blocks {
        let block = f.block(b);
        out.extend(block.dataflow.then_some(Step::Begin));
        out.extend(block.bindings.iter().map(|&b| Step::Bind(b)));
        out.extend(block.dataflow.then_some(Step::End));
    }
    out
}

/// Whether two tensors have the same data type, shape and bits.
pub(super) fn same_tensor(a: &Tensor, b: &Tensor) -> bool {
    if a.same(b) {
        return true;
    }
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    match (a.to_contiguous(), b.to_contiguous()) {
        (Ok(a), Ok(b)) => match (a.as_bytes(), b.as_bytes()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
        _ => false,
    }
}

/// Hashes the properties that renaming preserves: expression kinds, operators, attributes and shapes of constants, in order.
pub(super) fn hash(f: &Function) -> u64 {
    let mut h = FxHasher::default();
    hash_attrs(&f.attrs, &mut h);
    f.private.hash(&mut h);
    let node = |e: Expr, h: &mut FxHasher| {
        std::mem::discriminant(f.expr(e)).hash(h);
        match f.expr(e) {
            ExprData::Global(s) | ExprData::Extern(s) | ExprData::Str(s) => f.str(*s).hash(h),
            ExprData::Constant(c) => {
                let t = f.const_tensor(*c);
                (t.dtype(), t.shape()).hash(h);
            }
            ExprData::Shape(dims) => dims.len().hash(h),
            ExprData::Float(bits, d) => (bits, d).hash(h),
            ExprData::DType(d) => d.hash(h),
            ExprData::TupleGetItem(_, i) => i.hash(h),
            ExprData::Call { callee, attrs, .. } => {
                if let Callee::Op(op) = callee {
                    op.hash(h);
                }
                f.call_attrs(*attrs).hash(h);
            }
            _ => {}
        }
    };
    walk(f, f.root(), |event| match event {
        Event::EnterFunc(id) => {
            hash_attrs(&f.func(id).attrs, &mut h);
            f.func(id).params.len().hash(&mut h);
            f.func(id).params.iter().for_each(|&p| hash_ty(f, f.var(p).ty, &mut h));
        }
        Event::EnterBinding(_, b) => {
            for_each_expr(f, b.value, |e| node(e, &mut h));
            if let Some(t) = b.cast.expand() {
                hash_ty(f, t, &mut h);
            }
        }
        Event::Result(seq) => for_each_expr(f, f.seq(seq).result, |e| node(e, &mut h)),
        _ => {}
    });
    h.finish()
}

fn hash_ty(f: &Function, ty: Type, h: &mut FxHasher) {
    let data = f.types.get(ty);
    std::mem::discriminant(data).hash(h);
    data.dtype().hash(h);
    if let Some(dims) = data.dims() {
        dims.iter().for_each(|&d| f.syms.as_int(d).hash(h));
    }
}

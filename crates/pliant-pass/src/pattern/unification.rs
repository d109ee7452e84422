//! Compares values, attributes, sizes and types during the pattern search. Comparing sizes binds the symbols of patterns.

use pliant_ir::relax::{Expr, ExprData, Function, TypeData};
use pliant_ir::{AttrValue, Sym};
use pliant_sym::{Analyzer, Facts, Proof, SymArena, SymVar, solve_match};
use pliant_tensor::Tensor;

use super::pattern_matcher::{Search, Syms};
use super::pattern_nodes::Literal;
use super::pattern_table::{Node, NodeId};
use super::type_pattern::{SizePattern, SizeTerm, TypePattern};

impl Search<'_> {
    /// Whether two operands are known to have the same value.
    pub fn same_value(&self, a: Expr, b: Expr) -> bool {
        let (a, b) = (self.defs.origin(self.func, a), self.defs.origin(self.func, b));
        if a == b {
            return true;
        }
        let f = self.func;
        match (f.expr(a), f.expr(b)) {
            (ExprData::Var(x), ExprData::Var(y)) => x == y,
            (ExprData::Global(x), ExprData::Global(y))
            | (ExprData::Extern(x), ExprData::Extern(y))
            | (ExprData::Str(x), ExprData::Str(y)) => x == y,
            (ExprData::Constant(x), ExprData::Constant(y)) => {
                x == y || same_tensor(f.const_tensor(*x), f.const_tensor(*y))
            }
            (ExprData::Shape(x), ExprData::Shape(y)) => x == y,
            (ExprData::Int(x, d), ExprData::Int(y, e)) => x == y && d == e,
            (ExprData::Float(x, d), ExprData::Float(y, e)) => x == y && d == e,
            (ExprData::DType(x), ExprData::DType(y)) => x == y,
            (ExprData::Tuple(x), ExprData::Tuple(y)) => f.list(*x) == f.list(*y),
            _ => false,
        }
    }

    fn prove_equal(&mut self, a: Sym, b: Sym) -> bool {
        if a == b {
            return true;
        }
        let syms = self.syms.get_mut(self.func);
        if let (Some(x), Some(y)) = (syms.as_int(a), syms.as_int(b)) {
            return x == y;
        }
        if syms.as_var(a).or(syms.as_int(a).map(|_| SymVar::from_u32(0))).is_some()
            && syms.as_var(b).or(syms.as_int(b).map(|_| SymVar::from_u32(0))).is_some()
        {
            return false;
        }
        let mut facts = Facts::new();
        for term in [a, b] {
            for var in syms.free_vars(term) {
                facts.assume_size(var);
            }
        }
        Analyzer::new(syms, &facts).prove_eq(a, b) == Proof::Yes
    }

    pub(super) fn sizes_fit(&mut self, want: &[SizePattern], have: &[Sym]) -> bool {
        want.len() == have.len() && want.iter().zip(have).all(|(w, &h)| self.size_fits(w, h))
    }

    fn size_fits(&mut self, want: &SizePattern, have: Sym) -> bool {
        match want {
            SizePattern::Any => true,
            SizePattern::Int(v) => {
                let v = self.syms.get_mut(self.func).int(*v);
                self.prove_equal(v, have)
            }
            SizePattern::Term(term) => match term.arena.as_var(term.sym) {
                Some(var) => {
                    let key = term.key(var);
                    if let Some(&bound) = self.sizes.get(&key) {
                        return self.prove_equal(bound, have);
                    }
                    self.sizes.insert(key, have);
                    self.size_trail.push(key);
                    true
                }
                None => {
                    self.deferred_terms.push((term.clone(), have));
                    true
                }
            },
        }
    }

    /// Whether all terms in `deferred_terms`, which contained unbound symbols when they were compared, equal the sizes that are
    /// stored with them. If a term has exactly one unbound symbol, solves the equation for this symbol and binds it.
    pub(super) fn deferred_terms_match(&mut self) -> bool {
        let mut terms = self.deferred_terms.clone();
        while !terms.is_empty() {
            let before = terms.len();
            let mut holds = true;
            terms.retain(|(term, have)| match self.term_fits(term, *have) {
                Some(fits) => {
                    holds &= fits;
                    false
                }
                None => true,
            });
            if !holds || terms.len() == before {
                return false;
            }
        }
        true
    }

    /// Whether a term equals the size `have`. `None` if the term has several unbound symbols; another term may still bind some of
    /// them.
    fn term_fits(&mut self, term: &SizeTerm, have: Sym) -> Option<bool> {
        let mut unbound: Vec<(u64, SymVar)> = Vec::new();
        for v in term.arena.free_vars(term.sym) {
            let key = term.key(v);
            if !self.sizes.contains_key(&key) && unbound.iter().all(|(k, _)| *k != key) {
                unbound.push((key, v));
            }
        }
        // First, try to bind the unbound symbols to symbols of the function with the same names.
        let syms = self.syms.get_mut(self.func);
        let same_named = |v: SymVar| syms.vars().find(|&u| syms.name(u) == term.arena.name(v));
        let own: Option<Vec<(u64, SymVar)>> =
            unbound.iter().map(|&(key, v)| Some((key, same_named(v)?))).collect();
        if let Some(own) = own {
            let want = self.substitute(term, &own);
            if self.prove_equal(want, have) {
                for (key, u) in own {
                    let size = self.syms.get_mut(self.func).var(u);
                    self.bind_size(key, size);
                }
                return Some(true);
            }
        }
        let &[(key, _)] = unbound.as_slice() else {
            return unbound.is_empty().then_some(false);
        };
        let Some(size) = self.solve_for(term, key, have) else { return Some(false) };
        self.bind_size(key, size);
        Some(true)
    }

    /// Converts a term of a pattern to the function's arena. Bound symbols are replaced by their sizes. A symbol whose key is in
    /// `others` is replaced by the variable that is listed with the key.
    fn substitute(&mut self, term: &SizeTerm, others: &[(u64, SymVar)]) -> Sym {
        let sizes = self.sizes.clone();
        let syms = self.syms.get_mut(self.func);
        syms.import(&term.arena, term.sym, &mut |syms, v| {
            let key = term.key(v);
            let other = others.iter().find(|(k, _)| *k == key).map(|&(_, u)| u);
            other.map_or_else(|| sizes[&key], |u| syms.var(u))
        })
    }

    /// Solves the equation `term == have` for the only unbound symbol of the term. Returns `None` if the solution is not provably
    /// a valid size.
    fn solve_for(&mut self, term: &SizeTerm, key: u64, have: Sym) -> Option<Sym> {
        let fresh = self.syms.get_mut(self.func).fresh_var("unknown");
        let want = self.substitute(term, &[(key, fresh)]);
        let syms = self.syms.get_mut(self.func);
        let solution = solve_match(syms, want, "size", &|v| v != fresh)?;
        let observed = |v: SymVar| (v == solution.observed).then_some(have);
        let size = syms.substitute(solution.value, &observed);
        let checks: Vec<Sym> =
            solution.checks.iter().map(|&c| syms.substitute(c, &observed)).collect();
        let one = syms.int(1);
        checks.into_iter().all(|c| self.prove_equal(c, one)).then_some(size)
    }

    fn bind_size(&mut self, key: u64, size: Sym) {
        self.sizes.insert(key, size);
        self.size_trail.push(key);
    }

    pub(super) fn type_fits(&mut self, want: &TypePattern, have: pliant_ir::relax::Type) -> bool {
        let func = self.func;
        let data = func.types.get(have);
        match (want, data) {
            (TypePattern::Any, _) => true,
            (TypePattern::Prim(d), TypeData::Prim { dtype, .. }) => d == dtype,
            (TypePattern::Shape { sizes, ndim }, TypeData::Shape { .. }) => {
                ndim.is_none_or(|n| func.rank_of(have) == Some(n))
                    && self.known_sizes_fit(sizes.as_deref(), data)
            }
            (TypePattern::Tensor { sizes, ndim, dtype }, TypeData::Tensor { dtype: d, .. }) => {
                dtype.is_none_or(|want| *d == Some(want))
                    && ndim.is_none_or(|n| func.rank_of(have) == Some(n))
                    && self.known_sizes_fit(sizes.as_deref(), data)
            }
            (TypePattern::Tuple(want), TypeData::Tuple(have)) => {
                want.len() == have.len()
                    && want.iter().zip(have.iter()).all(|(w, &h)| self.type_fits(w, h))
            }
            (TypePattern::Callable, TypeData::Callable { .. }) => true,
            _ => false,
        }
    }

    fn known_sizes_fit(&mut self, want: Option<&[SizePattern]>, have: &TypeData) -> bool {
        match (want, have.dims()) {
            (None, _) => true,
            (Some(want), Some(have)) => self.sizes_fit(want, have),
            (Some(_), None) => false,
        }
    }

    /// Whether the values that the patterns of the [`Node::SameShape`] with index `node` have matched provably have the same shape.
    pub(super) fn same_shape(&mut self, node: NodeId) -> bool {
        let table = self.table;
        let Node::SameShape(list) = &table.nodes[node as usize] else { return false };
        let func = self.func;
        let mut first: Option<&[Sym]> = None;
        for &p in list.iter() {
            // A subpattern that is not part of the match has no shape to compare.
            let Some(e) = self.matched(p) else { continue };
            let Some(dims) = func.ty(e).dims() else { return false };
            let Some(want) = first else {
                first = Some(dims);
                continue;
            };
            if want.len() != dims.len() {
                return false;
            }
            if !want.iter().zip(dims).all(|(&a, &b)| self.prove_equal(a, b)) {
                return false;
            }
        }
        true
    }

    /// Whether the values that these patterns have matched provably have the same shape. Patterns that are not part of the match
    /// are ignored.
    pub fn shapes_agree(&mut self, patterns: &[NodeId]) -> bool {
        let exprs: Vec<Expr> = patterns.iter().filter_map(|&p| self.matched(p)).collect();
        let func = self.func;
        let Some((&first, others)) = exprs.split_first() else { return true };
        let Some(want) = func.ty(first).dims() else { return exprs.len() == 1 };
        others.iter().all(|&e| {
            func.ty(e).dims().is_some_and(|dims| {
                want.len() == dims.len()
                    && want.iter().zip(dims).all(|(&a, &b)| self.prove_equal(a, b))
            })
        })
    }
}

impl Syms {
    /// Returns the arena in which sizes are compared, for reading.
    pub(super) fn read<'a>(&'a self, func: &'a Function) -> &'a SymArena {
        match self {
            Syms::Own(syms) | Syms::Copy(Some(syms)) => syms,
            Syms::Copy(None) => &func.syms,
        }
    }

    /// Returns the arena in which sizes are compared, for adding terms. Copies the arena of the function if necessary.
    fn get_mut(&mut self, func: &Function) -> &mut SymArena {
        match self {
            Syms::Own(syms) => syms,
            Syms::Copy(copy) => copy.get_or_insert_with(|| func.syms.clone()),
        }
    }
}

pub(super) fn same_name(want: &Option<std::sync::Arc<str>>, have: &str) -> bool {
    want.as_ref().is_none_or(|w| **w == *have)
}

fn same_tensor(a: &Tensor, b: &Tensor) -> bool {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    let (Ok(a), Ok(b)) = (a.to_contiguous(), b.to_contiguous()) else { return false };
    matches!((a.as_bytes(), b.as_bytes()), (Ok(a), Ok(b)) if a == b)
}

pub(super) fn literal_is(func: &Function, syms: &SymArena, e: Expr, want: &Literal) -> bool {
    match (func.expr(e), want) {
        (ExprData::Constant(c), Literal::Tensor(t)) => same_tensor(func.const_tensor(*c), t),
        (ExprData::Int(v, d), Literal::Int(want, dtype)) => {
            syms.as_int(*v) == Some(*want) && d == dtype
        }
        (ExprData::Float(bits, d), Literal::Float(want, dtype)) => {
            *bits == want.to_bits() && d == dtype
        }
        (ExprData::Str(s), Literal::Str(want)) => func.str(*s) == want,
        (ExprData::DType(d), Literal::DType(want)) => d == want,
        _ => false,
    }
}

/// Whether two attribute values denote the same value: numbers are compared by value, dtypes by name, and an integer equals a list
/// that only contains it.
pub fn same_attr(a: &AttrValue, b: &AttrValue) -> bool {
    if a == b {
        return true;
    }
    match (a, b) {
        (AttrValue::List(x), AttrValue::List(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same_attr(a, b))
        }
        (AttrValue::DType(_), _) | (_, AttrValue::DType(_)) => {
            a.as_dtype().is_some() && a.as_dtype() == b.as_dtype()
        }
        (AttrValue::Float(_), _) | (_, AttrValue::Float(_)) => {
            a.as_float().is_some() && a.as_float() == b.as_float()
        }
        (AttrValue::Bool(_), _) | (_, AttrValue::Bool(_)) => {
            a.as_int().is_some() && a.as_int() == b.as_int()
        }
        (AttrValue::List(x), single) | (single, AttrValue::List(x)) => {
            matches!(&x[..], [one] if matches!(single, AttrValue::Int(_)) && same_attr(one, single))
        }
        _ => false,
    }
}

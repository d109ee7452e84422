//! Operations on the type lattice: subtyping, least common supertypes, import of types from other functions, and result types of
//! calls.
//!
//! The symbolic prover compares dims. If it can neither prove nor disprove that they are equal, they are checked at run time, and
//! there is no compile-time error.

use pliant_sym::{Analyzer, Facts, Proof, Sym, SymKind, SymVar};
use rustc_hash::FxHashMap;

use super::expr::Var;
use super::function::Function;
use super::types::{TensorShape, Type, TypeData};
use crate::op::InferError;
use crate::print::type_text;

/// A map from symbols of one function to the symbolic integers of another function that replace
/// them.
pub type SymMap = FxHashMap<SymVar, Sym>;

/// Combines the proofs of two statements into the proof that both are true: disproved if either is
/// disproved, proved if both are proved.
pub fn conjunction(a: Proof, b: Proof) -> Proof {
    match (a, b) {
        (Proof::No, _) | (_, Proof::No) => Proof::No,
        (Proof::Yes, Proof::Yes) => Proof::Yes,
        _ => Proof::Unknown,
    }
}

/// Proves whether two dims are equal for all values of their symbols.
pub fn prove_dims_equal(func: &mut Function, a: Sym, b: Sym) -> Proof {
    if a == b {
        return Proof::Yes;
    }
    match (func.syms.kind(a), func.syms.kind(b)) {
        (SymKind::Int(x), SymKind::Int(y)) => return if x == y { Proof::Yes } else { Proof::No },
        // Two different symbols, or a symbol and a constant, may be equal.
        (SymKind::Var(_), SymKind::Var(_) | SymKind::Int(0..)) => return Proof::Unknown,
        (SymKind::Int(0..), SymKind::Var(_)) => return Proof::Unknown,
        _ => {}
    }
    let mut facts = Facts::new();
    for sym in [a, b] {
        for var in func.syms.free_vars(sym) {
            facts.assume_size(var);
        }
    }
    Analyzer::new(&mut func.syms, &facts).prove_eq(a, b)
}

fn prove_shapes_equal(func: &mut Function, a: &[Sym], b: &[Sym]) -> Proof {
    if a.len() != b.len() {
        return Proof::No;
    }
    let dims = a.iter().zip(b);
    dims.fold(Proof::Yes, |acc, (&x, &y)| conjunction(acc, prove_dims_equal(func, x, y)))
}

/// Proves whether every value of type `a` is of type `b`. The result is [`Proof::Unknown`] if that depends on run-time values.
pub fn is_subtype(func: &mut Function, a: Type, b: Type) -> Proof {
    if a == b {
        return Proof::Yes;
    }
    let (from, to) = (func.types.get(a).clone(), func.types.get(b).clone());
    match (from, to) {
        (_, TypeData::Any) => Proof::Yes,
        (TypeData::Any, _) => Proof::Unknown,
        (TypeData::Prim { dtype: d, value: v }, TypeData::Prim { dtype: e, value: w }) => {
            match (v, w) {
                _ if d != e => Proof::No,
                (_, None) => Proof::Yes,
                (None, _) => Proof::Unknown,
                (Some(v), Some(w)) => prove_dims_equal(func, v, w),
            }
        }
        (TypeData::Shape { dims: x, ndim: n }, TypeData::Shape { dims: y, ndim: m }) => {
            match (x, y) {
                (Some(x), Some(y)) => prove_shapes_equal(func, &x, &y),
                (_, None) => rank_fits(n, m),
                (None, Some(_)) => conjunction(rank_fits(n, m), Proof::Unknown),
            }
        }
        (TypeData::Tensor { shape: x, dtype: d }, TypeData::Tensor { shape: y, dtype: e }) => {
            let dtype = match (d, e) {
                (_, None) => Proof::Yes,
                (None, _) => Proof::Unknown,
                (Some(d), Some(e)) => [Proof::No, Proof::Yes][usize::from(d == e)],
            };
            conjunction(dtype, shape_fits(func, &x, &y))
        }
        (TypeData::Tuple(x), TypeData::Tuple(y)) if x.len() == y.len() => {
            let fields = x.iter().zip(&y);
            fields.fold(Proof::Yes, |acc, (&a, &b)| conjunction(acc, is_subtype(func, a, b)))
        }
        (
            TypeData::Callable { params: p, ret: r, pure },
            TypeData::Callable { params: q, ret: s, pure: must },
        ) => callable_fits(func, (p.as_deref(), r, pure), (q.as_deref(), s, must)),
        _ => Proof::No,
    }
}

fn rank_fits(have: Option<u32>, need: Option<u32>) -> Proof {
    match (have, need) {
        (_, None) => Proof::Yes,
        (None, _) => Proof::Unknown,
        (Some(a), Some(b)) => [Proof::No, Proof::Yes][usize::from(a == b)],
    }
}

/// The dims of a tensor shape; for a shape variable, the dims that its type states. `None` if they are unknown.
fn shape_dims(func: &Function, shape: &TensorShape) -> Option<Box<[Sym]>> {
    match shape {
        TensorShape::Dims(d) => Some(d.clone()),
        TensorShape::Var(v) => func.var_ty(*v).dims().map(Into::into),
        _ => None,
    }
}

fn shape_rank(func: &Function, shape: &TensorShape) -> Option<u32> {
    match shape {
        TensorShape::Dims(d) => Some(d.len() as u32),
        TensorShape::Rank(n) => Some(*n),
        TensorShape::Var(v) => func.rank_of(func.var(*v).ty),
        TensorShape::Unknown => None,
    }
}

fn shape_fits(func: &mut Function, a: &TensorShape, b: &TensorShape) -> Proof {
    if a == b || *b == TensorShape::Unknown {
        return Proof::Yes;
    }
    let rank = rank_fits(shape_rank(func, a), shape_rank(func, b));
    if matches!(b, TensorShape::Rank(_)) || rank == Proof::No {
        return rank;
    }
    match (shape_dims(func, a), shape_dims(func, b)) {
        (Some(x), Some(y)) => prove_shapes_equal(func, &x, &y),
        _ => Proof::Unknown,
    }
}

/// The signature of a callable: (types of the parameters if known, type of the result, whether calls are pure).
type Signature<'a> = (Option<&'a [Type]>, Type, bool);

fn callable_fits(func: &mut Function, a: Signature<'_>, b: Signature<'_>) -> Proof {
    if b.2 && !a.2 {
        return Proof::No;
    }
    let ret = is_subtype(func, a.1, b.1);
    let params = match (a.0, b.0) {
        (_, None) => Proof::Yes,
        (None, Some(_)) => Proof::Unknown,
        (Some(p), Some(q)) if p.len() != q.len() => return Proof::No,
        (Some(p), Some(q)) => {
            let pairs = q.iter().zip(p);
            pairs.fold(Proof::Yes, |acc, (&x, &y)| conjunction(acc, is_subtype(func, x, y)))
        }
    };
    // The symbols of a signature are local to it, so different dims may only differ in names.
    match conjunction(params, ret) {
        Proof::Yes => Proof::Yes,
        _ if a.0.is_some() || b.0.is_some() => Proof::Unknown,
        other => other,
    }
}

/// The least common supertype of two types, or a larger type if the least one cannot be determined. The name stands for "least
/// common ancestor" in the lattice.
pub fn lca(func: &mut Function, a: Type, b: Type) -> Type {
    if a == b {
        return a;
    }
    let data = match (func.types.get(a).clone(), func.types.get(b).clone()) {
        (TypeData::Prim { dtype: d, .. }, TypeData::Prim { dtype: e, .. }) if d == e => {
            TypeData::Prim { dtype: d, value: None }
        }
        (TypeData::Shape { dims: x, ndim: n }, TypeData::Shape { dims: y, ndim: m }) => {
            let ndim = if n == m { n } else { None };
            let dims =
                x.zip(y).filter(|(x, y)| prove_shapes_equal(func, x, y).is_yes()).map(|d| d.0);
            TypeData::Shape { dims, ndim }
        }
        (TypeData::Tensor { shape: x, dtype: d }, TypeData::Tensor { shape: y, dtype: e }) => {
            let dtype = if d == e { d } else { None };
            TypeData::Tensor { shape: shape_lca(func, x, &y), dtype }
        }
        (TypeData::Tuple(x), TypeData::Tuple(y)) if x.len() == y.len() => {
            TypeData::Tuple(x.iter().zip(&y).map(|(&a, &b)| lca(func, a, b)).collect())
        }
        (
            TypeData::Callable { params: p, ret: r, pure: u },
            TypeData::Callable { params: q, ret: s, pure: v },
        ) => {
            let ret = lca(func, r, s);
            TypeData::Callable { params: if p == q { p } else { None }, ret, pure: u && v }
        }
        _ => TypeData::Any,
    };
    func.intern(data)
}

fn shape_lca(func: &mut Function, a: TensorShape, b: &TensorShape) -> TensorShape {
    if let (Some(x), Some(y)) = (shape_dims(func, &a), shape_dims(func, b))
        && prove_shapes_equal(func, &x, &y).is_yes()
    {
        return a;
    }
    match (shape_rank(func, &a), shape_rank(func, b)) {
        (Some(n), Some(m)) if n == m => TensorShape::Rank(n),
        _ => TensorShape::Unknown,
    }
}

/// Replaces the symbols of a type by the results of the callback `sym`, and its shape variables by the results of the callback
/// `var`. Where a callback returns `None`, the type loses the dim or the shape but keeps the remaining information, such as the
/// rank.
pub fn erase_to_well_defined(
    func: &mut Function,
    ty: Type,
    sym: &dyn Fn(SymVar) -> Option<Sym>,
    var: &dyn Fn(Var) -> Option<Var>,
) -> Type {
    TypeTransfer { src: None, dst: func, sym: &mut |_, v| sym(v), var }.ty(ty)
}

/// Removes from a type the symbols for which `keep` returns false, so that the type can be used outside of their scope.
pub fn erase(func: &mut Function, ty: Type, keep: &dyn Fn(SymVar) -> bool) -> Type {
    let vars: Vec<Sym> = func.syms.vars().map(|v| func.syms.var(v)).collect();
    let sym = |v: SymVar| keep(v).then(|| vars[v.as_u32() as usize]);
    erase_to_well_defined(func, ty, &sym, &|_| None)
}

/// Copies a type of the function `src` to the arenas of the function `dst`. A symbol without an entry in `syms` is mapped to a new
/// symbol of the same name, which is added to `syms`. Shape variables are dropped.
pub fn import_type(dst: &mut Function, src: &Function, ty: Type, syms: &mut SymMap) -> Type {
    let mut sym = |dst: &mut Function, v: SymVar| {
        Some(*syms.entry(v).or_insert_with(|| {
            let new = dst.syms.fresh_var(src.syms.name(v).to_string());
            dst.syms.var(new)
        }))
    };
    TypeTransfer { src: Some(src), dst, sym: &mut sym, var: &|_| None }.ty(ty)
}

/// Copies a symbolic integer of the function `src` to the arena of the function `dst`. Symbols are mapped as in [`import_type`]. A
/// symbolic integer that is a key of `terms` is replaced as a whole.
pub fn import_sym(
    dst: &mut Function,
    src: &Function,
    s: Sym,
    syms: &mut SymMap,
    terms: &FxHashMap<Sym, Sym>,
) -> Sym {
    dst.syms.import_terms(&src.syms, s, terms, &mut |arena, v| {
        *syms.entry(v).or_insert_with(|| {
            let new = arena.fresh_var(src.syms.name(v).to_string());
            arena.var(new)
        })
    })
}

/// Copies types into the arenas of `dst`. The functions `sym` and `var` return the replacements of symbols and shape variables.
/// If they return `None`, a tensor or shape type keeps only its rank, and a scalar type no value. The types come from `src`, or
/// from `dst` itself if `src` is `None`.
struct TypeTransfer<'a> {
    src: Option<&'a Function>,
    dst: &'a mut Function,
    sym: &'a mut dyn FnMut(&mut Function, SymVar) -> Option<Sym>,
    var: &'a dyn Fn(Var) -> Option<Var>,
}

impl TypeTransfer<'_> {
    fn source(&self) -> &Function {
        self.src.unwrap_or(self.dst)
    }

    fn ty(&mut self, ty: Type) -> Type {
        let data = match self.source().types.get(ty).clone() {
            TypeData::Any => TypeData::Any,
            TypeData::Prim { dtype, value } => {
                TypeData::Prim { dtype, value: value.and_then(|v| self.dim(v)) }
            }
            TypeData::Shape { dims, ndim } => {
                TypeData::Shape { dims: dims.and_then(|d| self.dims(&d)), ndim }
            }
            TypeData::Tensor { shape, dtype } => {
                TypeData::Tensor { shape: self.shape(shape), dtype }
            }
            TypeData::Tuple(fields) => {
                TypeData::Tuple(fields.iter().map(|&t| self.ty(t)).collect())
            }
            TypeData::Callable { params, ret, pure } => {
                let params = params.map(|p| p.iter().map(|&t| self.ty(t)).collect());
                TypeData::Callable { params, ret: self.ty(ret), pure }
            }
        };
        self.dst.intern(data)
    }

    fn shape(&mut self, shape: TensorShape) -> TensorShape {
        let rank = shape_rank(self.source(), &shape);
        let known = match &shape {
            TensorShape::Dims(d) => self.dims(d).map(TensorShape::Dims),
            TensorShape::Var(v) => match (self.var)(*v) {
                Some(v) => Some(TensorShape::Var(v)),
                None => {
                    let dims = shape_dims(self.source(), &shape);
                    dims.and_then(|d| self.dims(&d)).map(TensorShape::Dims)
                }
            },
            _ => None,
        };
        known.unwrap_or(rank.map_or(TensorShape::Unknown, TensorShape::Rank))
    }

    fn dims(&mut self, dims: &[Sym]) -> Option<Box<[Sym]>> {
        dims.iter().map(|&d| self.dim(d)).collect()
    }

    fn dim(&mut self, dim: Sym) -> Option<Sym> {
        let mut map = SymMap::default();
        for v in self.source().syms.free_vars(dim) {
            let to = (self.sym)(self.dst, v)?;
            map.insert(v, to);
        }
        Some(match self.src {
            Some(src) => import_dim(self.dst, src, dim, &map),
            None => self.dst.syms.substitute(dim, &|v| map.get(&v).copied()),
        })
    }
}

/// Copies a dim of the function `src` to the arena of the function `dst`, and replaces its symbols, which are all in `map`.
fn import_dim(dst: &mut Function, src: &Function, dim: Sym, map: &SymMap) -> Sym {
    dst.syms.import(&src.syms, dim, &mut |_, v| map[&v])
}

/// The type of a call of `callee` with arguments of the given types. The argument types and the result are types of `dst`.
///
/// A parameter dim that is a plain symbol binds the symbol to the argument's dim. The bound symbols are substituted in the result
/// type. A result shape with an unbound symbol is reduced to its rank.
///
/// # Errors
/// If the number of arguments is wrong, or the kind, dtype, rank or a dim of an argument provably does not fit.
pub fn derive_call_ty(
    dst: &mut Function,
    callee: &Function,
    args: &[Type],
) -> Result<Type, InferError> {
    let params: Vec<(String, Type)> = callee
        .params()
        .iter()
        .map(|&p| (callee.var(p).name.to_string(), callee.var(p).ty))
        .collect();
    ArgumentMatcher { src: Some(callee), dst, bound: SymMap::default(), deferred: Vec::new() }.call(
        &params,
        callee.ret_ty(),
        args,
    )
}

/// The type of a call of a value of type `callable`; see [`derive_call_ty`]. If the parameter types are unknown, the result is the
/// declared result type of the callable.
///
/// # Errors
/// The same errors as [`derive_call_ty`]. Also fails if the type is not callable.
pub fn derive_callable_ty(
    func: &mut Function,
    callable: Type,
    args: &[Type],
) -> Result<Type, InferError> {
    derive_callable_ty_within(func, callable, args, &[], &|_| false)
}

/// The type of a call as in [`derive_callable_ty`], for a callable whose type may refer to symbols of the enclosing function. The
/// symbols for which `outer` returns true are not bound by the arguments: they mean the same in the callable's type as at the call.
/// `names` are the names of the parameters for messages, if known.
///
/// # Errors
/// The same errors as [`derive_callable_ty`].
pub fn derive_callable_ty_within(
    func: &mut Function,
    callable: Type,
    args: &[Type],
    names: &[String],
    outer: &dyn Fn(SymVar) -> bool,
) -> Result<Type, InferError> {
    match func.types.get(callable).clone() {
        TypeData::Callable { params: Some(params), ret, .. } => {
            let mut bound = SymMap::default();
            for &ty in params.iter().chain([&ret]) {
                for v in type_syms(func, ty) {
                    if outer(v) {
                        bound.insert(v, func.syms.var(v));
                    }
                }
            }
            let name = |i: usize| names.get(i).cloned().unwrap_or_default();
            let params: Vec<(String, Type)> =
                params.iter().enumerate().map(|(i, &t)| (name(i), t)).collect();
            ArgumentMatcher { src: None, dst: func, bound, deferred: Vec::new() }
                .call(&params, ret, args)
        }
        TypeData::Callable { params: None, ret, .. } => Ok(ret),
        TypeData::Any => Ok(callable),
        _ => {
            let text = type_text(func, callable);
            Err(InferError::new(format!("a value of type {text} is called, but is not a function")))
        }
    }
}

/// Matches the arguments of a call with the parameters, and binds the symbols of parameters to the dims of arguments.
struct ArgumentMatcher<'a> {
    src: Option<&'a Function>,
    dst: &'a mut Function,
    bound: SymMap,
    /// The dims to compare after all symbols have been bound. Each entry is the index and the name
    /// of the parameter, the index of the dim, the dim of the parameter, and the dim of the
    /// argument.
    deferred: Vec<(usize, String, usize, Sym, Sym)>,
}

impl ArgumentMatcher<'_> {
    fn source(&self) -> &Function {
        self.src.unwrap_or(self.dst)
    }

    fn call(
        mut self,
        params: &[(String, Type)],
        ret: Type,
        args: &[Type],
    ) -> Result<Type, InferError> {
        if params.len() != args.len() {
            let names: Vec<&str> =
                params.iter().map(|p| p.0.as_str()).filter(|name| !name.is_empty()).collect();
            let names =
                if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            return Err(InferError::new(format!(
                "the number of arguments of the call is {}, but the function has {} parameters{names}",
                args.len(),
                params.len(),
            )));
        }
        for (i, ((name, param), &arg)) in params.iter().zip(args).enumerate() {
            self.arg(i, name, *param, arg)?;
        }
        for (i, name, axis, dim, actual) in std::mem::take(&mut self.deferred) {
            let Some(expected) = self.substitute_bound(dim) else { continue };
            if prove_dims_equal(self.dst, expected, actual).is_no() {
                let dim = self.source().syms.display(dim).to_string();
                let syms = &self.dst.syms;
                let (expected, actual) = (syms.display(expected).to_string(), syms.display(actual));
                let declared = if expected == dim { dim } else { format!("{dim} = {expected}") };
                let argument = argument(i, &name);
                return Err(InferError::new(format!(
                    "dim {axis} of {argument} has size {actual}, but the parameter declares the size {declared}"
                )));
            }
        }
        let bound = std::mem::take(&mut self.bound);
        let mut sym = |_: &mut Function, v: SymVar| bound.get(&v).copied();
        Ok(TypeTransfer { src: self.src, dst: self.dst, sym: &mut sym, var: &|_| None }.ty(ret))
    }

    /// The dim of a parameter in which all symbols are replaced by the dims to which they are bound; `None` if a symbol is not
    /// bound.
    fn substitute_bound(&mut self, dim: Sym) -> Option<Sym> {
        let vars = self.source().syms.free_vars(dim);
        if !vars.iter().all(|v| self.bound.contains_key(v)) {
            return None;
        }
        Some(match self.src {
            Some(src) => import_dim(self.dst, src, dim, &self.bound),
            None => {
                let bound = &self.bound;
                self.dst.syms.substitute(dim, &|v| bound.get(&v).copied())
            }
        })
    }

    fn arg(&mut self, i: usize, name: &str, param: Type, arg: Type) -> Result<(), InferError> {
        let (want, have) =
            (self.source().types.get(param).clone(), self.dst.types.get(arg).clone());
        match (want, have) {
            (TypeData::Any, _) | (_, TypeData::Any) => Ok(()),
            (TypeData::Prim { dtype: d, value: v }, TypeData::Prim { dtype: e, value: w })
                if d == e =>
            {
                if let (Some(v), Some(w)) = (v, w) {
                    self.dim(i, name, 0, v, w);
                }
                Ok(())
            }
            (TypeData::Shape { dims: x, ndim: n }, TypeData::Shape { dims: y, ndim: m }) => {
                if rank_fits(m, n).is_no() {
                    return Err(self.mismatch(i, name, param, arg));
                }
                self.dims(i, name, x.as_deref(), y.as_deref());
                Ok(())
            }
            (TypeData::Tensor { shape: x, dtype: d }, TypeData::Tensor { shape: y, dtype: e }) => {
                let rank = rank_fits(shape_rank(self.dst, &y), shape_rank(self.source(), &x));
                if rank.is_no() || d.zip(e).is_some_and(|(d, e)| d != e) {
                    return Err(self.mismatch(i, name, param, arg));
                }
                let (x, y) = (shape_dims(self.source(), &x), shape_dims(self.dst, &y));
                self.dims(i, name, x.as_deref(), y.as_deref());
                Ok(())
            }
            (TypeData::Tuple(x), TypeData::Tuple(y)) if x.len() == y.len() => {
                x.iter().zip(&y).try_for_each(|(&p, &a)| self.arg(i, name, p, a))
            }
            (
                TypeData::Callable { params: p, pure: must, .. },
                TypeData::Callable { params: q, pure, .. },
            ) if (pure || !must)
                && p.as_ref().zip(q.as_ref()).is_none_or(|(p, q)| p.len() == q.len()) =>
            {
                Ok(())
            }
            _ => Err(self.mismatch(i, name, param, arg)),
        }
    }

    fn dims(&mut self, i: usize, name: &str, param: Option<&[Sym]>, arg: Option<&[Sym]>) {
        let (Some(param), Some(arg)) = (param, arg) else { return };
        for (axis, (&p, &a)) in param.iter().zip(arg).enumerate() {
            self.dim(i, name, axis, p, a);
        }
    }

    /// If the parameter's dim is a symbol that is not bound yet, binds the symbol to the argument's dim. Otherwise, defers the
    /// comparison of the two dims.
    fn dim(&mut self, i: usize, name: &str, axis: usize, param: Sym, arg: Sym) {
        match self.source().syms.as_var(param) {
            Some(v) if !self.bound.contains_key(&v) => {
                self.bound.insert(v, arg);
            }
            _ => self.deferred.push((i, name.to_string(), axis, param, arg)),
        }
    }

    fn mismatch(&self, i: usize, name: &str, param: Type, arg: Type) -> InferError {
        let (want, have) = (type_text(self.source(), param), type_text(self.dst, arg));
        let argument = argument(i, name);
        InferError::new(format!(
            "{argument} has type {have}, which does not fit the parameter's type {want}"
        ))
    }
}

/// Describes an argument for messages, by its index and, if known, the name of its parameter.
fn argument(i: usize, name: &str) -> String {
    if name.is_empty() {
        format!("argument {i}")
    } else {
        format!("argument {i} (parameter '{name}')")
    }
}

/// The symbols of a type, without duplicates, in the order of the printed text.
pub fn type_syms(func: &Function, ty: Type) -> Vec<SymVar> {
    let mut out = Vec::new();
    visit_dims(func, ty, true, &mut |dim| {
        for v in func.syms.free_vars(dim) {
            if !out.contains(&v) {
                out.push(v);
            }
        }
    });
    out
}

/// The symbols that a value of this type defines: symbols that are a whole dim, or the value of a
/// scalar.
pub fn definable_syms(func: &Function, ty: Type) -> Vec<SymVar> {
    let mut out = Vec::new();
    visit_dims(func, ty, false, &mut |dim| {
        if let Some(v) = func.syms.as_var(dim)
            && !out.contains(&v)
        {
            out.push(v);
        }
    });
    out
}

/// The symbols that values of these types define together. A symbol is defined if it is a whole dim
/// or the value of a scalar. It is also defined if it is the only unknown symbol of a dim that is
/// linear in it, such as `n * 2`, `n + 1`, or `n * 4 + m` with known `m`. `known` returns whether a
/// symbol is already defined.
pub fn solvable_syms(func: &Function, tys: &[Type], known: &dyn Fn(SymVar) -> bool) -> Vec<SymVar> {
    let mut out = Vec::new();
    let mut patterns = Vec::new();
    for &ty in tys {
        for v in definable_syms(func, ty) {
            if !out.contains(&v) {
                out.push(v);
            }
        }
        visit_dims(func, ty, false, &mut |dim| match func.syms.kind(dim) {
            SymKind::Int(_) | SymKind::Var(_) => {}
            _ => patterns.push(dim),
        });
    }
    loop {
        let before = patterns.len();
        patterns.retain(|&dim| {
            let vars = func.syms.free_vars(dim);
            let mut unknown = vars.into_iter().filter(|v| !known(*v) && !out.contains(v));
            match (unknown.next(), unknown.next()) {
                (None, _) => false,
                (Some(v), None) if is_linear(func, dim, v) => {
                    out.push(v);
                    false
                }
                _ => true,
            }
        });
        if patterns.len() == before {
            return out;
        }
    }
}

/// Whether a term has the form `a * var + b`.
fn is_linear(func: &Function, term: Sym, var: SymVar) -> bool {
    let syms = &func.syms;
    match syms.kind(term) {
        SymKind::Var(v) => v == var,
        SymKind::Sum { .. } | SymKind::Product(_) => {
            let children = syms.children(term);
            let mut with_var = children.into_iter().filter(|&c| syms.contains_var(c, var));
            match (with_var.next(), with_var.next()) {
                // Sums do not contain sums and products do not contain products, so the recursion is shallow.
                (Some(child), None) => is_linear(func, child, var),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Calls `visit` with each dim and scalar value in a type. Parameter and result types of callables
/// are only visited if `in_callables` is true.
pub fn visit_dims(func: &Function, ty: Type, in_callables: bool, visit: &mut dyn FnMut(Sym)) {
    let mut stack = vec![ty];
    while let Some(ty) = stack.pop() {
        match func.types.get(ty) {
            TypeData::Prim { value: Some(v), .. } => visit(*v),
            TypeData::Shape { dims: Some(dims), .. }
            | TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => {
                dims.iter().for_each(|&d| visit(d));
            }
            TypeData::Tuple(fields) => stack.extend(fields.iter().rev()),
            TypeData::Callable { params, ret, .. } if in_callables => {
                stack.push(*ret);
                stack.extend(params.iter().flatten().rev());
            }
            _ => {}
        }
    }
}

//! The ends of sequences that compute the function's result.
//!
//! A `match_cast` of the result of an `If` moves into its branches. If the result of a call is
//! not known to have the function's result type, its sizes are derived from those of the
//! arguments and compared before the call. Nothing remains to be done after the call, so
//! recursive loops use no stack.

use pliant_ir::relax::type_lattice::{erase_to_well_defined, is_subtype, type_syms};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, TensorShape, Type, TypeData};
use pliant_ir::{Sym, SymVar};
use pliant_pass::PassError;
use rustc_hash::FxHashMap;

use super::lower::Lowering;
use super::matching::STORE;

/// The values of a callee's symbols at the call.
type Meaning = FxHashMap<SymVar, Sym>;

/// The position in a sequence that computes the function's result, and the required type.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// The index of the binding that computes it.
    pub value: usize,
    /// The index of a `match_cast` of it that defines nothing.
    pub cast: Option<usize>,
    pub want: Type,
}

impl Lowering<'_> {
    /// The end of a sequence whose binding `tail` is the function's result, which must have
    /// type `want`.
    pub fn end_of(
        &self,
        func: &mut Function,
        bindings: &[Binding],
        tail: usize,
        want: Type,
    ) -> End {
        let last = bindings[tail];
        let plain = End { value: tail, cast: None, want };
        let (Some(cast), Some(value)) = (last.cast.expand(), tail.checked_sub(1)) else {
            return plain;
        };
        let of_value =
            matches!(func.expr(last.value), ExprData::Var(v) if *v == bindings[value].var);
        let defined = |&v: &SymVar| self.heap.is_filled(func.syms.var(v));
        if of_value
            && bindings[value].cast.is_none()
            && type_syms(func, cast).iter().all(defined)
            && is_subtype(func, cast, want).is_yes()
        {
            return End { value, cast: Some(tail), want: cast };
        }
        plain
    }

    /// Inserts checks before the last binding of a sequence that its value has the required type.
    /// Returns whether it is checked there or in its branches.
    pub fn check_before(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        end: End,
        out: &mut Vec<Binding>,
    ) -> Result<bool, PassError> {
        match func.expr(binding.value) {
            _ if binding.cast.is_some() => Ok(false),
            ExprData::If { .. } => Ok(true),
            ExprData::Call { callee: Callee::Expr(callee), .. } => match func.expr(*callee) {
                ExprData::Global(_) => self.check_before_call(func, binding, end.want, out),
                _ => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Inserts checks before a call that its result has type `want`. Returns whether this is
    /// possible.
    fn check_before_call(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        want: Type,
        out: &mut Vec<Binding>,
    ) -> Result<bool, PassError> {
        let have = func.var(binding.var).ty;
        if is_subtype(func, have, want).is_yes() {
            return Ok(true);
        }
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = *func.expr(binding.value)
        else {
            return Ok(false);
        };
        let TypeData::Callable { params: Some(params), ret, .. } = func.ty(callee).clone() else {
            return Ok(false);
        };
        let args = func.list(args).to_vec();
        let mut unread = Vec::new();
        let mut meaning = Meaning::default();
        for (&param, &arg) in params.iter().zip(&args) {
            learn(func, param, arg, &mut meaning, &mut unread);
        }
        // The result's sizes, with a new symbol for each that must be read from an argument.
        let have = erase_to_well_defined(func, ret, &|v| meaning.get(&v).copied(), &|_| None);
        let mut pairs = Vec::new();
        if !sizes(func, have, want, &mut pairs) {
            return Ok(false);
        }
        self.read_sizes(func, unread, out);
        self.compare_sizes(func, pairs, out)?;
        Ok(true)
    }

    /// Defines symbols as dims of arguments.
    fn read_sizes(&mut self, func: &mut Function, unread: Vec<Unread>, out: &mut Vec<Binding>) {
        for Unread { value, rank, dim, symbol } in unread {
            let slot = i64::from(self.heap.slot(symbol));
            self.store_dim(func, value, rank, dim, (STORE, slot), out);
            self.heap.fill(&func.syms, symbol);
        }
    }

    /// Checks that sizes are equal.
    fn compare_sizes(
        &mut self,
        func: &mut Function,
        mut pairs: Vec<(Sym, Sym)>,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        pairs.retain(|(have, want)| have != want);
        if pairs.is_empty() {
            return Ok(());
        }
        let (have, want): (Vec<Sym>, Vec<Sym>) = pairs.into_iter().unzip();
        let computed = |s: &Sym| func.syms.as_int(*s).is_none() && func.syms.as_var(*s).is_none();
        let terms: Vec<Sym> = have.iter().copied().filter(computed).collect();
        self.compute(func, &terms, out)?;
        let value = func.shape(&have);
        let value = self.operand(func, value, out)?;
        let any = func.intern(TypeData::Shape { dims: None, ndim: Some(want.len() as u32) });
        let want = func.intern(TypeData::shape(want));
        self.match_value(func, value, any, want, "the result".into(), out)
    }
}

/// A dim of an argument that its type does not give.
struct Unread {
    value: Expr,
    rank: usize,
    dim: usize,
    symbol: Sym,
}

/// Derives the values of the symbols in a parameter's type from the argument.
fn learn(
    func: &mut Function,
    param: Type,
    arg: Expr,
    meaning: &mut Meaning,
    unread: &mut Vec<Unread>,
) {
    let wanted = match func.types.get(param) {
        TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => dims.to_vec(),
        TypeData::Shape { dims: Some(dims), .. } => dims.to_vec(),
        TypeData::Prim { value: Some(value), .. } => {
            if let (Some(v), TypeData::Prim { value: Some(given), .. }) =
                (func.syms.as_var(*value), func.ty(arg))
            {
                meaning.entry(v).or_insert(*given);
            }
            return;
        }
        _ => return,
    };
    let ty = func.expr_ty(arg);
    let given = func.types.get(ty).dims().map(<[Sym]>::to_vec);
    let fits = func.rank_of(ty) == Some(wanted.len() as u32);
    for (dim, wanted_dim) in wanted.iter().enumerate().filter(|_| fits) {
        let Some(v) = func.syms.as_var(*wanted_dim).filter(|v| !meaning.contains_key(v)) else {
            continue;
        };
        let size = match &given {
            Some(given) => given[dim],
            None => {
                let name = func.syms.name(v).to_string();
                let fresh = func.fresh_sym(&name);
                let symbol = func.syms.var(fresh);
                unread.push(Unread { value: arg, rank: wanted.len(), dim, symbol });
                symbol
            }
        };
        meaning.insert(v, size);
    }
}

/// Collects the sizes that must be equal for a value of type `have` to have type `want`. Returns
/// whether no other check is needed.
fn sizes(func: &Function, have: Type, want: Type, pairs: &mut Vec<(Sym, Sym)>) -> bool {
    let mut equal = |have: &[Sym], want: &[Sym]| {
        pairs.extend(have.iter().copied().zip(want.iter().copied()));
        have.len() == want.len()
    };
    match (func.types.get(have), func.types.get(want)) {
        (_, TypeData::Any) => true,
        (a, b) if a == b => true,
        (
            TypeData::Tensor { shape: TensorShape::Dims(a), dtype: d },
            TypeData::Tensor { shape: TensorShape::Dims(b), dtype: e },
        ) => (e.is_none() || d == e) && equal(a, b),
        (TypeData::Tensor { dtype: d, .. }, TypeData::Tensor { shape, dtype: e }) => {
            let rank = match shape {
                TensorShape::Unknown => true,
                TensorShape::Rank(rank) => func.rank_of(have) == Some(*rank),
                _ => false,
            };
            rank && (e.is_none() || d == e)
        }
        (TypeData::Shape { dims: Some(a), .. }, TypeData::Shape { dims: Some(b), .. }) => {
            equal(a, b)
        }
        (
            TypeData::Prim { dtype: d, value: Some(a) },
            TypeData::Prim { dtype: e, value: Some(b) },
        ) => d == e && equal(&[*a], &[*b]),
        (TypeData::Tuple(a), TypeData::Tuple(b)) if a.len() == b.len() => {
            let (a, b) = (a.to_vec(), b.to_vec());
            a.into_iter().zip(b).all(|(a, b)| sizes(func, a, b, pairs))
        }
        _ => false,
    }
}

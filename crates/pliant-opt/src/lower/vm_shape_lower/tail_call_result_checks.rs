//! Moves checks of a function's result in front of the call that computes it, so that this call remains a tail call.
//!
//! A `match_cast` of the result of an `If` moves into its branches. If the result of a call does not provably have the function's
//! result type, the sizes of the result are derived from the sizes of the arguments and compared before the call. No check
//! remains after the call, so loops written as recursion do not grow the stack.

use pliant_ir::relax::type_lattice::{erase_to_well_defined, is_subtype, type_syms};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, TensorShape, Type, TypeData};
use pliant_ir::{Sym, SymVar};
use pliant_pass::PassError;
use rustc_hash::FxHashMap;

use super::lower_function::FunctionLowering;
use super::type_checks::STORE;

/// Maps the symbols of a callee to symbolic sizes of the caller at a call.
type SymbolValues = FxHashMap<SymVar, Sym>;

/// The binding in a sequence that computes the function's result, and the type that the result must have.
#[derive(Clone, Copy)]
pub(super) struct ResultBinding {
    /// The index of the binding that computes the function's result.
    pub value: usize,
    /// The index of a `match_cast` of the result that defines no symbols, if there is one.
    pub cast: Option<usize>,
    /// The type that the function's result must have.
    pub expected: Type,
}

impl FunctionLowering<'_> {
    /// Determines which binding computes the function's result of type `expected`. This is the binding at index `tail`, unless it
    /// is a `match_cast` of the previous binding that defines no symbols. Then the previous binding computes the result.
    pub fn result_binding(
        &self,
        func: &mut Function,
        bindings: &[Binding],
        tail: usize,
        expected: Type,
    ) -> ResultBinding {
        let last = bindings[tail];
        let without_cast = ResultBinding { value: tail, cast: None, expected };
        let (Some(cast), Some(value)) = (last.cast.expand(), tail.checked_sub(1)) else {
            return without_cast;
        };
        let casts_previous =
            matches!(func.expr(last.value), ExprData::Var(v) if *v == bindings[value].var);
        let defined = |&v: &SymVar| self.heap.is_filled(func.syms.var(v));
        if casts_previous
            && bindings[value].cast.is_none()
            && type_syms(func, cast).iter().all(defined)
            && is_subtype(func, cast, expected).is_yes()
        {
            return ResultBinding { value, cast: Some(tail), expected: cast };
        }
        without_cast
    }

    /// Inserts checks before the binding of the result that ensure that its value has the required type. Returns
    /// whether these checks, or checks in the branches of an `If`, cover the whole result.
    pub fn check_before_result(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        result: ResultBinding,
        out: &mut Vec<Binding>,
    ) -> Result<bool, PassError> {
        match func.expr(binding.value) {
            _ if binding.cast.is_some() => Ok(false),
            ExprData::If { .. } => Ok(true),
            ExprData::Call { callee: Callee::Expr(callee), .. } => match func.expr(*callee) {
                ExprData::Global(_) => self.check_before_call(func, binding, result.expected, out),
                _ => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Inserts checks before a call that ensure that its result has type `expected`. Returns false if this is not possible.
    fn check_before_call(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        expected: Type,
        out: &mut Vec<Binding>,
    ) -> Result<bool, PassError> {
        let actual = func.var(binding.var).ty;
        if is_subtype(func, actual, expected).is_yes() {
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
        let mut unknown_dims = Vec::new();
        let mut values = SymbolValues::default();
        for (&param, &arg) in params.iter().zip(&args) {
            derive_symbols(func, param, arg, &mut values, &mut unknown_dims);
        }
        // The sizes of the result. Each size that must be read from an argument is a new symbol.
        let actual = erase_to_well_defined(func, ret, &|v| values.get(&v).copied(), &|_| None);
        let mut pairs = Vec::new();
        if !collect_equal_sizes(func, actual, expected, &mut pairs) {
            return Ok(false);
        }
        self.define_argument_dims(func, unknown_dims, out);
        self.check_equal_sizes(func, pairs, out)?;
        Ok(true)
    }

    /// Emits code that reads the dims in `unknown_dims` from the arguments at run time, and stores each dim in the heap slot of its
    /// symbol. The symbols then count as defined.
    fn define_argument_dims(
        &mut self,
        func: &mut Function,
        unknown_dims: Vec<UnknownDim>,
        out: &mut Vec<Binding>,
    ) {
        for UnknownDim { value, rank, dim, symbol } in unknown_dims {
            let slot = i64::from(self.heap.slot(symbol));
            self.store_dim(func, value, rank, dim, (STORE, slot), out);
            self.heap.mark_filled(&func.syms, symbol);
        }
    }

    /// Emits checks that the two sizes in each pair are equal.
    fn check_equal_sizes(
        &mut self,
        func: &mut Function,
        mut pairs: Vec<(Sym, Sym)>,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        pairs.retain(|(actual, expected)| actual != expected);
        if pairs.is_empty() {
            return Ok(());
        }
        let (actual, expected): (Vec<Sym>, Vec<Sym>) = pairs.into_iter().unzip();
        let computed = |s: &Sym| func.syms.as_int(*s).is_none() && func.syms.as_var(*s).is_none();
        let terms: Vec<Sym> = actual.iter().copied().filter(computed).collect();
        self.compute_terms(func, &terms, out)?;
        let value = func.shape(&actual);
        let value = self.lower_operand(func, value, out)?;
        let any = func.intern(TypeData::Shape { dims: None, ndim: Some(expected.len() as u32) });
        let expected = func.intern(TypeData::shape(expected));
        self.match_value(func, value, any, expected, "the result".into(), out)
    }
}

/// A dim of an argument that the argument's type does not determine.
struct UnknownDim {
    value: Expr,
    rank: usize,
    dim: usize,
    symbol: Sym,
}

/// Derives the values of the symbols in a parameter's type from the type of the argument. If the type does not determine a
/// symbol, appends the dim that must be read from the argument to `unknown_dims`.
fn derive_symbols(
    func: &mut Function,
    param: Type,
    arg: Expr,
    values: &mut SymbolValues,
    unknown_dims: &mut Vec<UnknownDim>,
) {
    let param_dims = match func.types.get(param) {
        TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => dims.to_vec(),
        TypeData::Shape { dims: Some(dims), .. } => dims.to_vec(),
        TypeData::Prim { value: Some(value), .. } => {
            if let (Some(v), TypeData::Prim { value: Some(known_dims), .. }) =
                (func.syms.as_var(*value), func.ty(arg))
            {
                values.entry(v).or_insert(*known_dims);
            }
            return;
        }
        _ => return,
    };
    let ty = func.expr_ty(arg);
    let known_dims = func.types.get(ty).dims().map(<[Sym]>::to_vec);
    let fits = func.rank_of(ty) == Some(param_dims.len() as u32);
    for (dim, param_dim) in param_dims.iter().enumerate().filter(|_| fits) {
        let Some(v) = func.syms.as_var(*param_dim).filter(|v| !values.contains_key(v)) else {
            continue;
        };
        let size = match &known_dims {
            Some(known_dims) => known_dims[dim],
            None => {
                let name = func.syms.name(v).to_string();
                let fresh = func.fresh_sym(&name);
                let symbol = func.syms.var(fresh);
                unknown_dims.push(UnknownDim { value: arg, rank: param_dims.len(), dim, symbol });
                symbol
            }
        };
        values.insert(v, size);
    }
}

/// Collects the pairs of sizes that must be equal for a value of type `actual` to have type `expected`. Returns false if checks
/// other than of sizes are also needed.
fn collect_equal_sizes(
    func: &Function,
    actual: Type,
    expected: Type,
    pairs: &mut Vec<(Sym, Sym)>,
) -> bool {
    let mut equal = |actual: &[Sym], expected: &[Sym]| {
        pairs.extend(actual.iter().copied().zip(expected.iter().copied()));
        actual.len() == expected.len()
    };
    match (func.types.get(actual), func.types.get(expected)) {
        (_, TypeData::Any) => true,
        (a, b) if a == b => true,
        (
            TypeData::Tensor { shape: TensorShape::Dims(a), dtype: d },
            TypeData::Tensor { shape: TensorShape::Dims(b), dtype: e },
        ) => (e.is_none() || d == e) && equal(a, b),
        (TypeData::Tensor { dtype: d, .. }, TypeData::Tensor { shape, dtype: e }) => {
            let rank = match shape {
                TensorShape::Unknown => true,
                TensorShape::Rank(rank) => func.rank_of(actual) == Some(*rank),
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
            a.into_iter().zip(b).all(|(a, b)| collect_equal_sizes(func, a, b, pairs))
        }
        _ => false,
    }
}

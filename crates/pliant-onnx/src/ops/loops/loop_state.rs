//! The state that a loop carries from iteration to iteration, and the `relax.while_loop` over this state.
//!
//! The state initially has the types of the initial values. If an iteration produces other types, the state's types are widened: a
//! dim that changes becomes a symbol that the body defines. Then the body is converted again. Values that are not tensors are
//! opaque objects, whose object types are widened in the same way.

use pliant_ir::Attrs;
use pliant_ir::op::WHILE_LOOP;
use pliant_ir::relax::type_lattice::{
    erase_to_well_defined, is_subtype, prove_dims_equal, type_syms,
};
use pliant_ir::relax::{Expr, TensorShape, Type, TypeData};
use pliant_sym::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph_import::identifier;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ExprResult, Node, infer_problem};
use crate::sequence_optional_types::{ObjectType, OuterSymbols};

/// A callback that emits the body of a loop. It receives the state before an iteration and returns
/// the state after it.
type LoopBody<'t> = &'t mut dyn FnMut(&mut Node<'_, '_>, &[Value]) -> Result<Vec<Value>, Problem>;

/// A callback that emits the condition of a loop. It receives the state and returns a bool: whether
/// there is another iteration.
pub(super) type LoopCondition<'t> = &'t mut dyn FnMut(&mut Node<'_, '_>, &[Value]) -> ExprResult;

/// The values that a loop passes from iteration to iteration, with their names and types.
pub(super) struct LoopState {
    names: Vec<String>,
    inits: Vec<Expr>,
    object_types: Vec<ObjectType>,
    types: Vec<Type>,
    /// The symbols that the loop body defines, as opposed to symbols of the enclosing function.
    body_symbols: FxHashSet<SymVar>,
    outer: OuterSymbols,
}

impl LoopState {
    /// Creates the state before the first iteration from named values.
    ///
    /// # Errors
    /// If a value is the result of a node that could not be converted.
    pub fn new(n: &mut Node<'_, '_>, first: Vec<(String, Value)>) -> Result<LoopState, Problem> {
        let count = first.len();
        let mut state = LoopState {
            names: Vec::with_capacity(count),
            inits: Vec::with_capacity(count),
            object_types: Vec::with_capacity(count),
            types: Vec::with_capacity(count),
            body_symbols: FxHashSet::default(),
            outer: OuterSymbols::current(&n.func().syms),
        };
        for (name, value) in first {
            let (e, object_type) = n.object_of_value(&value)?;
            let value_type = n.func().expr_ty(e);
            let ty =
                if is_tensor(&object_type) { value_type } else { n.func().intern(TypeData::Any) };
            state.names.push(name);
            state.inits.push(e);
            state.object_types.push(object_type);
            state.types.push(ty);
        }
        Ok(state)
    }

    /// Converts the parameters of the loop's body function or condition function to values of the loop state.
    fn to_values(&self, n: &mut Node<'_, '_>, params: &[Expr]) -> Result<Vec<Value>, Problem> {
        params
            .iter()
            .zip(&self.object_types)
            .map(|(&e, object_type)| n.value_of_object(e, object_type))
            .collect()
    }

    /// The types of the values in the loop state, in which each symbol that the loop body defines is replaced by a new symbol.
    fn with_fresh_symbols(&self, n: &mut Node<'_, '_>) -> Vec<Type> {
        let func = n.func();
        let mut map: FxHashMap<SymVar, Sym> = FxHashMap::default();
        for &ty in &self.types {
            for v in type_syms(func, ty) {
                if map.contains_key(&v) {
                    continue;
                }
                let v_new = if self.body_symbols.contains(&v) {
                    let name = func.syms.name(v).to_string();
                    func.fresh_sym(&name)
                } else {
                    v
                };
                let sym = func.syms.var(v_new);
                map.insert(v, sym);
            }
        }
        let sym = |v: SymVar| map.get(&v).copied();
        self.types.iter().map(|&ty| erase_to_well_defined(func, ty, &sym, &|v| Some(v))).collect()
    }

    /// Widens the types of the state so that they cover the results of an iteration. Returns whether a type changed.
    fn widen(
        &mut self,
        n: &mut Node<'_, '_>,
        results: &[Type],
        object_types: &[ObjectType],
    ) -> Result<bool, Problem> {
        let mut wider = false;
        for (i, (&result, after)) in results.iter().zip(object_types).enumerate() {
            let with_context = |p: Problem| Problem {
                message: format!("'{}' after an iteration: {}", self.names[i], p.message),
                ..p
            };
            let object_type = self.object_types[i].join(after).map_err(with_context)?;
            let object_type = object_type.erase_inner_symbols(&n.func().syms, self.outer);
            let ty = match is_tensor(&object_type) {
                true => self.widen_type(n, i, result),
                false => n.func().intern(TypeData::Any),
            };
            wider |= ty != self.types[i] || object_type != self.object_types[i];
            (self.types[i], self.object_types[i]) = (ty, object_type);
        }
        Ok(wider)
    }

    /// The type that covers both the current type of state value `i` and its type `result` after an
    /// iteration.
    fn widen_type(&mut self, n: &mut Node<'_, '_>, i: usize, result: Type) -> Type {
        let ty = self.types[i];
        if ty == result || is_subtype(n.func(), result, ty).is_yes() {
            return ty;
        }
        let types = &n.func().types;
        let (TypeData::Tensor { shape, dtype }, TypeData::Tensor { .. }) =
            (types.get(ty).clone(), types.get(result).clone())
        else {
            return n.func().intern(TypeData::Any);
        };
        let (rank, after) = (n.func().rank_of(ty), n.func().rank_of(result));
        let (TensorShape::Dims(dims), true) = (shape, rank == after) else {
            return n.func().intern(TypeData::Tensor { shape: TensorShape::Unknown, dtype });
        };
        let later = match n.func().types.get(result) {
            TypeData::Tensor { shape: TensorShape::Dims(later), .. } => {
                later.iter().copied().map(Some).collect()
            }
            _ => vec![None; dims.len()],
        };
        let mut wide = Vec::with_capacity(dims.len());
        for (&dim, later) in dims.iter().zip(later) {
            let func = n.func();
            let is_body_symbol =
                func.syms.as_var(dim).is_some_and(|v| self.body_symbols.contains(&v));
            let stays = later.is_some_and(|l| prove_dims_equal(func, dim, l).is_yes());
            wide.push(if is_body_symbol || stays {
                dim
            } else {
                let var = func.fresh_sym(&identifier(&self.names[i], "n"));
                self.body_symbols.insert(var);
                func.syms.var(var)
            });
        }
        n.func().intern(TypeData::Tensor { shape: TensorShape::Dims(wide.into()), dtype })
    }
}

fn is_tensor(object_type: &ObjectType) -> bool {
    matches!(object_type, ObjectType::Tensor { .. })
}

/// Emits a local function with parameters of the given types.
fn local_function(
    n: &mut Node<'_, '_>,
    names: &[String],
    types: &[Type],
    make: impl FnOnce(&mut Node<'_, '_>, &[Expr]) -> Result<Vec<Expr>, Problem>,
) -> ExprResult {
    n.importer.builder.begin_func();
    n.importer.open_block();
    let params: Vec<Expr> = names
        .iter()
        .zip(types)
        .map(|(name, &ty)| {
            let var = n.importer.builder.param(&identifier(name, "x"), ty);
            n.func().var_expr(var)
        })
        .collect();
    let outer_pure = n.importer.begin_nested_function();
    let result = make(n, &params);
    let pure = n.importer.end_nested_function(outer_pure);
    n.importer.close_block();
    // The function is ended even after an error, so that the builder stays consistent.
    let end = match result.as_deref() {
        Ok([one]) => *one,
        Ok(all) => n.func().tuple(all),
        Err(_) => n.func().tuple(&[]),
    };
    let func = n.importer.builder.end_func(end, None, pure);
    result.map(|_| func)
}

/// Converts the body to a local function, repeatedly, until the types of the state no longer change.
fn convert_until_stable(
    n: &mut Node<'_, '_>,
    state: &mut LoopState,
    body_fn: LoopBody<'_>,
) -> ExprResult {
    loop {
        let mark = n.importer.builder.mark_names();
        let mut object_types = Vec::new();
        let func = local_function(n, &state.names, &state.types, |n, params| {
            let values = state.to_values(n, params)?;
            let mut out = Vec::with_capacity(values.len());
            for value in body_fn(n, &values)? {
                let (e, object_type) = n.object_of_value(&value)?;
                out.push(e);
                object_types.push(object_type);
            }
            Ok(out)
        })?;
        let results = result_types(n, func, state.types.len())?;
        if !state.widen(n, &results, &object_types)? {
            return Ok(func);
        }
        n.importer.builder.release_names(mark);
    }
}

/// Emits a loop, `while condition(state): state = body(state)`, and returns its final state.
pub(super) fn while_loop(
    n: &mut Node<'_, '_>,
    mut state: LoopState,
    condition: LoopCondition<'_>,
    body_fn: LoopBody<'_>,
) -> Result<Vec<Value>, Problem> {
    let body = convert_until_stable(n, &mut state, body_fn)?;
    let types = state.with_fresh_symbols(n);
    let cond = local_function(n, &state.names, &types, |n, params| {
        let values = state.to_values(n, params)?;
        Ok(vec![condition(n, &values)?])
    })?;
    let mut operands = Vec::with_capacity(state.inits.len() + 2);
    for (func, hint) in [(cond, "cond"), (body, "body")] {
        let var = n.importer.builder.emit_named(func, hint);
        operands.push(n.func().var_expr(var));
    }
    operands.extend(&state.inits);
    let call = n
        .importer
        .builder
        .call_op(WHILE_LOOP, &operands, Attrs::default(), &[])
        .map_err(infer_problem)?;
    let last = n.importer.bind(call, n.proto);
    let fields = match state.inits.len() {
        1 => vec![last],
        count => n.tuple_fields(last, count),
    };
    state.to_values(n, &fields)
}

/// The types of the state values after an iteration: the result types of the body function.
fn result_types(n: &mut Node<'_, '_>, func: Expr, count: usize) -> Result<Vec<Type>, Problem> {
    let ret = match n.func().ty(func) {
        TypeData::Callable { ret, .. } => *ret,
        _ => {
            return Err(Problem::internal(
                "the converter of loops",
                "the converted loop body is not a function",
            ));
        }
    };
    match n.func().types.get(ret) {
        _ if count == 1 => Ok(vec![ret]),
        TypeData::Tuple(fields) if fields.len() == count => Ok(fields.to_vec()),
        _ => Err(Problem::invalid(format!(
            "the loop body must return its {count} loop-carried values, but returns a different number of values"
        ))),
    }
}

//! `Loop` and `Scan`: a body of its own graph, turn by turn, as `relax.while_loop` over what it carries.
//!
//! The state's types are those of the first values, widened where a turn gives something else: a dim that changes becomes
//! a symbol of the body's own, and the body is read again. What turns collect grows as one flat vector beside the shape of
//! the last part, so that parts may have any shape.

use pliant_ir::op::WHILE_LOOP;
use pliant_ir::relax::derive::{erase_to_well_defined, is_subtype, prove_dims_equal, type_syms};
use pliant_ir::relax::{Expr, TensorShape, Type, TypeData};
use pliant_ir::{Attrs, DType};
use pliant_sym::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::graph::identifier;
use crate::node::{Converted, Node, problem};
use crate::proto::GraphProto;
use crate::value::Value;

pub(super) static OPS: &[OnnxOp] = &[op("Loop", repeat), op("Scan", scan)];

type Made = Result<Expr, Problem>;

/// What a loop carries from turn to turn.
struct State {
    names: Vec<String>,
    inits: Vec<Expr>,
    types: Vec<Type>,
    /// Symbols of the body's own.
    own: FxHashSet<SymVar>,
}

impl State {
    fn new(n: &mut Node<'_, '_>, first: Vec<(String, Expr)>) -> State {
        let (names, inits): (Vec<String>, Vec<Expr>) = first.into_iter().unzip();
        let types = inits.iter().map(|&e| n.func().expr_ty(e)).collect();
        State { names, inits, types, own: FxHashSet::default() }
    }

    /// The types with other symbols for the body's own.
    fn renamed(&self, n: &mut Node<'_, '_>) -> Vec<Type> {
        let func = n.func();
        let mut map: FxHashMap<SymVar, Sym> = FxHashMap::default();
        for &ty in &self.types {
            for v in type_syms(func, ty) {
                if map.contains_key(&v) {
                    continue;
                }
                let v_new = if self.own.contains(&v) {
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

    /// The type that holds `ty` and, after a turn, `result`.
    fn widen(&mut self, n: &mut Node<'_, '_>, i: usize, result: Type) -> Result<Type, Problem> {
        let ty = self.types[i];
        if ty == result || is_subtype(n.func(), result, ty).is_yes() {
            return Ok(ty);
        }
        let types = &n.func().types;
        let (TypeData::Tensor { shape, dtype }, TypeData::Tensor { dtype: other, .. }) =
            (types.get(ty).clone(), types.get(result).clone())
        else {
            return Ok(n.func().intern(TypeData::Any));
        };
        if dtype != other {
            return Err(Problem::invalid(format!(
                "'{}' has another element type after a turn",
                self.names[i]
            )));
        }
        let (rank, after) = (n.func().rank_of(ty), n.func().rank_of(result));
        let (TensorShape::Dims(dims), true) = (shape, rank == after) else {
            return Ok(n.func().intern(TypeData::Tensor { shape: TensorShape::Unknown, dtype }));
        };
        let later = match types_dims(n, result) {
            Some(later) => later.into_iter().map(Some).collect(),
            None => vec![None; dims.len()],
        };
        let mut wide = Vec::with_capacity(dims.len());
        for (&dim, later) in dims.iter().zip(later) {
            let func = n.func();
            let own = func.syms.as_var(dim).is_some_and(|v| self.own.contains(&v));
            let stays = later.is_some_and(|l| prove_dims_equal(func, dim, l).is_yes());
            wide.push(if own || stays {
                dim
            } else {
                let var = func.fresh_sym(&identifier(&self.names[i], "n"));
                self.own.insert(var);
                func.syms.var(var)
            });
        }
        Ok(n.func().intern(TypeData::Tensor { shape: TensorShape::Dims(wide.into()), dtype }))
    }
}

fn types_dims(n: &mut Node<'_, '_>, ty: Type) -> Option<Vec<Sym>> {
    match n.func().types.get(ty) {
        TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => Some(dims.to_vec()),
        _ => None,
    }
}

/// A local function over parameters of those types.
fn function(n: &mut Node<'_, '_>, names: &[String], types: &[Type], make: Turn<'_>) -> Made {
    n.im.builder.begin_func();
    let params: Vec<Expr> = names
        .iter()
        .zip(types)
        .map(|(name, &ty)| {
            let var = n.im.builder.param(&identifier(name, "x"), ty);
            n.func().var_expr(var)
        })
        .collect();
    let result = make(n, &params);
    // The function is closed in any case, so that the builder stays balanced.
    let end = match result.as_deref() {
        Ok([one]) => *one,
        Ok(all) => n.func().tuple(all),
        Err(_) => n.func().tuple(&[]),
    };
    let func = n.im.builder.end_func(end, None, true);
    result.map(|_| func)
}

/// Makes the state after a turn.
type Turn<'t> = &'t mut dyn FnMut(&mut Node<'_, '_>, &[Expr]) -> Result<Vec<Expr>, Problem>;

/// Makes the state after a turn, and the parts that the turn collects.
type Collecting<'t> =
    &'t mut dyn FnMut(&mut Node<'_, '_>, &[Expr]) -> Result<(Vec<Expr>, Vec<Expr>), Problem>;

/// The body as a function, read until the state's types hold from turn to turn.
fn fixed(n: &mut Node<'_, '_>, state: &mut State, turn: Turn<'_>) -> Made {
    loop {
        let mark = n.im.builder.mark_names();
        let func = function(n, &state.names, &state.types, turn)?;
        let results = results(n, func, state.types.len())?;
        let mut wider = Vec::with_capacity(results.len());
        for (i, result) in results.into_iter().enumerate() {
            wider.push(state.widen(n, i, result)?);
        }
        if wider == state.types {
            return Ok(func);
        }
        state.types = wider;
        n.im.builder.give_back_names(mark);
    }
}

/// The last state of `while goes_on(state): state = turn(state)`.
fn while_loop(
    n: &mut Node<'_, '_>,
    mut state: State,
    goes_on: &mut dyn FnMut(&mut Node<'_, '_>, &[Expr]) -> Made,
    turn: Turn<'_>,
) -> Result<Vec<Expr>, Problem> {
    let body = fixed(n, &mut state, turn)?;
    let types = state.renamed(n);
    let cond = function(n, &state.names, &types, &mut |n, params| Ok(vec![goes_on(n, params)?]))?;
    let mut operands = Vec::with_capacity(state.inits.len() + 2);
    for (func, hint) in [(cond, "cond"), (body, "body")] {
        let var = n.im.builder.emit_named(func, hint);
        operands.push(n.func().var_expr(var));
    }
    operands.extend(&state.inits);
    let call =
        n.im.builder.call_op(WHILE_LOOP, &operands, Attrs::default(), &[]).map_err(problem)?;
    let last = n.im.bind(call, n.proto);
    Ok(match state.inits.len() {
        1 => vec![last],
        count => n.fields(last, count),
    })
}

/// The types of the state after a turn.
fn results(n: &mut Node<'_, '_>, func: Expr, count: usize) -> Result<Vec<Type>, Problem> {
    let ret = match n.func().ty(func) {
        TypeData::Callable { ret, .. } => *ret,
        _ => return Err(Problem::invalid("its body is no function")),
    };
    match n.func().types.get(ret) {
        _ if count == 1 => Ok(vec![ret]),
        TypeData::Tuple(fields) if fields.len() == count => Ok(fields.to_vec()),
        _ => Err(Problem::invalid("its body returns another number of values than it takes")),
    }
}

// ---- the body ----

/// The body's outputs over values for its inputs.
pub(super) fn body(
    n: &mut Node<'_, '_>,
    graph: &GraphProto,
    inputs: Vec<Value>,
) -> Result<Vec<Value>, Problem> {
    if graph.input.len() != inputs.len() {
        return Err(Problem::invalid(format!(
            "its body takes {} inputs, but {} are given",
            graph.input.len(),
            inputs.len()
        )));
    }
    let before = n.im.problem_count();
    n.im.enter();
    for (info, value) in graph.input.iter().zip(inputs) {
        n.im.define(info.name(), value);
    }
    let outputs = n.im.graph_outputs(graph);
    n.im.leave();
    // What went wrong inside is reported there.
    if n.im.problem_count() > before { Err(Problem::invalid("")) } else { outputs }
}

// ---- what turns collect ----

/// A scan output: the parts so far in one vector, and the shape of the last.
pub(super) struct Parts {
    name: String,
    dtype: DType,
    /// The dims of a part, where they are known outside of the body.
    dims: Vec<Option<Sym>>,
}

impl Parts {
    /// What is known of a part from the type that one turn gives it.
    fn of(
        n: &mut Node<'_, '_>,
        name: &str,
        part: Expr,
        outside: &FxHashSet<SymVar>,
    ) -> Result<Parts, Problem> {
        let (dims, dtype) = (n.dims(part)?, n.dtype(part)?);
        let known = |n: &mut Node<'_, '_>, dim: Sym| {
            n.func().syms.free_vars(dim).iter().all(|v| outside.contains(v)).then_some(dim)
        };
        let dims = dims.into_iter().map(|d| known(n, d)).collect();
        Ok(Parts { name: name.into(), dtype, dims })
    }

    fn first(&self, n: &mut Node<'_, '_>) -> Result<[(String, Expr); 2], Problem> {
        let zero = n.func().syms.int(0);
        let value = n.number(0.0, self.dtype)?;
        let empty = n.full(&[zero], value)?;
        let sizes: Vec<Sym> = self.dims.iter().map(|d| d.unwrap_or(zero)).collect();
        let sizes = n.sizes(&sizes)?;
        Ok([(format!("{}_parts", self.name), empty), (format!("{}_dims", self.name), sizes)])
    }

    fn append(&self, n: &mut Node<'_, '_>, so_far: Expr, part: Expr) -> Result<[Expr; 2], Problem> {
        let dims = n.dims(part)?;
        let count = n.func().syms.product(dims.iter().copied());
        let flat = n.reshape(part, &[count])?;
        Ok([n.concat(&[so_far, flat], 0)?, n.sizes(&dims)?])
    }

    /// All parts along a new first axis.
    pub fn stacked(&self, n: &mut Node<'_, '_>, parts: Expr, sizes: Expr, turns: Sym) -> Made {
        let mut dims = vec![turns];
        if self.dims.iter().any(Option::is_none) {
            let run = n.symbols_of(sizes, self.dims.len())?;
            dims.extend(self.dims.iter().zip(run).map(|(known, run)| known.unwrap_or(run)));
        } else {
            dims.extend(self.dims.iter().flatten());
        }
        n.reshape(parts, &dims)
    }
}

/// The symbols that there are before a loop.
fn outside(n: &mut Node<'_, '_>) -> FxHashSet<SymVar> {
    n.func().syms.vars().collect()
}

/// Reads the body to see what it collects; nothing of that reading stays.
fn collected(
    n: &mut Node<'_, '_>,
    mut state: State,
    names: &[&str],
    turn: Collecting<'_>,
) -> Result<Vec<Parts>, Problem> {
    let known = outside(n);
    let mark = n.im.builder.mark_names();
    let mut parts = Vec::new();
    fixed(n, &mut state, &mut |n, params| {
        let (next, collected) = turn(n, params)?;
        parts.clear();
        for (name, part) in names.iter().zip(collected) {
            parts.push(Parts::of(n, name, part, &known)?);
        }
        Ok(next)
    })?;
    n.im.builder.give_back_names(mark);
    Ok(parts)
}

// ---- Loop ----

fn repeat(n: &mut Node<'_, '_>) -> Converted {
    let graph = n.attrs().graph("body")?;
    let carried = graph.input.len().saturating_sub(2);
    if n.len() < 2 || n.len() != carried + 2 || graph.output.len() <= carried {
        return Err(Problem::invalid("its body does not fit what it carries"));
    }
    let most = match n.optional(0)? {
        Some(most) => {
            let most = n.scalar_of(most)?;
            Some(n.cast(most, DType::Int64)?)
        }
        None => None,
    };
    let goes_on = match n.optional(1)? {
        Some(cond) => n.scalar_of(cond)?,
        None => n.scalar(true)?,
    };
    let mut first = vec![("i".to_owned(), n.scalar(0i64)?), ("goes_on".to_owned(), goes_on)];
    for i in 0..carried {
        first.push((graph.input[i + 2].name().into(), n.tensor(i + 2)?));
    }
    let mut turn = |n: &mut Node<'_, '_>, params: &[Expr]| {
        let inputs = params[..carried + 2].iter().map(|&p| Value::Expr(p)).collect();
        let outputs = body(n, graph, inputs)?;
        let mut values = Vec::with_capacity(outputs.len());
        for value in &outputs {
            values.push(n.materialize(value)?);
        }
        let one = n.scalar(1i64)?;
        let mut next = vec![n.op("relax.add", &[params[0], one])?, n.scalar_of(values[0])?];
        next.extend(&values[1..=carried]);
        Ok((next, values[carried + 1..].to_vec()))
    };
    let names: Vec<&str> = graph.output[carried + 1..].iter().map(|o| o.name()).collect();
    let mut goes_on = |n: &mut Node<'_, '_>, params: &[Expr]| match most {
        Some(most) => {
            let below = n.op("relax.less", &[params[0], most])?;
            n.op("relax.logical_and", &[below, params[1]])
        }
        None => Ok(params[1]),
    };
    let last = run(n, first, carried + 2, &names, &mut goes_on, &mut turn)?;
    let mut outputs: Vec<Value> = last.state[2..].iter().map(|&e| e.into()).collect();
    if !last.parts.is_empty() {
        let one = n.func().syms.int(1);
        let turns = n.reshape(last.state[0], &[one])?;
        let turns = n.symbols_of(turns, 1)?[0];
        for (parts, (all, dims)) in last.parts {
            outputs.push(parts.stacked(n, all, dims, turns)?.into());
        }
    }
    Ok(outputs)
}

/// The last state of a loop, and what it collected.
pub(super) struct Last {
    pub state: Vec<Expr>,
    pub parts: Vec<(Parts, (Expr, Expr))>,
}

/// Runs a loop whose turns give the next state and a part for each of `names`.
pub(super) fn run(
    n: &mut Node<'_, '_>,
    first: Vec<(String, Expr)>,
    carried: usize,
    names: &[&str],
    goes_on: &mut dyn FnMut(&mut Node<'_, '_>, &[Expr]) -> Made,
    turn: Collecting<'_>,
) -> Result<Last, Problem> {
    let mut first = first;
    let mut parts = Vec::new();
    if !names.is_empty() {
        let state = State::new(n, first.clone());
        parts = collected(n, state, names, turn)?;
        for part in &parts {
            first.extend(part.first(n)?);
        }
    }
    let state = State::new(n, first);
    let all = while_loop(n, state, goes_on, &mut |n, params| {
        let (mut next, new) = turn(n, params)?;
        for (k, (part, new)) in parts.iter().zip(new).enumerate() {
            next.extend(part.append(n, params[carried + 2 * k], new)?);
        }
        Ok(next)
    })?;
    let (state, rest) = all.split_at(carried);
    let parts = parts.into_iter().zip(rest.chunks(2).map(|c| (c[0], c[1]))).collect();
    Ok(Last { state: state.to_vec(), parts })
}

// ---- Scan ----

fn scan(n: &mut Node<'_, '_>) -> Converted {
    if n.opset < 9 {
        return Err(Problem::unsupported("Scan of opset 8 (with a batch)")
            .with_help("convert the model to opset 9 or newer"));
    }
    let graph = n.attrs().graph("body")?;
    let count = n.attrs().int("num_scan_inputs")?.unwrap_or(0);
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 || n.len() < count || graph.input.len() != n.len() {
        return Err(Problem::invalid("attribute 'num_scan_inputs' does not fit its inputs"));
    }
    let carried = n.len() - count;
    if graph.output.len() < carried {
        return Err(Problem::invalid("its body does not return what it carries"));
    }
    let list = |n: &Node<'_, '_>, name: &str, len: usize| -> Result<Vec<i64>, Problem> {
        let list = n.attrs().ints(name)?.map_or_else(|| vec![0; len], <[i64]>::to_vec);
        if list.len() == len {
            Ok(list)
        } else {
            Err(Problem::invalid(format!("'{name}' must have {len} numbers")))
        }
    };
    let (axes, back) =
        (list(n, "scan_input_axes", count)?, list(n, "scan_input_directions", count)?);
    let mut scanned = Vec::with_capacity(count);
    for (k, &axis) in axes.iter().enumerate() {
        let x = n.tensor(carried + k)?;
        let rank = n.rank(x)?;
        scanned.push((x, n.axis(axis, rank)?));
    }
    let turns = n.dims(scanned[0].0)?[scanned[0].1];
    let mut first = vec![("i".to_owned(), n.scalar(0i64)?)];
    for (i, input) in graph.input[..carried].iter().enumerate() {
        first.push((input.name().into(), n.tensor(i)?));
    }
    let mut turn = |n: &mut Node<'_, '_>, params: &[Expr]| {
        let mut inputs: Vec<Value> = params[1..=carried].iter().map(|&p| p.into()).collect();
        for (&(x, axis), &back) in scanned.iter().zip(&back) {
            let mut at = params[0];
            if back != 0 {
                let one = n.func().syms.int(1);
                let last = n.func().syms.sub(turns, one);
                let last = n.size(last)?;
                at = n.op("relax.subtract", &[last, at])?;
            }
            inputs.push(n.take(x, at, axis)?.into());
        }
        let outputs = body(n, graph, inputs)?;
        let mut values = Vec::with_capacity(outputs.len());
        for value in &outputs {
            values.push(n.materialize(value)?);
        }
        let one = n.scalar(1i64)?;
        let mut next = vec![n.op("relax.add", &[params[0], one])?];
        next.extend(&values[..carried]);
        Ok((next, values[carried..].to_vec()))
    };
    let most = n.size(turns)?;
    let mut goes_on =
        |n: &mut Node<'_, '_>, params: &[Expr]| n.op("relax.less", &[params[0], most]);
    let names: Vec<&str> = graph.output[carried..].iter().map(|o| o.name()).collect();
    let last = run(n, first, carried + 1, &names, &mut goes_on, &mut turn)?;
    let mut outputs: Vec<Value> = last.state[1..].iter().map(|&e| e.into()).collect();
    let (axes, back) = (
        list(n, "scan_output_axes", names.len())?,
        list(n, "scan_output_directions", names.len())?,
    );
    for (k, (parts, (all, dims))) in last.parts.into_iter().enumerate() {
        let mut y = parts.stacked(n, all, dims, turns)?;
        if back[k] != 0 {
            y = n.op_with("relax.flip", &[y], crate::node::ints_attr("axis", 0))?;
        }
        let rank = n.rank(y)?;
        let axis = n.axis(axes[k], rank)?;
        let mut order: Vec<usize> = (1..rank).collect();
        order.insert(axis, 0);
        outputs.push(n.permute(y, &order)?.into());
    }
    Ok(outputs)
}

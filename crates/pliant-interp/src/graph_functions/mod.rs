//! Runs graph functions.
//!
//! | file | contains |
//! |---|---|
//! | `mod` | frames, sequences, bindings, branches and local functions |
//! | `operands` | operands: leaves, tuples, sizes |
//! | `calls` | calls: operators with a special meaning, packed and global functions, destination-passing calls |
//! | `operator_calls` | all other operators: they run as loop functions for concrete shapes |
//! | `match_types` | checks of values against types, definitions of symbols |

mod calls;
mod match_types;
mod operands;
mod operator_calls;

use std::sync::Arc;

use pliant_ir::SymVar;
use pliant_ir::op::WHILE_LOOP;
use pliant_ir::relax::visit::{free_vars, func_run};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, FuncId, Function, Seq, Var};
use rustc_hash::FxHashMap;

use crate::interp_error::Result;
use crate::interpreter::Interpreter;
use crate::runtime_values::{Closure, ClosureGroup, plural};
use crate::{InterpError, Value};

/// The state of one call of a graph function: its variables and symbols.
pub(crate) struct Frame {
    func: Arc<Function>,
    name: Arc<str>,
    vars: FxHashMap<Var, Value>,
    syms: FxHashMap<SymVar, i64>,
    /// A description of the size that defined each symbol, as in `'x' dim 0`.
    origins: FxHashMap<SymVar, String>,
    /// Whether the module contains in-place calls. If it does, every evaluation of a constant returns a copy, which may be
    /// overwritten.
    in_place: bool,
}

/// Calls a graph function of the module.
pub(crate) fn call_function(
    interp: &mut Interpreter<'_>,
    name: &Arc<str>,
    func: &Arc<Function>,
    args: &[Value],
) -> Result<Value> {
    let frame = Frame {
        func: func.clone(),
        name: name.clone(),
        vars: FxHashMap::default(),
        syms: FxHashMap::default(),
        origins: FxHashMap::default(),
        in_place: interp.in_place,
    };
    frame.enter(interp, func.root(), args)
}

/// Calls a local function with its captured values.
pub(crate) fn call_closure(
    interp: &mut Interpreter<'_>,
    closure: &Arc<Closure>,
    args: &[Value],
) -> Result<Value> {
    let group = &closure.group;
    let mut vars: FxHashMap<Var, Value> = group.captured.iter().cloned().collect();
    vars.extend(group.closures());
    let frame = Frame {
        func: group.func.clone(),
        name: closure.name.clone(),
        vars,
        syms: group.syms.clone(),
        origins: FxHashMap::default(),
        in_place: interp.in_place,
    };
    frame.enter(interp, closure.id, args)
}

impl Frame {
    /// Binds the arguments of a call, runs the function's body and checks the result.
    fn enter(mut self, interp: &mut Interpreter<'_>, id: FuncId, args: &[Value]) -> Result<Value> {
        let func = self.func.clone();
        let data = func.func(id);
        if data.params.len() != args.len() {
            let (want, have) = (plural(data.params.len() as i64, "argument"), args.len());
            let text = format!("{} takes {want}, but {have} were given", self.name);
            return Err(InterpError::type_error(text));
        }
        self.vars.extend(data.params.iter().copied().zip(args.iter().cloned()));
        let label = |(i, &param)| match id == func.root() {
            true => format!("'{}'", func.param_label(i)),
            false => format!("'{}'", func.var(param).name),
        };
        let subjects: Vec<String> = data.params.iter().enumerate().map(label).collect();
        let items: Vec<_> = data
            .params
            .iter()
            .zip(args)
            .zip(&subjects)
            .map(|((&p, value), subject)| (func.var(p).ty, value, subject.as_str()))
            .collect();
        self.define(&items)?;
        let result = self.seq(interp, data.body)?;
        if interp.options.check_types {
            self.check(data.ret_ty, &result, "the result")?;
        }
        Ok(result)
    }

    /// Runs the bindings of a sequence, and returns its result.
    fn seq(&mut self, interp: &mut Interpreter<'_>, seq: Seq) -> Result<Value> {
        interp.check_stack()?;
        let func = self.func.clone();
        let data = func.seq(seq);
        for &block in &data.blocks {
            let bindings = &func.block(block).bindings;
            for (i, binding) in bindings.iter().enumerate() {
                interp.step(1)?;
                if matches!(func.expr(binding.value), ExprData::Func(_)) {
                    self.define_functions(func_run(&func, bindings, i));
                    continue;
                }
                self.binding(interp, binding).map_err(|e| {
                    // An error in a nested binding already has the innermost source location.
                    if e.has_source_location() && has_nested_bindings(&func, binding.value) {
                        return e;
                    }
                    let var = func.var(binding.var);
                    e.at_span(var.span, || format!("'{}' in {}", var.name, self.name))
                })?;
            }
        }
        self.value(data.result)
    }

    fn binding(&mut self, interp: &mut Interpreter<'_>, binding: &Binding) -> Result<()> {
        let func = self.func.clone();
        if let Some(cast) = binding.cast.expand() {
            let value = self.value(binding.value)?;
            let subject = match func.expr(binding.value) {
                ExprData::Var(v) => format!("match_cast of '{}'", func.var(*v).name),
                _ => "match_cast".to_string(),
            };
            self.define(&[(cast, &value, &subject)])?;
            self.vars.insert(binding.var, value);
            return Ok(());
        }
        let value = self.bound_value(interp, binding.value)?;
        if interp.options.check_types {
            let var = func.var(binding.var);
            self.check(var.ty, &value, &format!("'{}'", var.name))?;
        }
        self.vars.insert(binding.var, value);
        Ok(())
    }

    /// Evaluates an expression that is bound to a variable.
    fn bound_value(&mut self, interp: &mut Interpreter<'_>, e: Expr) -> Result<Value> {
        let func = self.func.clone();
        match func.expr(e) {
            ExprData::Call { callee, args, attrs, ty_args } => {
                let call = calls::Call {
                    expr: e,
                    callee: *callee,
                    args: func.list(*args),
                    attrs: func.call_attrs(*attrs),
                    ty_args: func.type_list(*ty_args),
                };
                self.call(interp, &call)
            }
            ExprData::If { cond, then_seq, else_seq } => {
                let cond = self.value(*cond)?;
                let taken = if crate::builtins::condition(&cond)? { *then_seq } else { *else_seq };
                self.branch(interp, taken)
            }
            _ => self.value(e),
        }
    }

    /// Runs a branch of an `if`, and removes the symbols that it defined.
    fn branch(&mut self, interp: &mut Interpreter<'_>, seq: Seq) -> Result<Value> {
        let syms = self.syms.clone();
        let result = self.seq(interp, seq);
        self.syms = syms;
        result
    }

    /// Creates the closures of a group of mutually recursive local functions.
    fn define_functions(&mut self, run: &[Binding]) {
        let func = self.func.clone();
        let mut members = Vec::with_capacity(run.len());
        let mut captured: FxHashMap<Var, Value> = FxHashMap::default();
        for binding in run {
            let ExprData::Func(id) = *func.expr(binding.value) else { continue };
            members.push((binding.var, id));
            for v in free_vars(&func, id) {
                if let Some(value) = self.vars.get(&v) {
                    captured.insert(v, value.clone());
                }
            }
        }
        // A member may have a value from an earlier execution of its binding, which must not be captured.
        for (var, _) in &members {
            captured.remove(var);
        }
        let captured = captured.into_iter().collect();
        let syms = self.syms.clone();
        let group = Arc::new(ClosureGroup { func, members, captured, syms });
        self.vars.extend(group.closures());
    }

    /// Marks the variable `e` as killed: from now on, reading it is an error.
    fn kill(&mut self, e: Expr) {
        if let ExprData::Var(v) = *self.func.expr(e) {
            self.vars.remove(&v);
        }
    }
}

/// Whether a value is computed by nested bindings, which are in the branches of an `if` or in the
/// functions of a `while_loop`.
fn has_nested_bindings(func: &Function, value: Expr) -> bool {
    match func.expr(value) {
        ExprData::If { .. } => true,
        ExprData::Call { callee: Callee::Op(op), .. } => *op == WHILE_LOOP,
        _ => false,
    }
}

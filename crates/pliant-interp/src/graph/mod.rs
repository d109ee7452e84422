//! Graph functions: frames, sequences and bindings.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | calling a function, its bindings, branches and local functions |
//! | `expr` | operands: leaves, tuples, sizes |
//! | `call` | calls: operators by name, packed and global functions, destination-passing calls |
//! | `ops` | operators through their loop forms at concrete shapes |
//! | `matching` | values against types, the definition of symbols |

mod call;
mod expr;
mod matching;
mod ops;

use std::sync::Arc;

use pliant_ir::SymVar;
use pliant_ir::relax::visit::free_vars;
use pliant_ir::relax::{Binding, Expr, ExprData, FuncId, Function, Seq, Var};
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::machine::Machine;
use crate::value::{Closure, Func, plural};
use crate::{InterpError, Value};

/// One call of a graph function: its variables and symbols.
pub(crate) struct Frame {
    func: Arc<Function>,
    name: Arc<str>,
    vars: FxHashMap<Var, Value>,
    syms: FxHashMap<SymVar, i64>,
    /// Where symbols were defined, in words.
    origins: FxHashMap<SymVar, String>,
}

/// Calls a function of the module.
pub(crate) fn call_function(
    m: &mut Machine<'_>,
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
    };
    frame.enter(m, func.root(), args)
}

/// Calls a local function.
pub(crate) fn call_closure(
    m: &mut Machine<'_>,
    closure: &Arc<Closure>,
    args: &[Value],
) -> Result<Value> {
    let mut vars: FxHashMap<Var, Value> = closure.captured.iter().cloned().collect();
    if let Some(own) = closure.own {
        vars.insert(own, Value::Func(Func::Closure(closure.clone())));
    }
    let frame = Frame {
        func: closure.func.clone(),
        name: closure.name.clone(),
        vars,
        syms: closure.syms.clone(),
        origins: FxHashMap::default(),
    };
    frame.enter(m, closure.id, args)
}

impl Frame {
    /// Binds the arguments, runs the body and checks the result.
    fn enter(mut self, m: &mut Machine<'_>, id: FuncId, args: &[Value]) -> Result<Value> {
        let func = self.func.clone();
        let data = func.func(id);
        if data.params.len() != args.len() {
            let (want, given) = (plural(data.params.len() as i64, "argument"), args.len());
            let text = format!("{} takes {want}, but {given} were given", self.name);
            return Err(InterpError::type_error(text));
        }
        self.vars.extend(data.params.iter().copied().zip(args.iter().cloned()));
        let subjects: Vec<String> =
            data.params.iter().map(|&p| format!("'{}'", func.var(p).name)).collect();
        let jobs: Vec<_> = data
            .params
            .iter()
            .zip(args)
            .zip(&subjects)
            .map(|((&p, value), subject)| (func.var(p).ty, value, subject.as_str()))
            .collect();
        self.define(&jobs)?;
        let result = self.seq(m, data.body)?;
        if m.options.check_types {
            self.check(data.ret_ty, &result, "the result")?;
        }
        Ok(result)
    }

    /// Runs a sequence.
    fn seq(&mut self, m: &mut Machine<'_>, seq: Seq) -> Result<Value> {
        m.check_stack()?;
        let func = self.func.clone();
        let data = func.seq(seq);
        for &block in &data.blocks {
            for binding in &func.block(block).bindings {
                m.step(1)?;
                self.binding(m, binding).map_err(|e| {
                    e.at(|| format!("'{}' in {}", func.var(binding.var).name, self.name))
                })?;
            }
        }
        self.value(data.result)
    }

    fn binding(&mut self, m: &mut Machine<'_>, binding: &Binding) -> Result<()> {
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
        let value = self.bound_value(m, binding.value, Some(binding.var))?;
        if m.options.check_types {
            let var = func.var(binding.var);
            self.check(var.ty, &value, &format!("'{}'", var.name))?;
        }
        self.vars.insert(binding.var, value);
        Ok(())
    }

    /// The value of an expression that a binding may have; `var` is what it is bound to.
    fn bound_value(&mut self, m: &mut Machine<'_>, e: Expr, var: Option<Var>) -> Result<Value> {
        let func = self.func.clone();
        match func.expr(e) {
            ExprData::Call { callee, args, attrs, ty_args } => {
                let call = call::Call {
                    expr: e,
                    callee: *callee,
                    args: func.list(*args),
                    attrs: func.call_attrs(*attrs),
                    ty_args: func.type_list(*ty_args),
                };
                self.call(m, &call)
            }
            ExprData::If { cond, then_seq, else_seq } => {
                let cond = self.value(*cond)?;
                let taken = if crate::builtins::condition(&cond)? { *then_seq } else { *else_seq };
                self.branch(m, taken)
            }
            ExprData::Func(id) => Ok(self.closure(*id, var)),
            _ => self.value(e),
        }
    }

    /// Runs a branch; the symbols that it defines are forgotten after it.
    fn branch(&mut self, m: &mut Machine<'_>, seq: Seq) -> Result<Value> {
        let syms = self.syms.clone();
        let result = self.seq(m, seq);
        self.syms = syms;
        result
    }

    fn closure(&self, id: FuncId, var: Option<Var>) -> Value {
        let captured = free_vars(&self.func, id)
            .into_iter()
            .filter(|&v| Some(v) != var)
            .filter_map(|v| self.vars.get(&v).map(|value| (v, value.clone())))
            .collect();
        let name = match var {
            Some(v) => self.func.var(v).name.clone(),
            None => "local function".into(),
        };
        Value::Func(Func::Closure(Arc::new(Closure {
            func: self.func.clone(),
            id,
            name,
            captured,
            syms: self.syms.clone(),
            own: var,
        })))
    }

    /// Ends the life of a variable: reading it is an error from now on.
    fn kill(&mut self, e: Expr) {
        if let ExprData::Var(v) = *self.func.expr(e) {
            self.vars.remove(&v);
        }
    }
}

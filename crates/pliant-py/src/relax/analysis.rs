//! Analyses of expressions and types, for `pliant.relax.analysis`.

use pliant_ir::relax::type_lattice;
use pliant_ir::relax::visit::{Uses, bindings};
use pliant_ir::relax::{Callee, Expr, ExprData, TypeData, Var};
use pliant_ops::te::{self, ExprKind};
use pliant_sym::Proof;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::relax::binding_blocks::{BindingBlock, wrap_binding};
use crate::relax::classes::struct_info::wrap_info;
use crate::relax::classes::wrap;
use crate::relax::detached_expr::{CalleeNode, Key, Node, NodeRef};
use crate::relax::expr_accessors::in_func;
use crate::relax::expr_traversal::{WalkEvent, walk};
use crate::relax::function::owner_of;
use crate::relax::function_owner::{FuncOwner, OwnerState};
use crate::relax::struct_info::{SInfo, sinfo_of, to_type};
use crate::relax::value_conversion::{required_operand, sinfo};
use crate::tir::prim_expr::prim;
use crate::tir::scalar_expr_classes::wrap as wrap_prim;

/// A list of nodes without duplicates, in insertion order.
#[derive(Default)]
struct NodeSet {
    seen: FxHashSet<Key>,
    list: Vec<NodeRef>,
}

impl NodeSet {
    fn add(&mut self, node: NodeRef) {
        if self.seen.insert(node.key()) {
            self.list.push(node);
        }
    }

    fn wrap<'py>(self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        self.list.into_iter().map(|n| wrap(py, n)).collect()
    }
}

fn is_var(node: &NodeRef) -> bool {
    match node.get() {
        Node::Var(_) => true,
        Node::InFunc(owner, e) => {
            owner.lock().func().is_some_and(|f| matches!(f.expr(*e), ExprData::Var(_)))
        }
        _ => false,
    }
}

/// Returns the function that a call node calls. `None` if the node is not a call, or calls an operator.
fn callee(node: &NodeRef) -> Option<NodeRef> {
    match node.get() {
        Node::Call(call) => match &call.callee {
            CalleeNode::Expr(e) => Some(e.clone()),
            CalleeNode::Op(_) => None,
        },
        Node::InFunc(owner, e) => match owner.lock().func().map(|f| f.expr(*e)) {
            Some(ExprData::Call { callee: Callee::Expr(c), .. }) => {
                Some(crate::relax::expr_accessors::in_func(owner, *c))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The variables or functions in an expression, each once, in order. `kind` selects `"all"`, `"bound"`, `"free"` or
/// `"used"` variables, `"global"` functions that are referenced, or `"called"` functions that are called.
#[pyfunction]
pub fn find_vars<'py>(expr: &Bound<'py, PyAny>, kind: &str) -> Result<Vec<Bound<'py, PyAny>>> {
    let root = required_operand(expr)?;
    let (mut used, mut bound, mut all) =
        (NodeSet::default(), NodeSet::default(), NodeSet::default());
    let (mut global, mut called) = (NodeSet::default(), NodeSet::default());
    walk(&root, |event| match event {
        WalkEvent::Expr(node) if is_var(&node) => {
            used.add(node.clone());
            all.add(node);
        }
        WalkEvent::Expr(node) => {
            if matches!(node.key(), Key::Global(_)) {
                global.add(node);
            } else if let Some(callee) = callee(&node).filter(|c| matches!(c.key(), Key::Global(_)))
            {
                called.add(callee);
            }
        }
        WalkEvent::Def(var) => {
            bound.add(var.clone());
            all.add(var);
        }
        WalkEvent::Binding(_) => {}
    });
    let found = match kind {
        "all" => all,
        "bound" => bound,
        "used" => used,
        "global" => global,
        "called" => called,
        "free" => {
            used.list.retain(|v| !bound.seen.contains(&v.key()));
            used
        }
        _ => {
            return Err(Error::Value(format!(
                "the argument 'kind' must be all, bound, free, used, global or called, not '{kind}'"
            )));
        }
    };
    found.wrap(expr.py())
}

/// All subexpressions of an expression. Operands come before their users.
#[pyfunction]
pub fn post_order<'py>(expr: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
    let mut list = Vec::new();
    walk(&required_operand(expr)?, |event| match event {
        WalkEvent::Expr(node) | WalkEvent::Def(node) => list.push(node),
        WalkEvent::Binding(_) => {}
    });
    list.into_iter().map(|n| wrap(expr.py(), n)).collect()
}

/// All bindings in an expression, in textual order.
#[pyfunction]
pub fn all_bindings<'py>(expr: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
    let mut list = Vec::new();
    walk(&required_operand(expr)?, |event| {
        if let WalkEvent::Binding(b) = event {
            list.push(b);
        }
    });
    list.into_iter().map(|b| wrap_binding(expr.py(), b)).collect()
}

/// A variable, and the variables whose bound values use it.
type UseChain<'py> = (Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>);

/// Returns the variables of a block in order, each with the variables whose bound values use it.
#[pyfunction]
pub fn use_chains<'py>(block: &Bound<'py, BindingBlock>) -> Result<Vec<UseChain<'py>>> {
    let mut order = NodeSet::default();
    let mut users: FxHashMap<Key, NodeSet> = FxHashMap::default();
    for binding in block.get().block.bindings() {
        let (Some(var), Some(value)) = (binding.var(), binding.value()) else { continue };
        walk(&value, |event| {
            if let WalkEvent::Expr(node) = event
                && is_var(&node)
            {
                users.entry(node.key()).or_default().add(var.clone());
                order.add(node);
            }
        });
        order.add(var);
    }
    let py = block.py();
    let chain = |var: NodeRef| {
        let list = users.remove(&var.key()).unwrap_or_default();
        Ok((wrap(py, var)?, list.wrap(py)?))
    };
    order.list.into_iter().map(chain).collect()
}

/// A variable, the variables whose bound values use it, and the value bound to the variable itself.
type VarUses<'py> = (Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// Returns the variables of the function that contains an expression, parameters first. Each variable comes with the variables
/// whose bound values use it, and with its own bound value. The list is empty for an expression that belongs to no function.
#[pyfunction]
pub fn uses_around<'py>(expr: &Bound<'py, PyAny>) -> Result<Vec<VarUses<'py>>> {
    let node = required_operand(expr)?;
    let Node::InFunc(owner, _) = node.get() else { return Ok(Vec::new()) };
    let rows: Vec<_> = {
        let state = owner.lock();
        let Some(func) = state.func() else { return Ok(Vec::new()) };
        let uses = Uses::of(func);
        let params = func.params().iter().map(|&p| (p, None));
        let bound = bindings(func).into_iter().map(|(_, b)| (b.var, Some(b.value)));
        let row = |(v, value): (Var, Option<Expr>)| {
            let users = uses.users(v).iter().map(|&user| func.var_expr(user)).collect::<Vec<_>>();
            (func.var_expr(v), users, value)
        };
        params.chain(bound).map(row).collect()
    };
    let py = expr.py();
    let view = |e: Expr| wrap(py, in_func(owner, e));
    rows.into_iter()
        .map(|(v, users, value)| {
            let users = users.into_iter().map(view).collect::<Result<_>>()?;
            Ok((view(v)?, users, value.map(view).transpose()?))
        })
        .collect()
}

/// Whether an expression contains a call with side effects. Calls of the function named `own_name` are not counted.
#[pyfunction]
#[pyo3(signature = (expr, own_name=None))]
pub fn has_impure_call(expr: &Bound<'_, PyAny>, own_name: Option<&str>) -> Result<bool> {
    use pliant_ir::OpRegistry;
    let registry = pliant_ops::registry();
    let mut found = false;
    walk(&required_operand(expr)?, |event| {
        let WalkEvent::Expr(node) = event else { return };
        let op = match node.get() {
            Node::Call(call) => match &call.callee {
                CalleeNode::Op(op) => Some(*op),
                CalleeNode::Expr(_) => None,
            },
            Node::InFunc(owner, e) => match owner.lock().func().map(|f| f.expr(*e)) {
                Some(ExprData::Call { callee: Callee::Op(op), .. }) => Some(*op),
                _ => None,
            },
            _ => None,
        };
        found |= match (op, callee(&node)) {
            (Some(op), _) => !registry.is_pure(op),
            (None, Some(callee)) => match (callee.key(), sinfo_of(&callee)) {
                (Key::Global(name), _) if Some(&*name) == own_name => false,
                (_, Some(SInfo::Func(_, _, pure))) => !pure,
                _ => true,
            },
            (None, None) => false,
        };
    });
    Ok(found)
}

/// A temporary function in which types are compared and combined. Size variables of Python map to symbols of this
/// function and back to the same variables.
struct TempFunction(std::sync::Arc<FuncOwner>);

impl TempFunction {
    fn new() -> TempFunction {
        let owner = FuncOwner::building();
        owner.lock().allow_undefined = true;
        TempFunction(owner)
    }

    fn run<T>(&self, work: impl FnOnce(&mut OwnerState) -> Result<T>) -> Result<T> {
        catch_panic(|| work(&mut self.0.lock()))
    }
}

/// Returns the least common supertype of two types.
#[pyfunction]
pub fn struct_info_lca<'py>(
    lhs: &Bound<'py, PyAny>,
    rhs: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let (a, b) = (sinfo(lhs)?, sinfo(rhs)?);
    let info = TempFunction::new().run(|s| {
        let (a, b) = (to_type(s, &a)?, to_type(s, &b)?);
        let ty = type_lattice::lca(s.func_and_vars()?.0, a, b);
        Ok(s.sinfo_of(ty))
    })?;
    wrap_info(lhs.py(), info)
}

/// Checks whether every value of type `derived` is of type `base`. Returns 3 if every value certainly is, 2 if this depends on
/// unknown sizes, 1 if it depends on unknown data types or ranks, and 0 if no value is.
#[pyfunction]
pub fn struct_info_check(base: &Bound<'_, PyAny>, derived: &Bound<'_, PyAny>) -> Result<u8> {
    let (base, derived) = (sinfo(base)?, sinfo(derived)?);
    TempFunction::new().run(|s| {
        let (base, derived) = (to_type(s, &base)?, to_type(s, &derived)?);
        let func = s.func_and_vars()?.0;
        Ok(match type_lattice::is_subtype(func, derived, base) {
            Proof::Yes => 3,
            Proof::No => 0,
            Proof::Unknown => {
                let base = type_lattice::erase(func, base, &|_| false);
                if type_lattice::is_subtype(func, derived, base).is_yes() { 2 } else { 1 }
            }
        })
    })
}

/// Returns the type with its dims removed.
#[pyfunction]
pub fn static_struct_info<'py>(info: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    wrap_info(info.py(), without_dims(&sinfo(info)?))
}

fn without_dims(info: &SInfo) -> SInfo {
    use crate::relax::struct_info::ShapeInfo;
    match info {
        SInfo::Prim(dtype, _) => SInfo::Prim(*dtype, None),
        SInfo::Shape(..) => SInfo::Shape(None, info.ndim().map(|n| n as u32)),
        SInfo::Tensor(shape, dtype) => {
            let rank = match shape {
                ShapeInfo::Var(v) => sinfo_of(v).and_then(|i| i.ndim()),
                _ => info.ndim(),
            };
            let shape = rank.map_or(ShapeInfo::Unknown, |n| ShapeInfo::Rank(n as u32));
            SInfo::Tensor(shape, *dtype)
        }
        SInfo::Tuple(fields) => SInfo::Tuple(fields.iter().map(without_dims).collect()),
        SInfo::Func(params, ret, pure) => {
            let params = params.as_ref().map(|p| p.iter().map(without_dims).collect());
            SInfo::Func(params, std::sync::Arc::new(without_dims(ret)), *pure)
        }
        SInfo::Object => SInfo::Object,
    }
}

/// Replaces size variables in a type by the expressions in `shape_var_map`. A dim that contains a variable without a replacement
/// becomes unknown, as does a shape given by a shape variable. The type keeps the remaining information, such as the rank.
#[pyfunction]
pub fn erase_struct_info<'py>(
    info: &Bound<'py, PyAny>,
    shape_var_map: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> Result<Bound<'py, PyAny>> {
    let info_arg = sinfo(info)?;
    let pairs: Result<Vec<(te::Expr, te::Expr)>> =
        shape_var_map.iter().map(|(k, v)| Ok((prim(k)?, prim(v)?))).collect();
    let pairs = pairs?;
    let erased = TempFunction::new().run(|s| {
        let ty = to_type(s, &info_arg)?;
        let mut map = FxHashMap::default();
        for (key, value) in &pairs {
            let ExprKind::Var(var) = key.kind() else {
                return Err(Error::Type(format!(
                    "shape_var_map: each key must be a tir.Var, but {key} is not one"
                )));
            };
            let (func, vars) = s.func_and_vars()?;
            let Some(sym) = vars.get_sym(var) else { continue };
            let value = crate::relax::struct_info::dim_to_sym(func, vars, value)?;
            map.insert(sym, value);
        }
        let func = s.func_and_vars()?.0;
        let ty =
            type_lattice::erase_to_well_defined(func, ty, &|v| map.get(&v).copied(), &|_| None);
        Ok(s.sinfo_of(ty))
    })?;
    wrap_info(info.py(), erased)
}

/// Returns the size variables in a type. With `definable`, returns only those that are dims by themselves, as `n` is in
/// `(n, 2 * m)`: a value of the type determines their sizes.
#[pyfunction]
pub fn struct_info_vars<'py>(
    info: &Bound<'py, PyAny>,
    definable: bool,
) -> Result<Vec<Bound<'py, PyAny>>> {
    let info_arg = sinfo(info)?;
    let list = TempFunction::new().run(|s| {
        let ty = to_type(s, &info_arg)?;
        let func = s.func_and_vars()?.0;
        let syms = if definable {
            type_lattice::definable_syms(func, ty)
        } else {
            type_lattice::type_syms(func, ty)
        };
        let (func, vars) = s.func_and_vars()?;
        Ok(syms.into_iter().map(|v| vars.te_var(&func.syms, v).expr()).collect::<Vec<_>>())
    })?;
    list.into_iter().map(|e| Ok(wrap_prim(info.py(), e)?)).collect()
}

/// Returns the non-constant dims in a type, each once.
#[pyfunction]
pub fn struct_info_dims<'py>(info: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
    let info_arg = sinfo(info)?;
    let list = TempFunction::new().run(|s| {
        let ty = to_type(s, &info_arg)?;
        let func = s.func_and_vars()?.0;
        let mut dims = Vec::new();
        type_lattice::visit_dims(func, ty, false, &mut |dim| {
            if !dims.contains(&dim) && func.syms.as_int(dim).is_none() {
                dims.push(dim);
            }
        });
        let (func, vars) = s.func_and_vars()?;
        Ok(dims.into_iter().map(|d| te::from_sym(&func.syms, d, vars)).collect::<Vec<_>>())
    })?;
    list.into_iter().map(|e| Ok(wrap_prim(info.py(), e)?)).collect()
}

/// The result type of a call of a function of type `func` with arguments of the types `args`.
#[pyfunction]
pub fn call_struct_info<'py>(
    func: &Bound<'py, PyAny>,
    args: Vec<Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let info_arg = sinfo(func)?;
    let args: Result<Vec<SInfo>> = args.iter().map(sinfo).collect();
    let args = args?;
    let info = TempFunction::new().run(|s| {
        let callable = to_type(s, &info_arg)?;
        let args: Result<Vec<_>> = args.iter().map(|a| to_type(s, a)).collect();
        let args = args?;
        let f = s.func_and_vars()?.0;
        if !matches!(f.types.get(callable), TypeData::Callable { .. }) {
            return Err(Error::Type(
                "the argument 'func' must be the struct info of a function (FuncStructInfo)".into(),
            ));
        }
        let ty = type_lattice::derive_callable_ty(f, callable, &args);
        let ty = ty.map_err(|e| Error::Compile(e.message))?;
        Ok(s.sinfo_of(ty))
    })?;
    wrap_info(func.py(), info)
}

/// Returns the size variables that the parameters and the `match_cast` bindings of a function define. If `free` is set, returns
/// instead the size variables that the function uses without defining them.
#[pyfunction]
pub fn symbolic_vars<'py>(func: &Bound<'py, PyAny>, free: bool) -> Result<Vec<Bound<'py, PyAny>>> {
    use pliant_ir::relax::visit;
    let what = if free {
        "the argument func of relax.analysis.free_symbolic_vars"
    } else {
        "the argument func of relax.analysis.defined_symbolic_vars"
    };
    let owner = owner_of(&required_operand(func)?, what)?;
    let list = {
        let mut guarded = owner.lock();
        let state = &mut *guarded;
        let Some(f) = state.finished().cloned() else { return Ok(Vec::new()) };
        let list = if free { visit::free_syms } else { visit::defined_syms };
        let syms = list(&f, f.root());
        let vars = syms.into_iter().map(|v| state.vars.te_var(&f.syms, v).expr());
        vars.collect::<Vec<_>>()
    };
    list.into_iter().map(|e| Ok(wrap_prim(func.py(), e)?)).collect()
}

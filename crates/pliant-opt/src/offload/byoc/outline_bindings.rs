//! Moves (outlines) bindings of a graph function to a new function.

use pliant_ir::relax::visit::{Importer, free_syms};
use pliant_ir::relax::{
    Binding, BlockData, Callee, Expr, ExprData, Function, SeqData, Type, TypeData, Var,
};
use pliant_ir::{Attrs, Span, Sym};
use pliant_pass::binding_rewrites::Namer;
use pliant_pass::pattern::Defs;
use rustc_hash::{FxHashMap, FxHashSet};

/// The new function to which bindings were outlined, and the arguments of the call that replaces them.
pub struct Outlined {
    /// The new function, which is private.
    pub func: Function,
    /// The arguments that the caller passes for the parameters of the function.
    pub args: Vec<Expr>,
}

/// Outlines pure bindings to a new function. Its parameters are the free variables in the order of their first use. If there are
/// symbols that no parameter defines, a shape parameter with these symbols follows. The result is the output, or a tuple if there
/// are several outputs. If `constants_inside` is set, constants become part of the function; otherwise they become parameters.
pub fn outline_bindings(
    src: &mut Function,
    defs: &Defs,
    members: &[Binding],
    outputs: &[Var],
    constants_inside: bool,
) -> Outlined {
    let mut dst = Function::empty();
    dst.private = true;
    let mut outliner = Outliner {
        importer: Importer::new(src, &mut dst),
        defs,
        constants_inside,
        params: Vec::new(),
        args: Vec::new(),
        param_vars: FxHashSet::default(),
        constants: FxHashMap::default(),
    };
    let bindings: Vec<Binding> = members.iter().map(|b| outliner.import_binding(b)).collect();
    let results: Vec<Expr> = outputs.iter().map(|v| outliner.importer.vars[v]).collect();
    let (params, mut args) = (outliner.params, outliner.args);
    let syms = std::mem::take(&mut outliner.importer.syms);
    for &e in &results {
        if let ExprData::Var(v) = *dst.expr(e) {
            dst.var_mut(v).dataflow = false;
        }
    }
    let result = match results[..] {
        [one] => one,
        _ => dst.tuple(&results),
    };
    let ret_ty = dst.expr_ty(result);
    let block = dst.add_block(BlockData { dataflow: true, bindings });
    let body = dst.add_seq(SeqData { blocks: vec![block], result });
    let root = dst.root();
    let data = dst.func_mut(root);
    (data.params, data.body, data.ret_ty, data.pure) = (params, body, ret_ty, true);
    let sizes = add_sizes_param(&mut dst, src, &syms);
    if !sizes.is_empty() {
        args.push(src.shape(&sizes));
    }
    Outlined { func: dst, args }
}

/// Adds a shape parameter for the symbols that no other parameter defines. Returns the sizes of the caller that are passed for
/// these symbols.
fn add_sizes_param(
    dst: &mut Function,
    src: &Function,
    syms: &FxHashMap<pliant_ir::SymVar, Sym>,
) -> Vec<Sym> {
    let root = dst.root();
    let free = free_syms(dst, root);
    if free.is_empty() {
        return Vec::new();
    }
    let caller_syms: FxHashMap<Sym, Sym> =
        syms.iter().map(|(&outer, &inner)| (inner, src.syms.var(outer))).collect();
    let dims: Vec<Sym> = free.iter().map(|&v| dst.syms.var(v)).collect();
    let ty = dst.intern(TypeData::shape(&dims[..]));
    let name = Namer::new(dst).fresh("sizes");
    let param = dst.add_var(name, ty, false, Span::NONE);
    dst.func_mut(root).params.push(param);
    dims.iter().map(|d| caller_syms[d]).collect()
}

/// Creates a call of the module's function `name`. `ty` is the type of the result.
pub fn call_global(func: &mut Function, name: &str, args: &[Expr], ty: Type) -> Expr {
    let ret = func.intern(TypeData::Any);
    let callee_ty = func.intern(TypeData::Callable { params: None, ret, pure: true });
    let callee = func.global(name, callee_ty);
    func.call(Callee::Expr(callee), args, Attrs::default(), &[], ty)
}

/// The state of outlining: the bindings that have been copied to the new function so far, its parameters, and the arguments for
/// them.
struct Outliner<'a> {
    importer: Importer<'a>,
    defs: &'a Defs,
    constants_inside: bool,
    params: Vec<Var>,
    args: Vec<Expr>,
    /// The free variables that have become parameters.
    param_vars: FxHashSet<Var>,
    constants: FxHashMap<Expr, Expr>,
}

impl Outliner<'_> {
    fn import_binding(&mut self, b: &Binding) -> Binding {
        let value = self.import_value(b.value);
        let var = self.importer.define(b.var);
        self.importer.dst.var_mut(var).dataflow = true;
        Binding::bind(var, value)
    }

    fn import_value(&mut self, e: Expr) -> Expr {
        let src = self.importer.src;
        match src.expr(e) {
            ExprData::Call { callee, args, attrs, ty_args } => {
                let callee = match callee {
                    Callee::Op(op) => Callee::Op(*op),
                    Callee::Expr(c) => Callee::Expr(self.import_operand(*c)),
                };
                let args: Vec<Expr> =
                    src.list(*args).iter().map(|&a| self.import_operand(a)).collect();
                let ty_args: Vec<Type> =
                    src.type_list(*ty_args).iter().map(|&t| self.importer.ty(t)).collect();
                let ty = self.importer.ty(src.expr_ty(e));
                let attrs = src.call_attrs(*attrs).clone();
                self.importer.dst.call(callee, &args, attrs, &ty_args, ty)
            }
            ExprData::TupleGetItem(t, i) => {
                let t = self.import_operand(*t);
                self.importer.dst.tuple_get_item(t, *i)
            }
            _ => self.import_operand(e),
        }
    }

    /// Returns the expression of the new function that stands for an operand of an outlined binding: a variable of the outlined
    /// bindings, a parameter, or an inline expression. The recursion depth is the nesting depth of tuples, which the verifier
    /// limits.
    fn import_operand(&mut self, e: Expr) -> Expr {
        let src = self.importer.src;
        match src.expr(e) {
            ExprData::Var(v) => {
                if let Some(&imported) = self.importer.vars.get(v) {
                    return imported;
                }
                // A copy of a variable of the group is replaced by the variable. So is a copy of a parameter, unless a `match_cast`
                // gave the copy a more precise type, because types in the function follow from the types of the parameters.
                if let ExprData::Var(origin) = src.expr(self.defs.origin(src, e))
                    && let Some(&imported) = self.importer.vars.get(origin)
                    && (!self.param_vars.contains(origin) || src.var(*origin).ty == src.var(*v).ty)
                {
                    return imported;
                }
                let param = self.importer.define(*v);
                self.importer.dst.var_mut(param).dataflow = false;
                self.params.push(param);
                self.args.push(e);
                self.param_vars.insert(*v);
                self.importer.dst.var_expr(param)
            }
            ExprData::Tuple(list) => {
                let fields: Vec<Expr> =
                    src.list(*list).iter().map(|&x| self.import_operand(x)).collect();
                self.importer.dst.tuple(&fields)
            }
            ExprData::Constant(_) if !self.constants_inside => self.constant_param(e),
            _ => self.importer.expr(e),
        }
    }

    fn constant_param(&mut self, e: Expr) -> Expr {
        if let Some(&imported) = self.constants.get(&e) {
            return imported;
        }
        let ty = self.importer.ty(self.importer.src.expr_ty(e));
        let name = format!("const_{}", self.constants.len());
        let param = self.importer.dst.add_var(name, ty, false, Span::NONE);
        self.params.push(param);
        self.args.push(e);
        let inner = self.importer.dst.var_expr(param);
        self.constants.insert(e, inner);
        inner
    }
}

//! Moves a group of bindings that are fused to a separate function.

use pliant_ir::attr_names::PRIMITIVE;
use pliant_ir::op::CALL_TIR;
use pliant_ir::relax::type_lattice::visit_dims;
use pliant_ir::relax::visit::{Importer, free_syms};
use pliant_ir::relax::{
    Binding, BlockData, Callee, Expr, ExprData, Function, SeqData, Type, TypeData, Var,
};
use pliant_ir::{AttrValue, Attrs, Span, Sym};
use rustc_hash::FxHashMap;

use crate::analysis::loop_function_calls::TirCall;

/// The function to which a group was outlined, and the arguments of the call that replaces the group.
pub(super) struct Outlined {
    /// The outlined function, which is private and has the attribute [`PRIMITIVE`].
    pub func: Function,
    /// The arguments that the caller passes for the tensor parameters of the function.
    pub args: Vec<Expr>,
    /// The arguments for symbols of the function that no tensor argument defines, as sizes of the caller. They are passed as one
    /// shape after the tensors.
    pub sizes: Vec<Sym>,
}

/// Creates a function from the bindings of a group, which are calls of loop functions and accesses to fields of their results.
/// The function returns the value of the last binding.
pub(super) fn outline_group(src: &Function, members: &[Binding]) -> Outlined {
    let mut dst = Function::empty();
    dst.private = true;
    dst.attrs.insert(PRIMITIVE.into(), AttrValue::Int(1));
    let mut importer = GroupImporter {
        importer: Importer::new(src, &mut dst),
        params: Vec::new(),
        args: Vec::new(),
        constants: FxHashMap::default(),
    };
    members.iter().for_each(|b| importer.replace_unanalyzable_sizes(b));
    let bindings: Vec<Binding> = members.iter().map(|b| importer.import_binding(b)).collect();
    let (params, args) = (importer.params, importer.args);
    let syms = std::mem::take(&mut importer.importer.syms);
    let terms = std::mem::take(&mut importer.importer.terms);
    let last = bindings.last().expect("a fused group contains at least one binding").var;
    dst.var_mut(last).dataflow = false;
    let result = dst.var_expr(last);
    let ret_ty = dst.var(last).ty;
    let block = dst.add_block(BlockData { dataflow: true, bindings });
    let body = dst.add_seq(SeqData { blocks: vec![block], result });
    let root = dst.root();
    let data = dst.func_mut(root);
    (data.params, data.body, data.ret_ty, data.pure) = (params, body, ret_ty, true);
    let sizes = add_sizes_param(&mut dst, src, &syms, terms);
    Outlined { func: dst, args, sizes }
}

/// Adds a shape parameter for the symbols that no tensor parameter defines. Returns the sizes of the caller that are passed for
/// these symbols.
fn add_sizes_param(
    dst: &mut Function,
    src: &Function,
    syms: &FxHashMap<pliant_ir::SymVar, Sym>,
    terms: FxHashMap<Sym, Sym>,
) -> Vec<Sym> {
    let root = dst.root();
    let free = free_syms(dst, root);
    if free.is_empty() {
        return Vec::new();
    }
    let symbols = syms.iter().map(|(&outer, &inner)| (inner, src.syms.var(outer)));
    let terms = terms.into_iter().map(|(outer, inner)| (inner, outer));
    let outer_values: FxHashMap<Sym, Sym> = symbols.chain(terms).collect();
    let dims: Vec<Sym> = free.iter().map(|&v| dst.syms.var(v)).collect();
    let ty = dst.intern(TypeData::shape(&dims[..]));
    let taken = |name: &str| dst.var_ids().any(|v| &*dst.var(v).name == name);
    let name = (0u32..)
        .map(|i| if i == 0 { "sizes".to_string() } else { format!("sizes{i}") })
        .find(|n| !taken(n))
        .expect("a function with finitely many parameters leaves a numbered name unused");
    let param = dst.add_var(name, ty, false, Span::NONE);
    dst.func_mut(root).params.push(param);
    dims.iter().map(|d| outer_values[d]).collect()
}

/// Copies the bindings of a group into the new function.
struct GroupImporter<'a> {
    importer: Importer<'a>,
    params: Vec<Var>,
    args: Vec<Expr>,
    constants: FxHashMap<Expr, Expr>,
}

impl GroupImporter<'_> {
    /// Replaces terms in the sizes of a binding that loop analyses cannot handle, such as selects, by new symbols of the
    /// function.
    fn replace_unanalyzable_sizes(&mut self, b: &Binding) {
        let (src, dst) = (self.importer.src, &mut *self.importer.dst);
        let terms = &mut self.importer.terms;
        let mut replace = |size: Sym| {
            for term in src.syms.unanalyzable_terms(size) {
                terms.entry(term).or_insert_with(|| {
                    let symbol = dst.fresh_sym(&src.syms.short_name(term));
                    dst.syms.var(symbol)
                });
            }
        };
        visit_dims(src, src.var(b.var).ty, false, &mut replace);
        if let Some(call) = TirCall::of(src, b.value) {
            call.tir_vars.iter().for_each(|&size| replace(size));
            let tensors = call.inputs.iter().map(|&e| src.expr_ty(e));
            tensors.for_each(|ty| visit_dims(src, ty, false, &mut replace));
        }
    }

    fn import_binding(&mut self, b: &Binding) -> Binding {
        let src = self.importer.src;
        let value = match src.expr(b.value) {
            ExprData::TupleGetItem(tuple, index) => {
                let tuple = self.import_operand(*tuple);
                self.importer.dst.tuple_get_item(tuple, *index)
            }
            _ => self.import_call(b.value),
        };
        let var = self.importer.define(b.var);
        self.importer.dst.var_mut(var).dataflow = true;
        Binding::bind(var, value)
    }

    fn import_call(&mut self, value: Expr) -> Expr {
        let src = self.importer.src;
        let call = TirCall::of(src, value).expect("every binding of a fused group is a call of a loop function or an access to a tuple field");
        let inputs: Vec<Expr> = call.inputs.iter().map(|&e| self.import_operand(e)).collect();
        let tir_vars: Vec<Sym> = call.tir_vars.iter().map(|&s| self.importer.sym(s)).collect();
        let out_tys: Vec<Type> = call.out_tys.iter().map(|&t| self.importer.ty(t)).collect();
        let ExprData::Call { args, .. } = src.expr(value) else {
            unreachable!("the value of an R.call_tir binding is a call expression")
        };
        let callee = self.importer.expr(src.list(*args)[0]);
        let ty = self.importer.ty(src.expr_ty(value));
        let dst = &mut *self.importer.dst;
        let mut args = vec![callee, dst.tuple(&inputs)];
        if !tir_vars.is_empty() {
            args.push(dst.shape(&tir_vars));
        }
        let ty_arg = if let [one] = out_tys[..] { one } else { ty };
        dst.call(Callee::Op(CALL_TIR), &args, Attrs::default(), &[ty_arg], ty)
    }

    /// Returns the expression of the new function that stands for the tensor operand `e` of a binding: a value that the group
    /// computes, or else a parameter, which is added if `e` has none yet.
    fn import_operand(&mut self, e: Expr) -> Expr {
        let src = self.importer.src;
        if let ExprData::Var(v) = src.expr(e) {
            if let Some(&imported) = self.importer.vars.get(v) {
                return imported;
            }
            let param = self.importer.define(*v);
            self.importer.dst.var_mut(param).dataflow = false;
            self.params.push(param);
            self.args.push(e);
            return self.importer.dst.var_expr(param);
        }
        if let Some(&imported) = self.constants.get(&e) {
            return imported;
        }
        let ty = self.importer.ty(src.expr_ty(e));
        let name = format!("const_{}", self.constants.len());
        let param = self.importer.dst.add_var(name, ty, false, Span::NONE);
        self.params.push(param);
        self.args.push(e);
        let inner = self.importer.dst.var_expr(param);
        self.constants.insert(e, inner);
        inner
    }
}

//! Type rules, legalisation and the module builder.

use pliant_ir::op::{InferError, Op, OpRegistry};
use pliant_ir::print::{PrintOptions, print_module, type_text};
use pliant_ir::relax::{Expr, FunctionBuilder, TypeData};
use pliant_ir::{Attrs, DType, IRModule, Sym};
use pliant_ops::{ModuleBuilder, registry, te};

#[test]
fn first() {
    let mut mb = ModuleBuilder::new();
    let mut fb = FunctionBuilder::new(registry());
    let n = fb.func_mut().fresh_sym("n");
    let n = fb.func_mut().syms.var(n);
    let four = fb.func_mut().syms.int(4);
    let ty = fb.func_mut().intern(TypeData::tensor(vec![n, four], DType::Float32));
    let x = fb.param("x", ty);
    let x = fb.func_mut().var_expr(x);
    let call = fb.call_op(Op("relax.add"), &[x, x], Attrs::default(), &[]).unwrap();
    let pliant_ops::Legalized::Tir(call) = pliant_ops::legalize_call(fb.func_mut(), call).unwrap().unwrap() else { panic!() };
    let e = mb.call_tir(fb.func_mut(), call);
    let y = fb.emit(e);
    let y = fb.func_mut().var_expr(y);
    let z = mb.emit_te(&mut fb, "f", &[y], |t| {
        let k = te::reduce_axis(t[0].shape()[1].clone(), "k");
        Ok(vec![te::compute(vec![t[0].shape()[0].clone()], "S", |i| te::sum(&t[0].at(&[i[0].clone(), k.var.expr()]), &[k.clone()]))])
    }).unwrap();
    let z = fb.func_mut().var_expr(z);
    let f = fb.finish(z, None, true);
    mb.add_func(f, "main");
    println!("{}", print_module(mb.module(), registry(), &PrintOptions::default()));
}

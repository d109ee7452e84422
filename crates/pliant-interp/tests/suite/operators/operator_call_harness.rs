//! Calls one operator through the interpreter, and compares the result with the expected one.

use std::collections::BTreeMap;

use pliant_interp::{NoPacked, Value, run};
use pliant_ir::op::Op;
use pliant_ir::relax::{Expr, FunctionBuilder, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Sym};
use pliant_ops::registry;
use pliant_tensor::Tensor;

use super::expected_arrays::{Nd, SIZES};
use crate::script_and_tensor_helpers::numbers;

/// A test case: the name of an operator, and the function that tests the operator.
pub type Case = (&'static str, fn());

pub const F32: DType = DType::Float32;
pub const I64: DType = DType::Int64;
pub const BOOL: DType = DType::Bool;
/// The tolerance for float32 results of functions that are not computed exactly.
pub const CLOSE: f64 = 2e-6;

pub fn shapes() -> impl Iterator<Item = Vec<i64>> {
    SIZES.into_iter().flat_map(|n| [vec![n], vec![n, 3], vec![2, n]]).chain([vec![]])
}

/// Creates a function that only calls the operator `op`, and interprets it. With `symbolic`, the
/// sizes of the operands are symbols.
pub fn call(
    op: &'static str,
    args: &[Value],
    attrs: &Attrs,
    symbolic: bool,
) -> Result<Value, String> {
    let mut build = Build {
        fb: FunctionBuilder::new(registry()),
        syms: BTreeMap::new(),
        symbolic,
        // Strides and axes are constants.
        symbolic_shapes: symbolic && op != "relax.strided_slice",
        inputs: Vec::new(),
    };
    let operands: Vec<Expr> = args.iter().map(|a| build.operand(a)).collect();
    let mut fb = build.fb;
    let call = fb.call_op(Op::new(op), &operands, attrs.clone(), &[]).map_err(|e| e.to_string())?;
    let result = fb.emit(call);
    let result = fb.func_mut().var_expr(result);
    let mut module = IRModule::new();
    module.insert("main", fb.finish(result, None, false));
    run(&module, "main", &build.inputs, &NoPacked).map_err(|e| e.to_string())
}

pub struct Build {
    fb: FunctionBuilder<'static>,
    syms: BTreeMap<i64, Sym>,
    symbolic: bool,
    symbolic_shapes: bool,
    inputs: Vec<Value>,
}

impl Build {
    /// Returns the symbolic integer for a dim of size `d`. In a symbolic call, this is the symbol
    /// that an operand has defined for this size; with `define`, a new symbol is defined if there
    /// is none.
    fn dim(&mut self, d: i64, define: bool) -> Sym {
        let func = self.fb.func_mut();
        if self.symbolic && d != 1 {
            if let Some(&s) = self.syms.get(&d) {
                return s;
            }
            if define {
                let v = func.fresh_sym(&format!("n{d}"));
                let s = func.syms.var(v);
                self.syms.insert(d, s);
                return s;
            }
        }
        func.syms.int(d)
    }

    fn operand(&mut self, value: &Value) -> Expr {
        match value {
            Value::Tensor(t) => {
                let dims: Vec<Sym> = t.shape().iter().map(|&d| self.dim(d, true)).collect();
                let ty = self.fb.func_mut().intern(TypeData::tensor(dims, t.dtype()));
                let var = self.fb.param("x", ty);
                self.inputs.push(value.clone());
                self.fb.func_mut().var_expr(var)
            }
            Value::Shape(dims) => {
                let size = |b: &mut Self, d: i64| {
                    if d < 2 || !b.symbolic_shapes { b.constant(d) } else { b.dim(d, false) }
                };
                let dims: Vec<Sym> = dims.iter().map(|&d| size(self, d)).collect();
                self.fb.func_mut().shape(&dims)
            }
            Value::Tuple(items) => {
                let items: Vec<Expr> = items.iter().map(|i| self.operand(i)).collect();
                self.fb.func_mut().tuple(&items)
            }
            Value::Int(v) => {
                let v = self.constant(*v);
                self.fb.func_mut().int_value(v, DType::Int64)
            }
            Value::Float(v) => self.fb.func_mut().float_value(*v, DType::Float32),
            other => panic!("no test has {other:?} as an operand"),
        }
    }

    fn constant(&mut self, v: i64) -> Sym {
        self.fb.func_mut().syms.int(v)
    }
}

pub fn attrs(list: &[(&str, AttrValue)]) -> Attrs {
    list.iter().fold(Attrs::default(), |a, (k, v)| a.with(k, v.clone()))
}

pub fn int(v: i64) -> AttrValue {
    AttrValue::Int(v)
}

/// Calls an operator with constant and with symbolic dims. Checks that both results equal the
/// expected one, up to `tolerance`.
pub fn expect(
    op: &'static str,
    args: &[Value],
    with: &Attrs,
    want: &Nd,
    dtype: DType,
    tolerance: f64,
) {
    for symbolic in [false, true] {
        let text = || format!("{op}{args:?} {with:?} symbolic={symbolic}");
        let got = call(op, args, with, symbolic).unwrap_or_else(|e| panic!("{}: {e}", text()));
        assert_eq!(got.as_tensor().map(Tensor::dtype), Some(dtype), "{}", text());
        compare(&got, want, tolerance, &text);
    }
}

pub fn compare(got: &Value, want: &Nd, tolerance: f64, text: &dyn Fn() -> String) {
    let (shape, data) = numbers(got);
    assert_eq!(shape, want.shape, "{}", text());
    for (i, (g, w)) in data.iter().zip(&want.data).enumerate() {
        let close =
            g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance * w.abs().max(1.0);
        assert!(close, "{}: element {i} is {g}, not {w}", text());
    }
}

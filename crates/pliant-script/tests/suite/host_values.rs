//! Tests scripts that read values of the surrounding Python program.

use std::collections::HashMap;
use std::sync::Arc;

use crate::parse_and_print::{module, print};
use pliant_diag::FileId;
use pliant_ir::{BaseFunc, DType};
use pliant_script::{HostEnv, HostSym, HostSymOp, HostValue, Parsed, parse};
use pliant_tensor::Tensor;

/// A substitute for the surrounding Python program: defines some names and evaluates some expressions.
struct Host {
    names: HashMap<&'static str, HostValue>,
    exprs: HashMap<&'static str, HostValue>,
}

impl HostEnv for Host {
    fn lookup(&self, name: &str) -> Option<HostValue> {
        self.names.get(name).cloned()
    }

    fn eval(&self, text: &str) -> Result<HostValue, String> {
        self.exprs.get(text).cloned().ok_or_else(|| format!("NameError: {text}"))
    }
}

fn host() -> Host {
    let var = |id, name: &str| HostSym::Var(id, name.into());
    let sum = HostSym::Binary(HostSymOp::Add, Box::new(var(7, "q")), Box::new(HostSym::Int(1)));
    let path = |p: &str| HostValue::Path(p.into());
    let text = "@T.prim_func\ndef copy(A: T.Buffer((4,), \"float32\"), B: T.Buffer((4,), \"float32\")):\n    for i in range(4):\n        B[i] = A[i]\n";
    let copy = module(text).get("copy").cloned().unwrap();
    Host {
        names: HashMap::from([
            ("Rx", path("pliant.script.relax")),
            ("Tx", path("pliant.script.tir")),
            ("add2", path("relax.add")),
            ("hidden", HostValue::Int(64)),
            ("scale", HostValue::Float(0.125)),
            ("dt", HostValue::Str("float16".into())),
            ("int8", HostValue::DType(DType::Int8)),
            ("q", HostValue::Sym(var(7, "q"))),
            ("q1", HostValue::Sym(sum)),
            ("dims", HostValue::Tuple(vec![HostValue::Int(2), HostValue::Int(32)])),
            ("weight", HostValue::Tensor(Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap())),
            ("copy", HostValue::Func("copy".into(), copy)),
            ("cfg", HostValue::Other("Config".into())),
            ("helper", HostValue::Other("function".into())),
        ]),
        exprs: HashMap::from([
            ("cfg.hidden", HostValue::Int(8)),
            ("helper(3)", HostValue::Int(9)),
            ("[d * 2 for d in dims]", HostValue::List(vec![HostValue::Int(4), HostValue::Int(16)])),
        ]),
    }
}

fn read(text: &str) -> Result<String, String> {
    let (parsed, errors) = parse(text, FileId(0), &host(), pliant_ops::registry());
    match parsed {
        Some(p) => Ok(print(&p.into_module())),
        None => Err(crate::parse_and_print::report(text, &errors)),
    }
}

#[test]
fn captured_values_in_graph_functions() {
    let out = read(
        r#"
@Rx.function
def main(x: Rx.Tensor((hidden, q, q1), dt), y: R.Tensor((2, 32), "float32")):
    a = Rx.reshape(x, (hidden * q * q1,))
    b = R.reshape(y, dims)
    c = R.reshape(y, [d * 2 for d in dims])
    d = R.reshape(y, (cfg.hidden, 8))
    e = R.multiply(y, R.const(scale, "float32"))
    f = add2(y, e)
    g = R.astype(f, int8)
    h = R.const(weight)
    i = R.prim_value(helper(3))
    return (a, b, c, d, e, f, g, h, i)
"#,
    );
    let out = out.unwrap();
    for line in [
        "x: R.Tensor((64, \"q\", \"q + 1\"), dtype=\"float16\")",
        "R.reshape(y, R.shape([2, 32]))",
        "R.reshape(y, R.shape([4, 16]))",
        "R.reshape(y, R.shape([8, 8]))",
        "R.const(0.125, \"float32\")",
        "R.add(y, e)",
        "R.astype(f, dtype=\"int8\")",
        "R.const([1.0, 2.0], \"float32\")",
        "R.prim_value(9)",
    ] {
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
}

#[test]
fn captured_values_in_loop_functions() {
    let out = read(
        r#"
@Tx.prim_func
def f(a: T.handle, B: T.Buffer((hidden, dims[1]), dt)):
    A = T.match_buffer(a, (q, q1), "float32")
    for i in range(q1):
        A[0, i] = scale * A[0, i] + cfg.hidden
"#
        .replace("dims[1]", "32")
        .as_str(),
    )
    .unwrap();
    for line in [
        "B: T.Buffer((64, 32), \"float16\")",
        "A = T.match_buffer(a, (q, q + 1), \"float32\")",
        "A[0, i] = T.float32(0.125) * A[0, i] + T.float32(8.0)",
    ] {
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
}

#[test]
fn captured_functions_are_added_to_the_module() {
    let text = r#"
@R.function
def main(x: R.Tensor((4,), "float32")):
    y = R.call_tir(copy, (x,), R.Tensor((4,), "float32"))
    z = R.call_tir(copy, (y,), R.Tensor((4,), "float32"))
    return z
"#;
    let (parsed, errors) = parse(text, FileId(0), &host(), pliant_ops::registry());
    let Some(Parsed::Module(m)) = parsed else { panic!("{errors:?}") };
    let names: Vec<&Arc<str>> = m.functions.keys().collect();
    assert_eq!(names.iter().map(|n| &***n).collect::<Vec<_>>(), ["main", "copy"]);
    assert!(matches!(m.get("copy"), Some(BaseFunc::Prim(_))));
}

#[test]
fn a_single_function_is_parsed_as_a_function() {
    let text = "@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    return x\n";
    let (parsed, _) = parse(text, FileId(0), &host(), pliant_ops::registry());
    assert!(matches!(parsed, Some(Parsed::Function(name, BaseFunc::Relax(_))) if &*name == "main"));
}

#[test]
fn host_exceptions_are_reported() {
    assert_eq!(
        read(
            "@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    return R.reshape(x, (cfg.none, 2))\n"
        ),
        Err("3:26 `cfg.none` PL0112: cannot evaluate the Python expression `cfg.none`: NameError: cfg.none".into())
    );
    assert_eq!(
        read("@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    return R.add(x, cfg)\n"),
        Err("3:21 `cfg` PL0106: an operand must be a value of the graph function, not a Python object of type 'Config'".into())
    );
}

#[test]
fn quoted_dims_are_symbols_even_if_the_host_defines_the_name() {
    let text = "@R.function\ndef main(x: R.Tensor((hidden, \"hidden\", \"hidden + 1\"), \"float32\")):\n    return x\n";
    let (out, errors) = parse(text, FileId(0), &host(), pliant_ops::registry());
    let out = print(&out.unwrap_or_else(|| panic!("{errors:?}")).into_module());
    assert!(out.contains("R.Tensor((64, \"hidden\", \"hidden + 1\"), dtype=\"float32\")"), "{out}");
}

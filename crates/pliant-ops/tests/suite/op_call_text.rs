//! Creates calls of operators whose operands are written as text: `float32(n, 4)`, `float32[3]` (a rank), `float32?`, `?`, `int(n + 1)`,
//! `shape(n, 4)`, `<float32(2), float32(3)>` (a tuple).

use std::collections::HashMap;

use pliant_ir::op::InferError;
use pliant_ir::print::type_text;
use pliant_ir::relax::{Expr, Function, FunctionBuilder, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Sym};
use pliant_ops::registry;

/// A function under construction, and its symbols by name.
pub struct Calls {
    pub builder: FunctionBuilder<'static>,
    syms: HashMap<String, Sym>,
}

impl Calls {
    pub fn new() -> Self {
        Calls { builder: FunctionBuilder::new(registry()), syms: HashMap::new() }
    }

    pub fn func(&mut self) -> &mut Function {
        self.builder.func_mut()
    }

    /// Parses a dim written as names and numbers with `*`, `+` and `-`, which are evaluated from
    /// left to right: `n * 4 + 1`.
    pub fn dim(&mut self, text: &str) -> Sym {
        let mut words = text.split_whitespace();
        let mut acc = self.atom(words.next().expect("a dim"));
        while let Some(op) = words.next() {
            let right = self.atom(words.next().expect("an operand"));
            let syms = &mut self.func().syms;
            acc = match op {
                "+" => syms.add(acc, right),
                "-" => syms.sub(acc, right),
                "*" => syms.mul(acc, right),
                "//" => syms.floordiv(acc, right),
                other => panic!("operator {other}"),
            };
        }
        acc
    }

    fn atom(&mut self, word: &str) -> Sym {
        if let Ok(v) = word.parse() {
            return self.func().syms.int(v);
        }
        if let Some(&s) = self.syms.get(word) {
            return s;
        }
        let var = self.func().fresh_sym(word);
        let sym = self.func().syms.var(var);
        self.syms.insert(word.into(), sym);
        sym
    }

    fn dims(&mut self, list: &str) -> Vec<Sym> {
        list.split(',').map(str::trim).filter(|d| !d.is_empty()).map(|d| self.dim(d)).collect()
    }

    /// The type that the text describes.
    fn ty(&mut self, text: &str) -> TypeData {
        let dtype =
            |name: &str| if name.is_empty() { None } else { Some(name.parse::<DType>().unwrap()) };
        if let Some((name, list)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) {
            let dims = self.dims(list);
            return TypeData::tensor(dims, dtype(name));
        }
        if let Some((name, rank)) = text.strip_suffix(']').and_then(|t| t.split_once('[')) {
            return TypeData::tensor_rank(rank.parse().unwrap(), dtype(name));
        }
        TypeData::tensor_unknown(dtype(text.strip_suffix('?').expect("a tensor type")))
    }

    /// The operand that the text describes: a parameter or a value.
    pub fn arg(&mut self, text: &str) -> Expr {
        if text == "any" {
            return self.param(TypeData::Any);
        }
        if text == "shape?" {
            return self.param(TypeData::Shape { dims: None, ndim: Some(2) });
        }
        if let Some(list) = text.strip_prefix("shape(").and_then(|t| t.strip_suffix(')')) {
            let dims = self.dims(list);
            return self.func().shape(&dims);
        }
        if let Some(value) = text.strip_prefix("int(").and_then(|t| t.strip_suffix(')')) {
            let value = self.dim(value);
            return self.func().int_value(value, DType::Int64);
        }
        if let Some(value) = text.strip_prefix("float(").and_then(|t| t.strip_suffix(')')) {
            return self.func().float_value(value.parse().unwrap(), DType::Float32);
        }
        if let Some(list) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
            let fields: Vec<Expr> = list.split(';').map(|f| self.arg(f.trim())).collect();
            return self.func().tuple(&fields);
        }
        let ty = self.ty(text);
        self.param(ty)
    }

    fn param(&mut self, ty: TypeData) -> Expr {
        let ty = self.func().intern(ty);
        let var = self.builder.param("x", ty);
        self.func().var_expr(var)
    }

    /// Creates the call `op(args, attrs)`.
    pub fn call(&mut self, op: &str, args: &[&str], attrs: &Attrs) -> Result<Expr, InferError> {
        use pliant_ir::OpRegistry;
        let args: Vec<Expr> = args.iter().map(|a| self.arg(a)).collect();
        let op =
            registry().lookup(&format!("relax.{op}")).unwrap_or_else(|| panic!("no operator {op}"));
        self.builder.call_op(op, &args, attrs.clone(), &[])
    }
}

/// The type of `op(args, attrs)` as text, or the error message.
#[allow(dead_code, reason = "not every test file asks for types as text")]
pub fn infer(op: &str, args: &[&str], attrs: &Attrs) -> Result<String, String> {
    let mut calls = Calls::new();
    let call = calls.call(op, args, attrs).map_err(|e| e.message)?;
    let ty = calls.func().expr_ty(call);
    Ok(type_text(calls.func(), ty))
}

/// Parses attributes that are separated by `;`: `axis=1`, `keepdims=true`, `axes=[0, 1]`,
/// `mode=clip`, `epsilon=1e-5`. `none` is the value `None`, and `"none"` is a string.
pub fn attrs(text: &str) -> Attrs {
    let mut out = Attrs::default();
    for pair in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').expect("key=value");
        out.set(key, attr_value(value));
    }
    out
}

fn attr_value(text: &str) -> AttrValue {
    if let Some(list) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return AttrValue::List(list.split(',').map(|v| attr_value(v.trim())).collect());
    }
    if let Some(text) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        return AttrValue::str(text);
    }
    match text {
        "true" => AttrValue::Bool(true),
        "false" => AttrValue::Bool(false),
        "none" => AttrValue::None,
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(v), _) => AttrValue::Int(v),
            (_, Ok(v)) => AttrValue::float(v),
            _ => AttrValue::str(text),
        },
    }
}

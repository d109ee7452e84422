//! Operator calls whose operands have a rank or data type that is only known at run time.
//!
//! Such a call becomes a call of the host function [`CALL_OPERATOR`] with the operator's name, the
//! call as a script over variables `a0`, `a1`, ..., and the values of these variables:
//! `R.call_packed("pliant.call_operator", R.str("relax.sum"), R.str("R.sum(a0, axis=[0])"), x)`. At
//! run time, this host function adds the types of the actual values ([`call_script`]) and compiles
//! the resulting function. Invalid operands are reported with the same messages as at compile time.

use pliant_ir::op::Op;
use pliant_ir::print::expr_text;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, TypeData};
use pliant_ir::{Attrs, DType, Span, Sym};

use crate::op_registry::registry;

/// The name of the host function (a function of the runtime that programs call by name) that executes calls of operators with
/// operands of unknown rank or data type.
pub const CALL_OPERATOR: &str = "pliant.call_operator";

/// Describes a call as a script, and returns the operands for the script's variables. Literals
/// remain in the script. A computed size becomes a separate operand. In the script, operand 3 is
/// called `n3` if it is a size, and `a3` otherwise.
pub fn describe_call(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    attrs: &Attrs,
) -> (String, Vec<Expr>) {
    let mut d = CallDescription { function: Function::empty(), operands: Vec::new() };
    let args: Vec<Expr> = args.iter().map(|&a| d.operand(func, a)).collect();
    let any = d.function.intern(TypeData::Any);
    let call = d.function.call(Callee::Op(op), &args, attrs.clone(), &[], any);
    (expr_text(&d.function, call, registry()), d.operands)
}

struct CallDescription {
    function: Function,
    operands: Vec<Expr>,
}

impl CallDescription {
    /// Returns the operand as it is written in the script. An operand that is not a literal becomes a variable of the
    /// script, and is added to the operands for the variables. Recurses into tuple expressions, whose depth the
    /// verifier limits.
    fn operand(&mut self, func: &mut Function, e: Expr) -> Expr {
        match func.expr(e).clone() {
            ExprData::Float(bits, dtype) => self.function.float_value(f64::from_bits(bits), dtype),
            ExprData::Str(text) => {
                let text = func.str(text).clone();
                self.function.str_value(&text)
            }
            ExprData::DType(dtype) => self.function.dtype_value(dtype),
            ExprData::Int(value, dtype) => {
                let value = self.size(func, value);
                self.function.int_value(value, dtype)
            }
            ExprData::Shape(dims) => {
                let dims: Vec<Sym> = dims.iter().map(|&d| self.size(func, d)).collect();
                self.function.shape(&dims)
            }
            ExprData::Tuple(list) => {
                let fields = func.list(list).to_vec();
                let fields: Vec<Expr> = fields.iter().map(|&f| self.operand(func, f)).collect();
                self.function.tuple(&fields)
            }
            ExprData::Call { callee, .. } if crate::type_inference::is_null(func, e) => {
                let any = self.function.intern(TypeData::Any);
                self.function.call(callee, &[], Attrs::default(), &[], any)
            }
            _ => {
                let any = self.function.intern(TypeData::Any);
                let name = format!("a{}", self.operands.len());
                let var = self.function.add_var(name, any, false, Span::NONE);
                self.operands.push(e);
                self.function.var_expr(var)
            }
        }
    }

    fn size(&mut self, func: &mut Function, size: Sym) -> Sym {
        if let Some(value) = func.syms.as_int(size) {
            return self.function.syms.int(value);
        }
        let symbol = self.function.fresh_sym(&format!("n{}", self.operands.len()));
        self.operands.push(func.int_value(size, DType::Int64));
        self.function.syms.var(symbol)
    }
}

/// The type of an operand, derived from its value at run time.
pub enum OperandType {
    /// A tensor; an unspecified dim becomes a new symbol.
    Tensor(Vec<Option<i64>>, DType),
    /// A shape; an unspecified dim becomes a new symbol.
    Shape(Vec<Option<i64>>),
    /// An integer scalar that is not a tensor and has no data type at run time.
    Int,
    /// A scalar of the given type.
    Scalar(DType),
    /// A tuple of operands with these types.
    Tuple(Vec<OperandType>),
    /// An operand of any other type.
    Other,
}

impl OperandType {
    /// Formats the type as script text. `name` is the prefix of the names of its symbols. The
    /// recursion follows nested tuples.
    fn text(&self, name: &str) -> String {
        let sizes = |dims: &[Option<i64>]| -> String {
            let size = |(i, d): (usize, &Option<i64>)| match d {
                Some(size) => format!("{size}, "),
                None => format!("\"{name}_{i}\", "),
            };
            dims.iter().enumerate().map(size).collect()
        };
        match self {
            OperandType::Tensor(dims, dtype) => {
                format!("R.Tensor(({}), dtype=\"{dtype}\")", sizes(dims).trim_end())
            }
            OperandType::Shape(dims) => {
                format!("R.Shape([{}])", sizes(dims).trim_end_matches(", "))
            }
            OperandType::Int => "R.Prim(\"int64\")".to_string(),
            OperandType::Scalar(dtype) => format!("R.Prim(\"{dtype}\")"),
            OperandType::Tuple(fields) => {
                let field = |(i, f): (usize, &OperandType)| f.text(&format!("{name}_{i}"));
                let fields: Vec<String> = fields.iter().enumerate().map(field).collect();
                format!("R.Tuple({})", fields.join(", "))
            }
            OperandType::Other => "R.Object".to_string(),
        }
    }
}

/// Creates a script with a function `main` that executes the call described by `text` on operands
/// of the types `operands`.
pub fn call_script(text: &str, operands: &[OperandType]) -> String {
    let (mut params, mut symbols) = (Vec::with_capacity(operands.len()), String::new());
    for (k, operand) in operands.iter().enumerate() {
        params.push(match operand {
            OperandType::Int => {
                symbols += &format!("    n{k} = T.int64()\n");
                format!("a{k}: R.Prim(value=\"n{k}\")")
            }
            other => format!("a{k}: {}", other.text(&format!("d{k}"))),
        });
    }
    let params = params.join(", ");
    format!(
        "{}\n@R.function\ndef main({params}) -> R.Object:\n{symbols}    gv = {text}\n    return gv\n",
        pliant_ir::print::HEADER
    )
}

//! layout_transform: moves elements by an index map.
//!
//! The map is a string such as `lambda i, j: (j // 4, i, j % 4)`. It may contain sums, differences and products of indices and
//! constants, and quotients and remainders by constants. The new shape follows from the value of the map at the last indices,
//! where each expression must have its maximum.

use pliant_ir::Sym;
use pliant_ir::op::InferError;

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::indexing::index_bounds;
use crate::shared_operator_rules::numel;
use crate::te::{self, Expr};
use crate::type_inference::{InferCtx, Precision};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.layout_transform",
    infer,
    "Moves each element to the indices that `index_map`, a lambda of its indices, computes. Elements of the result without a \
    source are `pad_value`, by default 0. The axis separators are accepted for compatibility with TVM and must be empty.",
)
.operands(&["x"])
.attrs(&[
    ("index_map", Default::Required),
    ("pad_value", Default::None),
    ("axis_separators", Default::None),
    ("input_axis_separators", Default::None),
])
.te(Pattern::Opaque, te_layout)
.errors(
    "`index_map` is not a lambda with one parameter per dim, or has fewer new positions than elements, or if `pad_value` does \
    not fit the type of `x`",
)];

/// An arithmetic expression over the indices of an index map.
#[derive(Debug)]
enum IndexExpr {
    Index(usize),
    Int(i64),
    Op(char, Box<IndexExpr>, Box<IndexExpr>),
}

/// An index map: the number of indices that it receives, and an expression for each new index.
struct IndexMap {
    inputs: usize,
    outputs: Vec<IndexExpr>,
}

/// Maximum nesting depth of the expressions in an index map.
const MAX_DEPTH: usize = 64;

struct IndexMapParser<'t> {
    tokens: Vec<&'t str>,
    position: usize,
    names: Vec<&'t str>,
    depth: usize,
}

/// Splits the text of an index map into names, numbers and operators; `None` if it contains anything else.
fn tokens(text: &str) -> Option<Vec<&str>> {
    let (mut out, mut rest) = (Vec::new(), text.trim_start());
    while let Some(c) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = match c {
            _ if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            '/' if rest.starts_with("//") => 2,
            '-' if rest.starts_with("->") => 2,
            '+' | '-' | '*' | '%' | '(' | ')' | '[' | ']' | ',' | ':' => 1,
            _ => return None,
        };
        out.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    Some(out)
}

impl<'t> IndexMapParser<'t> {
    fn peek(&self) -> &'t str {
        self.tokens.get(self.position).copied().unwrap_or("")
    }

    fn take(&mut self, token: &str) -> bool {
        let matches = self.peek() == token;
        self.position += usize::from(matches);
        matches
    }

    /// Parses the parameters of an index map: `lambda i, j:` or `i, j ->`.
    fn params(&mut self) -> Option<()> {
        self.take("lambda");
        while !self.take(":") && !self.take("->") {
            let name = self.peek();
            if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                || self.names.contains(&name)
            {
                return None;
            }
            self.names.push(name);
            self.position += 1;
            self.take(",");
        }
        Some(())
    }

    /// Parses the result of an index map: the expressions for the new indices, in parentheses, in brackets or bare.
    fn outputs(&mut self) -> Option<Vec<IndexExpr>> {
        let start = self.position;
        if self.take("(") || self.take("[") {
            let mut out = Vec::new();
            while !self.take(")") && !self.take("]") {
                out.push(self.sum()?);
                if !self.take(",") && !matches!(self.peek(), ")" | "]") {
                    return None;
                }
            }
            if self.position == self.tokens.len() {
                return Some(out);
            }
            // The parenthesis is part of the first expression.
            self.position = start;
        }
        let mut out = vec![self.sum()?];
        while self.take(",") {
            out.push(self.sum()?);
        }
        (self.position == self.tokens.len()).then_some(out)
    }

    fn sum(&mut self) -> Option<IndexExpr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut left = self.product()?;
        while matches!(self.peek(), "+" | "-") {
            let op = if self.take("+") {
                '+'
            } else {
                self.position += 1;
                '-'
            };
            left = IndexExpr::Op(op, Box::new(left), Box::new(self.product()?));
        }
        self.depth -= 1;
        Some(left)
    }

    fn product(&mut self) -> Option<IndexExpr> {
        let mut left = self.atom()?;
        loop {
            let op = match self.peek() {
                "*" => '*',
                "//" => '/',
                "%" => '%',
                _ => return Some(left),
            };
            self.position += 1;
            left = IndexExpr::Op(op, Box::new(left), Box::new(self.atom()?));
        }
    }

    fn atom(&mut self) -> Option<IndexExpr> {
        if self.take("-") {
            return Some(IndexExpr::Op('-', Box::new(IndexExpr::Int(0)), Box::new(self.number()?)));
        }
        if self.take("(") {
            let inner = self.sum()?;
            return self.take(")").then_some(inner);
        }
        self.number()
    }

    /// Parses an operand: the name of an index, or an integer constant.
    fn number(&mut self) -> Option<IndexExpr> {
        let token = self.peek();
        self.position += 1;
        match self.names.iter().position(|n| *n == token) {
            Some(k) => Some(IndexExpr::Index(k)),
            None => token.parse().ok().map(IndexExpr::Int),
        }
    }
}

/// Whether all quotients and remainders in an expression of an index map have positive constant divisors.
fn divides_by_constants(node: &IndexExpr) -> bool {
    match node {
        IndexExpr::Op(op, a, b) => {
            let constant = matches!(**b, IndexExpr::Int(v) if v > 0);
            (constant || !matches!(op, '/' | '%'))
                && divides_by_constants(a)
                && divides_by_constants(b)
        }
        _ => true,
    }
}

fn index_map(ctx: &InferCtx<'_>, rank: Option<usize>) -> Result<IndexMap, InferError> {
    let value = ctx.attr("index_map");
    let bad = || {
        ctx.error("index_map must be a lambda of the indices, such as lambda i, j: (j, i)")
            .with_help("the lambda may add, subtract and multiply indices, and divide them (// and %) by positive constants")
    };
    let text = value.as_str().ok_or_else(bad)?;
    let tokens = tokens(text).filter(|t| t.len() < 4096).ok_or_else(bad)?;
    let mut parser = IndexMapParser { tokens, position: 0, names: Vec::new(), depth: 0 };
    parser.params().ok_or_else(bad)?;
    let outputs = parser.outputs().ok_or_else(bad)?;
    if outputs.is_empty() || !outputs.iter().all(divides_by_constants) {
        return Err(bad());
    }
    let inputs = parser.names.len();
    if let Some(rank) = rank.filter(|&rank| rank != inputs) {
        let x = ctx.operand_type_text(0);
        return Err(ctx.error(format!(
            "index_map takes {inputs} indices, but must take {rank}, one for each dim of x: x is {x}"
        )));
    }
    Ok(IndexMap { inputs, outputs })
}

/// The maximum value of an expression of an index map: its value at the maximum indices
/// `max_indices`. A remainder is at most the divisor minus 1.
fn max_value(ctx: &mut InferCtx<'_>, node: &IndexExpr, max_indices: &[Sym]) -> Sym {
    match node {
        IndexExpr::Index(k) => max_indices[*k],
        IndexExpr::Int(v) => ctx.func.syms.int(*v),
        IndexExpr::Op(op, a, b) => {
            let (a, b) = (max_value(ctx, a, max_indices), max_value(ctx, b, max_indices));
            let syms = &mut ctx.func.syms;
            match op {
                '+' => syms.add(a, b),
                '-' => syms.sub(a, b),
                '*' => syms.mul(a, b),
                '/' => syms.floordiv(a, b),
                _ => {
                    let one = syms.int(1);
                    let max_remainder = syms.sub(b, one);
                    match crate::size_proofs::at_most(ctx.func, max_remainder, a) {
                        Some(true) => max_remainder,
                        Some(false) => a,
                        None if ctx.precision == Precision::Tvm => max_remainder,
                        None => ctx.func.syms.min(a, max_remainder),
                    }
                }
            }
        }
    }
}

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor_with_known_dims(0)?;
    let map = index_map(ctx, t.ndim)?;
    for key in ["axis_separators", "input_axis_separators"] {
        if ctx.list(key)?.is_some_and(|list| !list.is_empty()) {
            return Err(ctx.error(format!(
                "attribute {key} must be empty, because every buffer has a single physical axis"
            )));
        }
    }
    if !ctx.attr("pad_value").is_none() {
        ctx.element_value("pad_value", t.dtype)?;
    }
    let Some(dims) = t.dims else {
        return Ok(ctx.tensor_type(None, Some(map.outputs.len()), t.dtype));
    };
    let one = ctx.func.syms.int(1);
    let max_indices: Vec<Sym> = dims.iter().map(|&d| ctx.func.syms.sub(d, one)).collect();
    let out = map.outputs.iter().map(|node| {
        let last = max_value(ctx, node, &max_indices);
        ctx.func.syms.add(last, one)
    });
    let out: Vec<Sym> = out.collect();
    let (before, after) = (numel(ctx, &dims), numel(ctx, &out));
    if crate::size_proofs::at_most(ctx.func, before, after) == Some(false) {
        let (before, after) = (ctx.dim_text(before), ctx.dim_text(after));
        return Err(ctx.error(format!(
            "index_map maps {before} elements to {after} positions, so it is not injective"
        )));
    }
    Ok(ctx.tensor_type(Some(out), None, t.dtype))
}

fn evaluate(node: &IndexExpr, i: &[Expr]) -> Expr {
    match node {
        IndexExpr::Index(k) => i[*k].clone(),
        IndexExpr::Int(v) => te::int(*v),
        IndexExpr::Op(op, a, b) => {
            let (a, b) = (evaluate(a, i), evaluate(b, i));
            match op {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                '/' => te::floordiv(&a, &b),
                _ => te::floormod(&a, &b),
            }
        }
    }
}

fn te_layout(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (dims, out_dims) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let (x, shape) = (ctx.tensor(0)?, ctx.out_shape(0)?);
    let mut infer = ctx.infer();
    let (before, after) = (numel(&mut infer, &dims), numel(&mut infer, &out_dims));
    let fits = crate::size_proofs::at_most(infer.func, before, after) == Some(true);
    let map = index_map(&infer, Some(x.ndim()))?;
    let pad = if infer.attr("pad_value").is_none() { 0.0 } else { infer.float("pad_value")? };
    let pad = te::const_of(pad, x.dtype());
    let (before, after) = (ctx.size(before), ctx.size(after));
    debug_assert_eq!(map.inputs, x.ndim());
    Ok(te::extern_("layout_transform", &[(shape.clone(), x.dtype())], |b, out| {
        if !fits {
            let message = "relax.layout_transform: index_map maps {0} elements to {1} positions";
            let cond = te::le(&before, &after);
            b.assert(&te::explain(&cond, &[before.clone(), after.clone()]), message);
        }
        b.for_each(&shape, |b, i| b.store(&out[0], i, &pad));
        b.for_each(x.shape(), |b, i| {
            let to: Vec<Expr> = map
                .outputs
                .iter()
                .zip(&shape)
                .map(|(node, size)| index_bounds::clamp(&evaluate(node, i), size))
                .collect();
            b.store(&out[0], &to, &x.at(i));
        });
    }))
}

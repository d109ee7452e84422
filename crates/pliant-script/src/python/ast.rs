//! The syntax tree of Python code. Names and strings without escapes borrow from the source text.

use std::borrow::Cow;

/// A byte range of the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Range {
    /// The smallest range that contains both ranges.
    pub fn join(self, other: Range) -> Range {
        Range { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A Python expression.
#[derive(Debug)]
pub struct Expr<'a> {
    /// The kind of the expression, with its operands.
    pub kind: ExprKind<'a>,
    /// The source range of the expression.
    pub range: Range,
    /// The nesting depth: 1 plus the depth of the deepest operand. At most [`super::MAX_EXPR_DEPTH`].
    pub depth: u16,
}

/// Python's binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinOp {
    /// The binary operator `+`.
    Add,
    /// The binary operator `-`.
    Sub,
    /// The binary operator `*`.
    Mul,
    /// The operator `/`.
    Div,
    /// The operator `//`.
    FloorDiv,
    /// The operator `%`.
    Mod,
    /// The operator `**`.
    Pow,
    /// The binary operator `@`, the matrix product.
    MatMul,
    /// The operator `<<`.
    Shl,
    /// The operator `>>`.
    Shr,
    /// The operator `&`.
    BitAnd,
    /// The operator `|`.
    BitOr,
    /// The operator `^`.
    BitXor,
}

impl BinOp {
    /// The operator as it is written in Python.
    pub fn symbol(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::FloorDiv => "//",
            BinOp::Mod => "%",
            BinOp::Pow => "**",
            BinOp::MatMul => "@",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::BitAnd => "&",
            BinOp::BitOr => "|",
            BinOp::BitXor => "^",
        }
    }
}

/// Python's comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmpOp {
    /// The operator `==`.
    Eq,
    /// The operator `!=`.
    Ne,
    /// The operator `<`.
    Lt,
    /// The operator `<=`.
    Le,
    /// The operator `>`.
    Gt,
    /// The operator `>=`.
    Ge,
    /// `in`, `not in`, `is` or `is not`. The parser does not evaluate these operators itself, but passes the whole expression to
    /// Python.
    Host,
}

/// Python's unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// The unary operator `-`.
    Neg,
    /// The unary operator `+`.
    Pos,
    /// The unary operator `~`.
    Invert,
    /// The unary operator `not`.
    Not,
}

/// The kinds of Python expressions, with their operands.
#[derive(Debug)]
pub enum ExprKind<'a> {
    /// A name, such as `x`.
    Name(&'a str),
    /// An integer that fits `i64`.
    Int(i64),
    /// An integer that fits `u64` but not `i64`.
    BigInt(u64),
    /// A floating-point literal.
    Float(f64),
    /// A string with its escapes resolved.
    Str(Cow<'a, str>),
    /// The literal `True` or `False`.
    Bool(bool),
    /// The literal `None`.
    None,
    /// A tuple, with or without parentheses.
    Tuple(Vec<Expr<'a>>),
    /// A list display, such as `[a, b]`.
    List(Vec<Expr<'a>>),
    /// A dict display, as pairs of keys and values.
    Dict(Vec<(Expr<'a>, Expr<'a>)>),
    /// An attribute access `value.name`: the value, the name, and the source range of the name.
    Attribute(Box<Expr<'a>>, &'a str, Range),
    /// A subscript `value[index]`.
    Subscript(Box<Expr<'a>>, Box<Expr<'a>>),
    /// A slice `lower:upper:step`, which occurs only in subscripts.
    Slice(Option<Box<Expr<'a>>>, Option<Box<Expr<'a>>>, Option<Box<Expr<'a>>>),
    /// A call, with its callee and arguments.
    Call(Box<Call<'a>>),
    /// A unary operator applied to an operand.
    Unary(UnaryOp, Box<Expr<'a>>),
    /// A binary operator applied to two operands.
    Binary(BinOp, Box<Expr<'a>>, Box<Expr<'a>>),
    /// A chain of comparisons, such as `a < b <= c`.
    Compare(Box<Expr<'a>>, Vec<(CmpOp, Expr<'a>)>),
    /// The logical operation `a and b`.
    And(Box<Expr<'a>>, Box<Expr<'a>>),
    /// The logical operation `a or b`.
    Or(Box<Expr<'a>>, Box<Expr<'a>>),
    /// The conditional expression `a if cond else b`, with the operands in the order `cond`, `a`, `b`.
    IfExp(Box<[Expr<'a>; 3]>),
    /// An argument or item that is unpacked, `*value`.
    Starred(Box<Expr<'a>>),
    /// `lambda a, b: value` with plain parameters. The parser accepts it as an argument of loops. Elsewhere the surrounding Python
    /// program evaluates it.
    Lambda(Box<Lambda<'a>>),
    /// A Python expression that the parser does not analyze, such as a comprehension or an f-string. Only the surrounding Python
    /// program can evaluate it.
    Host,
}

/// A lambda expression.
#[derive(Debug)]
pub struct Lambda<'a> {
    /// The names of the lambda's parameters.
    pub params: Vec<&'a str>,
    /// The expression that the lambda returns.
    pub body: Expr<'a>,
}

/// A call expression.
#[derive(Debug)]
pub struct Call<'a> {
    /// The called expression.
    pub func: Expr<'a>,
    /// The positional arguments of the call.
    pub args: Vec<Expr<'a>>,
    /// The keyword arguments. `**x` has the name `**`.
    pub keywords: Vec<Keyword<'a>>,
}

/// A keyword argument of a call.
#[derive(Debug)]
pub struct Keyword<'a> {
    /// The name of the argument.
    pub name: &'a str,
    /// The source range of the argument's name.
    pub range: Range,
    /// The value of the argument.
    pub value: Expr<'a>,
}

impl<'a> Expr<'a> {
    /// The identifier, if the expression is a name; `None` for other expressions.
    pub fn as_name(&self) -> Option<&'a str> {
        match self.kind {
            ExprKind::Name(n) => Some(n),
            _ => None,
        }
    }

    /// The text, if the expression is a string; `None` for other expressions.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The items, if the expression is a tuple or a list; `None` for other expressions.
    pub fn as_sequence(&self) -> Option<&[Expr<'a>]> {
        match &self.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => Some(items),
            _ => None,
        }
    }

    /// The call, if the expression is one; `None` for other expressions.
    pub fn as_call(&self) -> Option<&Call<'a>> {
        match &self.kind {
            ExprKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The components of a dotted path `a.b.c` from left to right; `None` for other expressions.
    pub fn dotted(&self) -> Option<Vec<&'a str>> {
        let mut parts = Vec::new();
        let mut at = self;
        loop {
            match &at.kind {
                ExprKind::Name(n) => {
                    parts.push(*n);
                    parts.reverse();
                    return Some(parts);
                }
                ExprKind::Attribute(value, name, _) => {
                    parts.push(*name);
                    at = value;
                }
                _ => return None,
            }
        }
    }
}

/// A Python statement.
#[derive(Debug)]
pub struct Stmt<'a> {
    /// The kind of the statement, with its parts.
    pub kind: StmtKind<'a>,
    /// The source range. For compound statements such as `if`, it only covers the header.
    pub range: Range,
}

/// The kinds of Python statements, with their parts.
#[derive(Debug)]
pub enum StmtKind<'a> {
    /// An expression that is used as a statement.
    Expr(Expr<'a>),
    /// An assignment `a = b = value`: the targets and the value.
    Assign(Vec<Expr<'a>>, Expr<'a>),
    /// An assignment with a type annotation, `target: annotation = value`. The value may be absent.
    AnnAssign(Expr<'a>, Expr<'a>, Option<Expr<'a>>),
    /// `target += value`, or another augmented assignment.
    AugAssign(Expr<'a>, BinOp, Expr<'a>),
    /// A `return` statement, with its value if there is one.
    Return(Option<Expr<'a>>),
    /// `if cond: ... else: ...`, as the condition and both branches. An `elif` is an `if` nested in the else branch.
    If(Expr<'a>, Vec<Stmt<'a>>, Vec<Stmt<'a>>),
    /// A loop `for target in iter: body`.
    For(Expr<'a>, Expr<'a>, Vec<Stmt<'a>>),
    /// A loop `while cond: body`.
    While(Expr<'a>, Vec<Stmt<'a>>),
    /// A `with` statement, `with item as target, ...: body`: the items with their targets, and the body.
    With(Vec<(Expr<'a>, Option<Expr<'a>>)>, Vec<Stmt<'a>>),
    /// A function definition, `def`.
    FunctionDef(Box<FunctionDef<'a>>),
    /// A class definition, `class`.
    ClassDef(Box<ClassDef<'a>>),
    /// An assertion `assert cond, message`. The message may be absent.
    Assert(Expr<'a>, Option<Expr<'a>>),
    /// A statement without effect: `pass`, `...` or a docstring.
    Pass,
    /// A statement `import a.b as c`: for each imported module, its path and the name to which it is bound.
    Import(Vec<(String, &'a str)>),
    /// A statement `from a.b import c as d`: for each imported object, its full path `a.b.c` and the name to which it is bound.
    ImportFrom(Vec<(String, &'a str)>),
    /// An unsupported statement, represented by its keyword.
    Other(&'static str),
}

/// A function definition.
#[derive(Debug)]
pub struct FunctionDef<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// The source range of the function's name.
    pub name_range: Range,
    /// The parameters of the function.
    pub params: Vec<Param<'a>>,
    /// The type parameters of `def f[N](...)`.
    pub type_params: Vec<&'a str>,
    /// The annotation of the result type.
    pub returns: Option<Expr<'a>>,
    /// The decorators of the function, from top to bottom.
    pub decorators: Vec<Expr<'a>>,
    /// The statements of the function's body.
    pub body: Vec<Stmt<'a>>,
    /// The range of the first unsupported part of the parameter list, such as a default value or
    /// `*`.
    pub unsupported: Option<Range>,
}

/// A parameter of a function definition.
#[derive(Debug)]
pub struct Param<'a> {
    /// The name of the parameter.
    pub name: &'a str,
    /// The source range of the parameter's name.
    pub range: Range,
    /// The type annotation of the parameter.
    pub annotation: Option<Expr<'a>>,
}

/// A class definition.
#[derive(Debug)]
pub struct ClassDef<'a> {
    /// The name of the class.
    pub name: &'a str,
    /// The source range of the class's name.
    pub name_range: Range,
    /// The decorators of the class, from top to bottom.
    pub decorators: Vec<Expr<'a>>,
    /// The statements of the class's body.
    pub body: Vec<Stmt<'a>>,
}

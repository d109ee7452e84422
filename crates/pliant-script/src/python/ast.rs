//! The syntax tree. Names and plain strings borrow from the source text.

use std::borrow::Cow;

/// A byte range of the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Range {
    /// The range of both and all between.
    pub fn join(self, other: Range) -> Range {
        Range { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// An expression.
#[derive(Debug)]
pub struct Expr<'a> {
    /// What it is.
    pub kind: ExprKind<'a>,
    /// Where it stands.
    pub range: Range,
    /// One more than the deepest operand; bounded by [`super::MAX_EXPR_DEPTH`].
    pub depth: u16,
}

/// Two-operand operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `//`
    FloorDiv,
    /// `%`
    Mod,
    /// `**`
    Pow,
    /// `@`
    MatMul,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
}

impl BinOp {
    /// As it is written.
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

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmpOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `in`, `not in`, `is`, `is not`: only host expressions have them.
    Host,
}

/// One-operand operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `+`
    Pos,
    /// `~`
    Invert,
    /// `not`
    Not,
}

/// An expression.
#[derive(Debug)]
pub enum ExprKind<'a> {
    /// A name.
    Name(&'a str),
    /// An integer that fits 64 bits.
    Int(i64),
    /// An integer that fits 64 bits only without a sign.
    BigInt(u64),
    /// A float.
    Float(f64),
    /// A string, its escapes resolved.
    Str(Cow<'a, str>),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// A tuple, in parentheses or bare.
    Tuple(Vec<Expr<'a>>),
    /// A list.
    List(Vec<Expr<'a>>),
    /// A dict.
    Dict(Vec<(Expr<'a>, Expr<'a>)>),
    /// `value.name`; the range is that of the name.
    Attribute(Box<Expr<'a>>, &'a str, Range),
    /// `value[index]`.
    Subscript(Box<Expr<'a>>, Box<Expr<'a>>),
    /// `lower:upper:step`, only in subscripts.
    Slice(Option<Box<Expr<'a>>>, Option<Box<Expr<'a>>>, Option<Box<Expr<'a>>>),
    /// A call.
    Call(Box<Call<'a>>),
    /// A one-operand operator.
    Unary(UnaryOp, Box<Expr<'a>>),
    /// A two-operand operator.
    Binary(BinOp, Box<Expr<'a>>, Box<Expr<'a>>),
    /// A chain of comparisons.
    Compare(Box<Expr<'a>>, Vec<(CmpOp, Expr<'a>)>),
    /// `a and b`.
    And(Box<Expr<'a>>, Box<Expr<'a>>),
    /// `a or b`.
    Or(Box<Expr<'a>>, Box<Expr<'a>>),
    /// `then if cond else otherwise`: condition, then, otherwise.
    IfExp(Box<[Expr<'a>; 3]>),
    /// `*value`.
    Starred(Box<Expr<'a>>),
    /// `lambda a, b: value` with plain parameters. Only loops read it; elsewhere the host evaluates it.
    Lambda(Box<Lambda<'a>>),
    /// Any other Python expression (a comprehension, an f-string): only the host can evaluate it.
    Host,
}

/// A lambda.
#[derive(Debug)]
pub struct Lambda<'a> {
    /// The names of its parameters.
    pub params: Vec<&'a str>,
    /// Its value.
    pub body: Expr<'a>,
}

/// A call.
#[derive(Debug)]
pub struct Call<'a> {
    /// What is called.
    pub func: Expr<'a>,
    /// Positional arguments.
    pub args: Vec<Expr<'a>>,
    /// Keyword arguments; `**x` has the name `**`.
    pub keywords: Vec<Keyword<'a>>,
}

/// A keyword argument.
#[derive(Debug)]
pub struct Keyword<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where the name stands.
    pub range: Range,
    /// Its value.
    pub value: Expr<'a>,
}

impl<'a> Expr<'a> {
    /// The name, if it is one.
    pub fn as_name(&self) -> Option<&'a str> {
        match self.kind {
            ExprKind::Name(n) => Some(n),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The items of a tuple or list.
    pub fn as_sequence(&self) -> Option<&[Expr<'a>]> {
        match &self.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => Some(items),
            _ => None,
        }
    }

    /// The call, if it is one.
    pub fn as_call(&self) -> Option<&Call<'a>> {
        match &self.kind {
            ExprKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The names of a dotted path `a.b.c`, outermost last; `None` for anything else.
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

/// A statement.
#[derive(Debug)]
pub struct Stmt<'a> {
    /// What it is.
    pub kind: StmtKind<'a>,
    /// Where it stands; for compound statements, the header only.
    pub range: Range,
}

/// A statement.
#[derive(Debug)]
pub enum StmtKind<'a> {
    /// An expression.
    Expr(Expr<'a>),
    /// `a = b = value`.
    Assign(Vec<Expr<'a>>, Expr<'a>),
    /// `target: annotation = value`.
    AnnAssign(Expr<'a>, Expr<'a>, Option<Expr<'a>>),
    /// `target += value`.
    AugAssign(Expr<'a>, BinOp, Expr<'a>),
    /// `return value`.
    Return(Option<Expr<'a>>),
    /// `if`; `elif` nests in the last field.
    If(Expr<'a>, Vec<Stmt<'a>>, Vec<Stmt<'a>>),
    /// `for target in iter`.
    For(Expr<'a>, Expr<'a>, Vec<Stmt<'a>>),
    /// `while`.
    While(Expr<'a>, Vec<Stmt<'a>>),
    /// `with item as target, ...`.
    With(Vec<(Expr<'a>, Option<Expr<'a>>)>, Vec<Stmt<'a>>),
    /// `def`.
    FunctionDef(Box<FunctionDef<'a>>),
    /// `class`.
    ClassDef(Box<ClassDef<'a>>),
    /// `assert cond, message`.
    Assert(Expr<'a>, Option<Expr<'a>>),
    /// `pass`, `...` and doc strings.
    Pass,
    /// `import a.b as c`: the path and the name it is bound to.
    Import(Vec<(String, &'a str)>),
    /// `from a.b import c as d`: the full path `a.b.c` and the name it is bound to.
    ImportFrom(Vec<(String, &'a str)>),
    /// A statement that scripts cannot contain, by its keyword.
    Other(&'static str),
}

/// A function definition.
#[derive(Debug)]
pub struct FunctionDef<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where the name stands.
    pub name_range: Range,
    /// The parameters.
    pub params: Vec<Param<'a>>,
    /// The type parameters of `def f[N](...)`.
    pub type_params: Vec<&'a str>,
    /// The result's annotation.
    pub returns: Option<Expr<'a>>,
    /// The decorators.
    pub decorators: Vec<Expr<'a>>,
    /// The body.
    pub body: Vec<Stmt<'a>>,
    /// The first thing in the parameter list that no script function has: a default, a `*`.
    pub unsupported: Option<Range>,
}

/// A parameter.
#[derive(Debug)]
pub struct Param<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where the name stands.
    pub range: Range,
    /// Its annotation.
    pub annotation: Option<Expr<'a>>,
}

/// A class definition.
#[derive(Debug)]
pub struct ClassDef<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where the name stands.
    pub name_range: Range,
    /// The decorators.
    pub decorators: Vec<Expr<'a>>,
    /// The body.
    pub body: Vec<Stmt<'a>>,
}

//! The parser of Python expressions, which uses precedence climbing.

use super::ast::*;
use super::lexer::{Tok, op_code};
use super::literals::{Literal, Number, number_value, string_value};
use super::statement_parser::{Parser, Result, SyntaxError, is_keyword};
use super::{MAX_EXPR_DEPTH, with_stack_segment};

/// The precedence of Python's comparison operators. It is higher than the precedences of `or`, `and` and `not`.
const COMPARE: u8 = 4;
/// The lowest precedence above comparisons. Targets of `for` are parsed with this precedence, so that they end before `in`.
const BIT_OR: u8 = 5;

/// Python's left-associative binary operators: the code of the token, the precedence, and the operator.
const BINARY: &[(u32, u8, BinOp)] = &[
    (op_code("|"), BIT_OR, BinOp::BitOr),
    (op_code("^"), 6, BinOp::BitXor),
    (op_code("&"), 7, BinOp::BitAnd),
    (op_code("<<"), 8, BinOp::Shl),
    (op_code(">>"), 8, BinOp::Shr),
    (op_code("+"), 9, BinOp::Add),
    (op_code("-"), 9, BinOp::Sub),
    (op_code("*"), 10, BinOp::Mul),
    (op_code("/"), 10, BinOp::Div),
    (op_code("//"), 10, BinOp::FloorDiv),
    (op_code("%"), 10, BinOp::Mod),
    (op_code("@"), 10, BinOp::MatMul),
];

impl<'a> Parser<'a> {
    fn too_deep(&self, range: Range) -> SyntaxError {
        let message =
            format!("expression is nested too deeply: at most {MAX_EXPR_DEPTH} levels are allowed");
        SyntaxError::fatal(range, message).with_help(
            "assign inner parts of the expression to variables in earlier statements, and use the variables in the expression",
        )
    }

    /// Creates an expression node with the source range `range`. `operands` is the nesting depth of the deepest operand of the
    /// node.
    fn node(&mut self, kind: ExprKind<'a>, range: Range, operands: u16) -> Result<Expr<'a>> {
        if operands >= MAX_EXPR_DEPTH {
            return Err(self.too_deep(range));
        }
        self.max_expr_depth = self.max_expr_depth.max(operands + 1);
        Ok(Expr { kind, range, depth: operands + 1 })
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > MAX_EXPR_DEPTH {
            return Err(self.too_deep(self.cur.range));
        }
        let out = with_stack_segment(|| parse(self))?;
        self.depth -= 1;
        Ok(out)
    }

    fn from(&self, start: u32) -> Range {
        Range { start, end: self.last_end.max(start) }
    }

    /// Parses one or more expressions separated by commas. Several expressions form a tuple.
    pub(super) fn expression_list(&mut self) -> Result<Expr<'a>> {
        let first = self.starred_or_expression()?;
        self.rest_of_tuple(first, Self::starred_or_expression)
    }

    /// Parses the targets of `for` or `with`, separated by commas, up to `in`. Several targets form a tuple.
    pub(super) fn target_list(&mut self) -> Result<Expr<'a>> {
        let target = |p: &mut Self| p.nested(|p| p.binary(BIT_OR));
        let first = target(self)?;
        self.rest_of_tuple(first, target)
    }

    fn rest_of_tuple(
        &mut self,
        first: Expr<'a>,
        mut item: impl FnMut(&mut Self) -> Result<Expr<'a>>,
    ) -> Result<Expr<'a>> {
        if !self.at_op(",") {
            return Ok(first);
        }
        let (start, mut depth) = (first.range.start, first.depth);
        let mut items = vec![first];
        while self.eat_op(",")? {
            if !self.starts_expression() {
                break;
            }
            let next = item(self)?;
            depth = depth.max(next.depth);
            items.push(next);
        }
        self.node(ExprKind::Tuple(items), self.from(start), depth)
    }

    fn starts_expression(&self) -> bool {
        match self.cur.kind {
            Tok::Number | Tok::Str => true,
            Tok::Name => {
                let word = self.cur_text();
                !is_keyword(word) || matches!(word, "None" | "True" | "False" | "not" | "lambda")
            }
            Tok::Op => matches!(self.cur_text(), "(" | "[" | "{" | "-" | "+" | "~" | "*" | "..."),
            _ => false,
        }
    }

    fn starred_or_expression(&mut self) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        if self.eat_op("*")? {
            let value = self.nested(|p| p.binary(BIT_OR))?;
            let depth = value.depth;
            return self.node(ExprKind::Starred(Box::new(value)), self.from(start), depth);
        }
        self.expression()
    }

    /// Parses a single expression, without commas at the top level.
    pub(super) fn expression(&mut self) -> Result<Expr<'a>> {
        self.nested(|p| {
            if p.at_word("lambda") {
                return p.lambda();
            }
            let then = p.binary(1)?;
            if !p.at_word("if") {
                return Ok(then);
            }
            p.advance()?;
            let cond = p.binary(1)?;
            if !p.eat_word("else")? {
                return Err(p.unexpected(
                    "expected 'else' after the condition of a conditional expression",
                ));
            }
            let otherwise = p.expression()?;
            let depth = cond.depth.max(then.depth).max(otherwise.depth);
            let range = then.range.join(otherwise.range);
            p.node(ExprKind::IfExp(Box::new([cond, then, otherwise])), range, depth)
        })
    }

    fn lambda(&mut self) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        self.advance()?;
        let (mut params, mut plain) = (Vec::new(), true);
        while !self.at_op(":") {
            if self.eat_op("*")? || self.eat_op("**")? || self.eat_op("/")? {
                plain = false;
            } else {
                params.push(self.identifier()?.0);
                if self.eat_op("=")? {
                    self.expression()?;
                    plain = false;
                }
            }
            if !self.at_op(":") && !self.eat_op(",")? && self.cur.kind != Tok::Name {
                return Err(self.unexpected("expected ':' after the parameters of a lambda"));
            }
        }
        self.advance()?;
        let body = self.expression()?;
        let depth = body.depth;
        let kind = match plain {
            true => ExprKind::Lambda(Box::new(Lambda { params, body })),
            false => ExprKind::Host,
        };
        self.node(kind, self.from(start), depth)
    }

    /// Parses a chain of binary operators whose precedence is at least `min`.
    fn binary(&mut self, min: u8) -> Result<Expr<'a>> {
        let mut left = self.unary(min)?;
        loop {
            if self.cur.kind == Tok::Name {
                let prec = match self.cur_text() {
                    "or" => 1,
                    "and" => 2,
                    "in" | "not" | "is" if min <= COMPARE => {
                        left = self.comparison(left)?;
                        continue;
                    }
                    _ => return Ok(left),
                };
                if prec < min {
                    return Ok(left);
                }
                self.advance()?;
                let right = self.nested(|p| p.binary(prec + 1))?;
                let (range, depth) = (left.range.join(right.range), left.depth.max(right.depth));
                let (a, b) = (Box::new(left), Box::new(right));
                let kind = if prec == 1 { ExprKind::Or(a, b) } else { ExprKind::And(a, b) };
                left = self.node(kind, range, depth)?;
                continue;
            }
            if self.cur.kind != Tok::Op {
                return Ok(left);
            }
            let code = self.cur.op;
            if compare_op(code).is_some() {
                if min > COMPARE {
                    return Ok(left);
                }
                left = self.comparison(left)?;
                continue;
            }
            let Some(&(_, prec, op)) = BINARY.iter().find(|row| row.0 == code) else {
                return Ok(left);
            };
            if prec < min {
                return Ok(left);
            }
            self.advance()?;
            let right = self.nested(|p| p.binary(prec + 1))?;
            let (range, depth) = (left.range.join(right.range), left.depth.max(right.depth));
            left =
                self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), range, depth)?;
        }
    }

    fn comparison(&mut self, first: Expr<'a>) -> Result<Expr<'a>> {
        let (mut range, mut depth) = (first.range, first.depth);
        let mut rest = Vec::new();
        loop {
            let op = match (self.cur.kind, self.cur_text()) {
                (Tok::Op, _) => match compare_op(self.cur.op) {
                    Some(op) => op,
                    None => break,
                },
                (Tok::Name, "in") => CmpOp::Host,
                (Tok::Name, "is") => {
                    self.advance()?;
                    if self.at_word("not") {
                        self.advance()?;
                    }
                    let right = self.nested(|p| p.binary(BIT_OR))?;
                    depth = depth.max(right.depth);
                    range = range.join(right.range);
                    rest.push((CmpOp::Host, right));
                    continue;
                }
                (Tok::Name, "not") => {
                    self.advance()?;
                    if !self.at_word("in") {
                        return Err(self.unexpected("expected 'in' after the operator 'not'"));
                    }
                    CmpOp::Host
                }
                _ => break,
            };
            self.advance()?;
            let right = self.nested(|p| p.binary(BIT_OR))?;
            depth = depth.max(right.depth);
            range = range.join(right.range);
            rest.push((op, right));
        }
        if rest.iter().any(|(op, _)| *op == CmpOp::Host) {
            return self.node(ExprKind::Host, range, depth);
        }
        self.node(ExprKind::Compare(Box::new(first), rest), range, depth)
    }

    fn unary(&mut self, min: u8) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        let (op, level) = match (self.cur.kind, self.cur_text()) {
            (Tok::Op, "-") => (UnaryOp::Neg, 11),
            (Tok::Op, "+") => (UnaryOp::Pos, 11),
            (Tok::Op, "~") => (UnaryOp::Invert, 11),
            (Tok::Name, "not") if min <= 3 => (UnaryOp::Not, 3),
            _ => return self.power(),
        };
        self.advance()?;
        let value = self.nested(|p| if level == 3 { p.binary(3) } else { p.unary(level) })?;
        // `i64::MIN` is the only integer whose magnitude does not fit `i64`.
        if op == UnaryOp::Neg && matches!(value.kind, ExprKind::BigInt(v) if v == 1 << 63) {
            return self.node(ExprKind::Int(i64::MIN), self.from(start), 0);
        }
        let depth = value.depth;
        self.node(ExprKind::Unary(op, Box::new(value)), self.from(start), depth)
    }

    fn power(&mut self) -> Result<Expr<'a>> {
        let base = self.primary()?;
        if !self.eat_op("**")? {
            return Ok(base);
        }
        let exponent = self.nested(|p| p.unary(11))?;
        let (range, depth) = (base.range.join(exponent.range), base.depth.max(exponent.depth));
        self.node(ExprKind::Binary(BinOp::Pow, Box::new(base), Box::new(exponent)), range, depth)
    }

    fn primary(&mut self) -> Result<Expr<'a>> {
        let mut value = self.atom()?;
        let start = value.range.start;
        loop {
            if self.eat_op(".")? {
                let (name, range) = self.identifier()?;
                let depth = value.depth;
                let kind = ExprKind::Attribute(Box::new(value), name, range);
                value = self.node(kind, self.from(start), depth)?;
            } else if self.at_op("(") {
                value = self.call(value)?;
            } else if self.eat_op("[")? {
                let index = self.subscript()?;
                self.expect_op("]")?;
                let depth = value.depth.max(index.depth);
                let kind = ExprKind::Subscript(Box::new(value), Box::new(index));
                value = self.node(kind, self.from(start), depth)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn call(&mut self, func: Expr<'a>) -> Result<Expr<'a>> {
        let (start, mut depth) = (func.range.start, func.depth);
        self.advance()?;
        let (mut args, mut keywords) = (Vec::new(), Vec::<Keyword<'a>>::new());
        while !self.at_op(")") {
            let range = self.cur.range;
            if self.eat_op("**")? {
                let value = self.expression()?;
                depth = depth.max(value.depth);
                keywords.push(Keyword { name: "**", range, value });
            } else {
                let arg = self.starred_or_expression()?;
                if self.at_op("=") {
                    let Some(name) = arg.as_name() else {
                        return Err(
                            self.unexpected("expected the name of a keyword argument before '='")
                        );
                    };
                    self.advance()?;
                    let value = self.expression()?;
                    depth = depth.max(value.depth);
                    keywords.push(Keyword { name, range, value });
                } else {
                    let arg = self.maybe_comprehension(arg, start)?;
                    depth = depth.max(arg.depth);
                    if let Some(before) = keywords.last() {
                        let message = format!(
                            "a positional argument cannot follow the keyword argument '{}'",
                            before.name
                        );
                        return Err(SyntaxError::new(arg.range, message));
                    }
                    args.push(arg);
                }
            }
            if !self.at_op(")") {
                self.expect_op(",")?;
            }
        }
        self.expect_op(")")?;
        self.node(ExprKind::Call(Box::new(Call { func, args, keywords })), self.from(start), depth)
    }

    fn subscript(&mut self) -> Result<Expr<'a>> {
        let first = self.slice_item()?;
        if !self.at_op(",") {
            return Ok(first);
        }
        let (start, mut depth) = (first.range.start, first.depth);
        let mut items = vec![first];
        while self.eat_op(",")? {
            if self.at_op("]") {
                break;
            }
            let item = self.slice_item()?;
            depth = depth.max(item.depth);
            items.push(item);
        }
        self.node(ExprKind::Tuple(items), self.from(start), depth)
    }

    fn slice_item(&mut self) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        let lower = if self.at_op(":") { None } else { Some(self.starred_or_expression()?) };
        if !self.at_op(":") {
            return lower.ok_or_else(|| {
                self.unexpected("expected an index or a slice in the brackets of a subscript")
            });
        }
        self.advance()?;
        let bound = |p: &mut Self| -> Result<Option<Expr<'a>>> {
            if p.at_op(":") || p.at_op(",") || p.at_op("]") {
                Ok(None)
            } else {
                p.expression().map(Some)
            }
        };
        let upper = bound(self)?;
        let step = if self.eat_op(":")? { bound(self)? } else { None };
        let depth =
            [&lower, &upper, &step].iter().filter_map(|e| e.as_ref().map(|e| e.depth)).max();
        let kind = ExprKind::Slice(lower.map(Box::new), upper.map(Box::new), step.map(Box::new));
        self.node(kind, self.from(start), depth.unwrap_or(0))
    }

    // ---- atoms ----

    fn atom(&mut self) -> Result<Expr<'a>> {
        let range = self.cur.range;
        match self.cur.kind {
            Tok::Name => self.name_atom(),
            Tok::Number => {
                let kind = match number_value(self.cur_text()) {
                    Number::Int(v) => ExprKind::Int(v),
                    Number::BigInt(v) => ExprKind::BigInt(v),
                    Number::Float(v) => ExprKind::Float(v),
                    Number::TooLarge => {
                        let message = format!("integer {} does not fit 64 bits", self.cur_text());
                        return Err(SyntaxError::new(range, message));
                    }
                    Number::Bad => {
                        let message = format!("invalid number '{}'", self.cur_text());
                        return Err(SyntaxError::new(range, message));
                    }
                };
                self.advance()?;
                self.node(kind, range, 0)
            }
            Tok::Str => self.strings(),
            Tok::Op => match self.cur_text() {
                "(" => self.parenthesized(),
                "[" => self.list(),
                "{" => self.dict(),
                "..." => {
                    self.advance()?;
                    self.node(ExprKind::Host, range, 0)
                }
                _ => Err(self.unexpected("expected an expression")),
            },
            _ => Err(self.unexpected("expected an expression")),
        }
    }

    fn name_atom(&mut self) -> Result<Expr<'a>> {
        let (word, range) = (self.cur_text(), self.cur.range);
        let kind = match word {
            "True" => ExprKind::Bool(true),
            "False" => ExprKind::Bool(false),
            "None" => ExprKind::None,
            _ if is_keyword(word) => return Err(self.unexpected("expected an expression")),
            _ => ExprKind::Name(word),
        };
        self.advance()?;
        self.node(kind, range, 0)
    }

    fn strings(&mut self) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        let (mut text, mut host) = (None::<std::borrow::Cow<'a, str>>, false);
        while self.cur.kind == Tok::Str {
            match string_value(self.cur_text()) {
                Literal::Host => host = true,
                Literal::BadEscape => {
                    let message =
                        format!("invalid escape sequence in the string {}", self.cur_text());
                    return Err(SyntaxError::new(self.cur.range, message));
                }
                Literal::Text(part) => match &mut text {
                    None => text = Some(part),
                    Some(before) => before.to_mut().push_str(&part),
                },
            }
            self.advance()?;
        }
        let kind = if host { ExprKind::Host } else { ExprKind::Str(text.unwrap_or_default()) };
        self.node(kind, self.from(start), 0)
    }

    fn parenthesized(&mut self) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        self.advance()?;
        if self.eat_op(")")? {
            return self.node(ExprKind::Tuple(Vec::new()), self.from(start), 0);
        }
        let first = self.starred_or_expression()?;
        let mut value = if self.at_word("for") {
            self.maybe_comprehension(first, start)?
        } else {
            self.rest_of_tuple(first, Self::starred_or_expression)?
        };
        self.expect_op(")")?;
        // Include the parentheses in the range of the expression.
        value.range = self.from(start);
        Ok(value)
    }

    fn list(&mut self) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        self.advance()?;
        let (mut items, mut depth) = (Vec::new(), 0);
        while !self.at_op("]") {
            let item = self.starred_or_expression()?;
            depth = item.depth.max(depth);
            if items.is_empty() && self.at_word("for") {
                let mut value = self.maybe_comprehension(item, start)?;
                self.expect_op("]")?;
                value.range = self.from(start);
                return Ok(value);
            }
            items.push(item);
            if !self.at_op("]") {
                self.expect_op(",")?;
            }
        }
        self.expect_op("]")?;
        self.node(ExprKind::List(items), self.from(start), depth)
    }

    fn dict(&mut self) -> Result<Expr<'a>> {
        let start = self.cur.range.start;
        self.advance()?;
        let (mut items, mut depth, mut host) = (Vec::new(), 0, false);
        while !self.at_op("}") {
            if self.eat_op("**")? {
                depth = self.expression()?.depth.max(depth);
                host = true;
            } else {
                let key = self.starred_or_expression()?;
                depth = key.depth.max(depth);
                if self.eat_op(":")? {
                    let value = self.expression()?;
                    depth = value.depth.max(depth);
                    items.push((key, value));
                } else {
                    host = true;
                }
                if self.at_word("for") {
                    self.comprehension_clauses()?;
                    host = true;
                    break;
                }
            }
            if !self.at_op("}") {
                self.expect_op(",")?;
            }
        }
        self.expect_op("}")?;
        let kind = if host { ExprKind::Host } else { ExprKind::Dict(items) };
        self.node(kind, self.from(start), depth)
    }

    /// Parses the clauses `for target in iter ...` that follow `element` in a comprehension.
    /// Without these clauses, `element` is an ordinary expression and is returned.
    fn maybe_comprehension(&mut self, element: Expr<'a>, _start: u32) -> Result<Expr<'a>> {
        if !self.at_word("for") {
            return Ok(element);
        }
        let start = element.range.start;
        self.comprehension_clauses()?;
        self.node(ExprKind::Host, self.from(start), element.depth)
    }

    fn comprehension_clauses(&mut self) -> Result<()> {
        loop {
            if self.eat_word("for")? {
                self.target_list()?;
                if !self.eat_word("in")? {
                    return Err(self.unexpected(
                        "expected 'in' after the variables of a comprehension's 'for'",
                    ));
                }
                self.nested(|p| p.binary(1))?;
            } else if self.eat_word("if")? {
                self.nested(|p| p.binary(1))?;
            } else {
                return Ok(());
            }
        }
    }
}

fn compare_op(code: u32) -> Option<CmpOp> {
    const TABLE: &[(u32, CmpOp)] = &[
        (op_code("=="), CmpOp::Eq),
        (op_code("!="), CmpOp::Ne),
        (op_code("<"), CmpOp::Lt),
        (op_code("<="), CmpOp::Le),
        (op_code(">"), CmpOp::Gt),
        (op_code(">="), CmpOp::Ge),
    ];
    TABLE.iter().find(|row| row.0 == code).map(|row| row.1)
}

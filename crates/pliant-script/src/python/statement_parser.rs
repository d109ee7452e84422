//! The parser of Python statements. After an error it continues with the next statement, so that one parse reports several errors.

use super::ast::*;
use super::lexer::{Lexer, Tok, Token, op_code};
use super::{MAX_INDENT, MAX_SYNTAX_ERRORS, with_stack_segment};

/// A syntax error, with its location and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The source range of the error.
    pub range: Range,
    /// A description of the error.
    pub message: String,
    /// How to fix the error, if known.
    pub help: Option<String>,
    fatal: bool,
}

impl SyntaxError {
    pub(super) fn new(range: Range, message: impl Into<String>) -> Self {
        SyntaxError { range, message: message.into(), help: None, fatal: false }
    }

    /// Creates a syntax error after which parsing stops.
    pub(super) fn fatal(range: Range, message: impl Into<String>) -> Self {
        SyntaxError { fatal: true, ..SyntaxError::new(range, message) }
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

pub(super) type Result<T> = std::result::Result<T, SyntaxError>;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) lexer: Lexer<'a>,
    pub(super) cur: Token,
    pub(super) last_end: u32,
    pub(super) depth: u16,
    /// The maximum nesting depth among all expressions parsed so far.
    pub(super) max_expr_depth: u16,
    blocks: usize,
    /// The maximum number of blocks that were open at the same time.
    max_blocks: usize,
    errors: Vec<SyntaxError>,
    stopped: bool,
}

/// The syntax tree of a parsed source text, with its errors.
#[derive(Debug, Default)]
pub struct File<'a> {
    /// The statements at the top level of the text.
    pub stmts: Vec<Stmt<'a>>,
    /// The syntax errors in the text.
    pub errors: Vec<SyntaxError>,
    /// The maximum nesting depth of blocks plus the maximum nesting depth of expressions.
    pub depth: usize,
}

/// Parses a complete source text.
pub fn parse_file(text: &str) -> File<'_> {
    if u32::try_from(text.len()).is_err() {
        let message = "the script is longer than the maximum of 4 GiB";
        let errors = vec![SyntaxError::new(Range::default(), message)];
        return File { errors, ..File::default() };
    }
    let mut p = Parser::new(text, Lexer::new(text));
    let mut stmts = Vec::new();
    p.recovering(|p| p.advance());
    while p.cur.kind != Tok::End && !p.stopped {
        p.statement_or_recover(&mut stmts);
    }
    let depth = p.max_blocks + usize::from(p.max_expr_depth);
    File { stmts, errors: p.errors, depth }
}

/// Parses a single expression, such as a symbolic dim in quotes.
///
/// # Errors
/// If the text is not a single expression.
pub fn parse_expression(text: &str) -> std::result::Result<Expr<'_>, SyntaxError> {
    let mut p = Parser::new(text, Lexer::of_expression(text));
    p.advance()?;
    let expr = p.expression_list()?;
    if p.cur.kind == Tok::Newline {
        p.advance()?;
    }
    match p.cur.kind {
        Tok::End => Ok(expr),
        _ => Err(p.unexpected("expected the end of the expression")),
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, lexer: Lexer<'a>) -> Self {
        let cur = Token { kind: Tok::Newline, range: Range::default(), op: 0 };
        Parser {
            text,
            lexer,
            cur,
            last_end: 0,
            depth: 0,
            max_expr_depth: 0,
            blocks: 0,
            max_blocks: 0,
            errors: Vec::new(),
            stopped: false,
        }
    }

    // ---- tokens ----

    pub(super) fn advance(&mut self) -> Result<()> {
        self.last_end = self.cur.range.end;
        self.cur = self.lexer.next()?;
        Ok(())
    }

    pub(super) fn slice(&self, range: Range) -> &'a str {
        self.text.get(range.start as usize..range.end as usize).unwrap_or("")
    }

    pub(super) fn cur_text(&self) -> &'a str {
        self.slice(self.cur.range)
    }

    pub(super) fn at_op(&self, op: &str) -> bool {
        self.cur.op == op_code(op)
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        self.cur.kind == Tok::Name && self.cur_text() == word
    }

    pub(super) fn eat_op(&mut self, op: &str) -> Result<bool> {
        let found = self.at_op(op);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool> {
        let found = self.at_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect_op(&mut self, op: &str) -> Result<()> {
        if self.eat_op(op)? { Ok(()) } else { Err(self.unexpected(&format!("expected '{op}'"))) }
    }

    /// Parses a name that is not a keyword.
    pub(super) fn identifier(&mut self) -> Result<(&'a str, Range)> {
        if self.cur.kind != Tok::Name || is_keyword(self.cur_text()) {
            return Err(self.unexpected("expected a name"));
        }
        let out = (self.cur_text(), self.cur.range);
        self.advance()?;
        Ok(out)
    }

    pub(super) fn unexpected(&self, expected: &str) -> SyntaxError {
        let found = match self.cur.kind {
            Tok::Newline => "found the end of the line".to_string(),
            Tok::Indent => "found an indented line".to_string(),
            Tok::Dedent => "found the end of the block".to_string(),
            Tok::End => "found the end of the file".to_string(),
            _ => format!("found '{}'", self.cur_text()),
        };
        SyntaxError::new(self.cur.range, format!("{expected}, {found}"))
    }

    // ---- recovery ----

    fn report(&mut self, error: SyntaxError) {
        self.stopped |= error.fatal || self.errors.len() + 1 >= MAX_SYNTAX_ERRORS;
        self.errors.push(error);
    }

    /// Calls `step` until a call succeeds. Reports the error of each failed call.
    fn recovering(&mut self, mut step: impl FnMut(&mut Self) -> Result<()>) {
        while !self.stopped {
            match step(self) {
                Ok(()) => return,
                Err(error) => self.report(error),
            }
        }
    }

    fn statement_or_recover(&mut self, out: &mut Vec<Stmt<'a>>) {
        if self.cur.kind == Tok::Newline {
            // The rest of a line after an error.
            return self.recovering(Self::advance);
        }
        if self.cur.kind == Tok::Indent {
            self.report(SyntaxError::new(self.cur.range, "unexpected indent"));
            return self.skip_block();
        }
        let (depth, blocks) = (self.depth, self.blocks);
        if let Err(error) = self.statement(out) {
            (self.depth, self.blocks) = (depth, blocks);
            if let Some(cause) = self.lexer.unclosed() {
                self.report(cause);
                return;
            }
            let at_end = self.cur.kind == Tok::Newline && error.range.end <= self.cur.range.end;
            self.report(error);
            if !at_end {
                self.lexer.skip_line();
                self.recovering(Self::advance);
            }
            self.skip_statement();
        }
    }

    /// Skips the current statement and its block.
    fn skip_statement(&mut self) {
        while !self.stopped && !matches!(self.cur.kind, Tok::Newline | Tok::End | Tok::Dedent) {
            self.recovering(Self::advance);
        }
        if self.cur.kind == Tok::Newline {
            self.recovering(Self::advance);
        }
        self.skip_block();
    }

    /// Skips the indented block at the current position, if there is one.
    fn skip_block(&mut self) {
        let mut open = 0usize;
        while !self.stopped && self.cur.kind != Tok::End {
            match self.cur.kind {
                Tok::Indent => open += 1,
                Tok::Dedent if open > 0 => open -= 1,
                _ if open == 0 => return,
                _ => {}
            }
            self.recovering(Self::advance);
            if open == 0 {
                return;
            }
        }
    }

    // ---- statements ----

    fn statement(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        if self.at_op("@") {
            let stmt = self.decorated()?;
            out.push(stmt);
            return Ok(());
        }
        if self.cur.kind == Tok::Name {
            let start = self.cur.range;
            let compound = match self.cur_text() {
                "if" => Some(self.if_stmt()?),
                "for" => Some(self.for_stmt()?),
                "while" => Some(self.while_stmt()?),
                "with" => Some(self.with_stmt()?),
                "def" => Some(self.function_def(Vec::new())?),
                "class" => Some(self.class_def(Vec::new())?),
                "try" | "except" | "finally" | "async" => Some(self.other_stmt()),
                _ => None,
            };
            if let Some((kind, end)) = compound {
                out.push(Stmt { kind, range: Range { start: start.start, end } });
                return Ok(());
            }
        }
        self.simple_line(out)
    }

    fn simple_line(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        loop {
            let start = self.cur.range.start;
            let kind = self.simple_stmt()?;
            out.push(Stmt { kind, range: Range { start, end: self.last_end.max(start) } });
            if self.eat_op(";")? && !matches!(self.cur.kind, Tok::Newline | Tok::End) {
                continue;
            }
            return match self.cur.kind {
                Tok::Newline => self.advance(),
                Tok::End => Ok(()),
                _ => Err(self.unexpected("expected the end of the line")),
            };
        }
    }

    fn simple_stmt(&mut self) -> Result<StmtKind<'a>> {
        if self.cur.kind == Tok::Name {
            match self.cur_text() {
                "pass" => {
                    self.advance()?;
                    return Ok(StmtKind::Pass);
                }
                "return" => {
                    self.advance()?;
                    let empty = matches!(self.cur.kind, Tok::Newline | Tok::End) || self.at_op(";");
                    let value = if empty { None } else { Some(self.expression_list()?) };
                    return Ok(StmtKind::Return(value));
                }
                "assert" => {
                    self.advance()?;
                    let cond = self.expression()?;
                    let message = if self.eat_op(",")? { Some(self.expression()?) } else { None };
                    return Ok(StmtKind::Assert(cond, message));
                }
                "import" => return self.import(),
                "from" => return self.import_from(),
                "raise" | "del" | "global" | "nonlocal" | "break" | "continue" | "yield"
                | "await" => {
                    return self.other_simple();
                }
                _ => {}
            }
        }
        self.expression_stmt()
    }

    fn expression_stmt(&mut self) -> Result<StmtKind<'a>> {
        let first = self.expression_list()?;
        if self.eat_op(":")? {
            let annotation = self.expression()?;
            let value = if self.eat_op("=")? { Some(self.expression_list()?) } else { None };
            return Ok(StmtKind::AnnAssign(first, annotation, value));
        }
        if self.cur.kind == Tok::Op
            && let Some(op) = augmented(self.cur_text())
        {
            self.advance()?;
            return Ok(StmtKind::AugAssign(first, op, self.expression_list()?));
        }
        if !self.at_op("=") {
            return Ok(match first.kind {
                ExprKind::Str(_) => StmtKind::Pass,
                _ => StmtKind::Expr(first),
            });
        }
        let mut targets = Vec::new();
        let mut value = first;
        while self.eat_op("=")? {
            targets.push(value);
            value = self.expression_list()?;
        }
        Ok(StmtKind::Assign(targets, value))
    }

    fn dotted_path(&mut self) -> Result<String> {
        let mut path = self.identifier()?.0.to_string();
        while self.eat_op(".")? {
            path.push('.');
            path.push_str(self.identifier()?.0);
        }
        Ok(path)
    }

    fn import(&mut self) -> Result<StmtKind<'a>> {
        self.advance()?;
        let mut names = Vec::new();
        loop {
            let start = self.cur.range.start;
            let path = self.dotted_path()?;
            if self.eat_word("as")? {
                let (name, _) = self.identifier()?;
                names.push((path, name));
            } else {
                let text = self.slice(Range { start, end: self.last_end });
                let first = text.split('.').next().unwrap_or(text).trim();
                names.push((first.to_string(), first));
            }
            if !self.eat_op(",")? {
                return Ok(StmtKind::Import(names));
            }
        }
    }

    fn import_from(&mut self) -> Result<StmtKind<'a>> {
        self.advance()?;
        while self.eat_op(".")? || self.eat_op("...")? {}
        let base = if self.at_word("import") { String::new() } else { self.dotted_path()? };
        if !self.eat_word("import")? {
            return Err(self.unexpected("expected 'import' after the module of a 'from' statement"));
        }
        if self.eat_op("*")? {
            return Ok(StmtKind::ImportFrom(Vec::new()));
        }
        let parens = self.eat_op("(")?;
        let mut names = Vec::new();
        loop {
            let (name, _) = self.identifier()?;
            let bound = if self.eat_word("as")? { self.identifier()?.0 } else { name };
            names.push((format!("{base}.{name}"), bound));
            if !self.eat_op(",")? || (parens && self.at_op(")")) {
                break;
            }
        }
        if parens {
            self.expect_op(")")?;
        }
        Ok(StmtKind::ImportFrom(names))
    }

    /// Skips an unsupported Python statement and its block. Returns the kind of the statement and its end offset.
    fn other_stmt(&mut self) -> (StmtKind<'a>, u32) {
        let keyword = other_keyword(self.cur_text());
        let end = self.cur.range.end;
        self.skip_statement();
        (StmtKind::Other(keyword), end)
    }

    fn other_simple(&mut self) -> Result<StmtKind<'a>> {
        let keyword = other_keyword(self.cur_text());
        while !matches!(self.cur.kind, Tok::Newline | Tok::End) {
            self.advance()?;
        }
        Ok(StmtKind::Other(keyword))
    }

    // ---- compound statements; each returns the end of its header ----

    fn block(&mut self) -> Result<(Vec<Stmt<'a>>, u32)> {
        self.expect_op(":")?;
        let header_end = self.last_end;
        let mut body = Vec::new();
        if self.cur.kind != Tok::Newline {
            self.simple_line(&mut body)?;
            return Ok((body, header_end));
        }
        self.advance()?;
        if self.cur.kind != Tok::Indent {
            return Err(self.unexpected("expected an indented block"));
        }
        self.blocks += 1;
        if self.blocks > MAX_INDENT {
            let message =
                format!("blocks are nested too deeply: at most {MAX_INDENT} levels are allowed");
            return Err(SyntaxError::fatal(self.cur.range, message));
        }
        self.max_blocks = self.max_blocks.max(self.blocks);
        self.recovering(Self::advance);
        while !self.stopped && !matches!(self.cur.kind, Tok::Dedent | Tok::End) {
            with_stack_segment(|| self.statement_or_recover(&mut body));
        }
        if self.cur.kind == Tok::Dedent {
            self.recovering(Self::advance);
        }
        self.blocks -= 1;
        Ok((body, header_end))
    }

    fn if_stmt(&mut self) -> Result<(StmtKind<'a>, u32)> {
        self.advance()?;
        let cond = self.expression()?;
        let (then, end) = self.block()?;
        let start = self.cur.range.start;
        let otherwise = if self.at_word("elif") {
            self.blocks += 1;
            // `elif` branches are nested in the tree, although not in the source.
            if self.blocks >= MAX_INDENT {
                let message = format!(
                    "the 'if' statement has too many 'elif' branches: at most {MAX_INDENT} are allowed"
                );
                return Err(SyntaxError::fatal(self.cur.range, message));
            }
            self.max_blocks = self.max_blocks.max(self.blocks);
            let (kind, end) = with_stack_segment(|| self.if_stmt())?;
            self.blocks -= 1;
            vec![Stmt { kind, range: Range { start, end } }]
        } else if self.eat_word("else")? {
            self.block()?.0
        } else {
            Vec::new()
        };
        Ok((StmtKind::If(cond, then, otherwise), end))
    }

    fn for_stmt(&mut self) -> Result<(StmtKind<'a>, u32)> {
        self.advance()?;
        let target = self.target_list()?;
        if !self.eat_word("in")? {
            return Err(self.unexpected("expected 'in' after the variables of a 'for' statement"));
        }
        let iter = self.expression_list()?;
        let (body, end) = self.block()?;
        Ok((StmtKind::For(target, iter, body), end))
    }

    fn while_stmt(&mut self) -> Result<(StmtKind<'a>, u32)> {
        self.advance()?;
        let cond = self.expression()?;
        let (body, end) = self.block()?;
        Ok((StmtKind::While(cond, body), end))
    }

    fn with_stmt(&mut self) -> Result<(StmtKind<'a>, u32)> {
        self.advance()?;
        let mut items = Vec::new();
        loop {
            let context = self.expression()?;
            let target = if self.eat_word("as")? { Some(self.with_target()?) } else { None };
            items.push((context, target));
            if !self.eat_op(",")? {
                break;
            }
        }
        let (body, end) = self.block()?;
        Ok((StmtKind::With(items, body), end))
    }

    /// Parses the target of `with`. `as i, j:` is not valid Python, but scripts in the dialect of TVM's RFC of Relax (2022)
    /// contain it.
    fn with_target(&mut self) -> Result<Expr<'a>> {
        self.target_list()
    }

    fn decorated(&mut self) -> Result<Stmt<'a>> {
        let mut decorators = Vec::new();
        while self.eat_op("@")? {
            decorators.push(self.expression()?);
            if self.cur.kind != Tok::Newline {
                return Err(self.unexpected("expected the end of the line after a decorator"));
            }
            self.advance()?;
        }
        let start = self.cur.range.start;
        let (kind, end) = match self.cur_text() {
            "def" => self.function_def(decorators)?,
            "class" => self.class_def(decorators)?,
            "async" => self.other_stmt(),
            _ => return Err(self.unexpected("expected 'def' or 'class' after a decorator")),
        };
        Ok(Stmt { kind, range: Range { start, end } })
    }

    fn function_def(&mut self, decorators: Vec<Expr<'a>>) -> Result<(StmtKind<'a>, u32)> {
        self.advance()?;
        let (name, name_range) = self.identifier()?;
        let type_params = self.type_params()?;
        self.expect_op("(")?;
        let mut params = Vec::new();
        let mut unsupported = None;
        while !self.at_op(")") {
            self.parameter(&mut params, &mut unsupported)?;
            if !self.at_op(")") {
                self.expect_op(",")?;
            }
        }
        self.expect_op(")")?;
        let returns = if self.eat_op("->")? { Some(self.expression()?) } else { None };
        let (body, end) = self.block()?;
        let def = FunctionDef {
            name,
            name_range,
            params,
            type_params,
            returns,
            decorators,
            body,
            unsupported,
        };
        Ok((StmtKind::FunctionDef(Box::new(def)), end))
    }

    fn parameter(
        &mut self,
        params: &mut Vec<Param<'a>>,
        unsupported: &mut Option<Range>,
    ) -> Result<()> {
        let start = self.cur.range;
        if self.eat_op("*")? || self.eat_op("**")? || self.eat_op("/")? {
            unsupported.get_or_insert(start);
            if self.at_op(",") || self.at_op(")") {
                return Ok(());
            }
        }
        let (name, range) = self.identifier()?;
        let annotation = if self.eat_op(":")? { Some(self.expression()?) } else { None };
        if self.eat_op("=")? {
            unsupported.get_or_insert(range);
            self.expression()?;
        }
        params.push(Param { name, range, annotation });
        Ok(())
    }

    fn type_params(&mut self) -> Result<Vec<&'a str>> {
        let mut names = Vec::new();
        if self.eat_op("[")? {
            while !self.at_op("]") {
                names.push(self.identifier()?.0);
                if self.eat_op(":")? {
                    self.expression()?;
                }
                if !self.at_op("]") {
                    self.expect_op(",")?;
                }
            }
            self.expect_op("]")?;
        }
        Ok(names)
    }

    fn class_def(&mut self, decorators: Vec<Expr<'a>>) -> Result<(StmtKind<'a>, u32)> {
        self.advance()?;
        let (name, name_range) = self.identifier()?;
        if self.eat_op("(")? {
            while !self.at_op(")") {
                self.expression()?;
                if self.eat_op("=")? {
                    self.expression()?;
                }
                if !self.at_op(")") {
                    self.expect_op(",")?;
                }
            }
            self.expect_op(")")?;
        }
        let (body, end) = self.block()?;
        Ok((StmtKind::ClassDef(Box::new(ClassDef { name, name_range, decorators, body })), end))
    }
}

fn augmented(text: &str) -> Option<BinOp> {
    Some(match text {
        "+=" => BinOp::Add,
        "-=" => BinOp::Sub,
        "*=" => BinOp::Mul,
        "/=" => BinOp::Div,
        "//=" => BinOp::FloorDiv,
        "%=" => BinOp::Mod,
        "**=" => BinOp::Pow,
        "@=" => BinOp::MatMul,
        "<<=" => BinOp::Shl,
        ">>=" => BinOp::Shr,
        "&=" => BinOp::BitAnd,
        "|=" => BinOp::BitOr,
        "^=" => BinOp::BitXor,
        _ => return None,
    })
}

const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word).is_ok()
}

fn other_keyword(word: &str) -> &'static str {
    KEYWORDS.binary_search(&word).map(|i| KEYWORDS[i]).unwrap_or("statement")
}

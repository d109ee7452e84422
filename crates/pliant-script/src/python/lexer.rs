//! The lexer: produces tokens with byte ranges, including line ends and indentation. Lines inside brackets are joined.

use super::MAX_INDENT;
use super::ast::Range;
use super::statement_parser::SyntaxError;

/// The kinds of tokens in Python source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    /// A name or keyword.
    Name,
    /// A number.
    Number,
    /// A string literal with its prefix and quotes.
    Str,
    /// An operator or bracket.
    Op,
    /// The end of a logical line.
    Newline,
    /// The start of an indented block.
    Indent,
    /// The end of an indented block.
    Dedent,
    /// The end of the source text.
    End,
}

/// A token of Python source text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub kind: Tok,
    pub range: Range,
    /// The code of an operator, as computed by [`op_code`]; 0 for other tokens.
    pub op: u32,
}

/// A lexer that produces one token at a time.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    brackets: Vec<(u8, u32)>,
    indents: Vec<u32>,
    pending_dedents: u32,
    line_start: bool,
    ended: bool,
}

/// Encodes an operator as an integer, because integers are compared faster than strings.
pub(super) const fn op_code(op: &str) -> u32 {
    let bytes = op.as_bytes();
    let (mut code, mut i) = (0, 0);
    while i < bytes.len() {
        code = code << 8 | bytes[i] as u32;
        i += 1;
    }
    code
}

/// The length in bytes of the operator with which the bytes `a`, `b`, `c` of the source text start; 0 if they do not start with an
/// operator.
fn operator_len(a: u8, b: u8, c: u8) -> usize {
    match (a, b, c) {
        (b'*', b'*', b'=') | (b'/', b'/', b'=') | (b'<', b'<', b'=') | (b'>', b'>', b'=') => 3,
        (b'.', b'.', b'.') => 3,
        (b'*', b'*', _) | (b'/', b'/', _) | (b'<', b'<', _) | (b'>', b'>', _) | (b'-', b'>', _) => {
            2
        }
        (
            b'<' | b'>' | b'=' | b'!' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^'
            | b'@' | b':',
            b'=',
            _,
        ) => 2,
        (
            b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^' | b'~' | b'<' | b'>'
            | b'=',
            _,
            _,
        ) => 1,
        (b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b':' | b'.' | b';', _, _) => 1,
        _ => 0,
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let pos = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Lexer {
            text,
            bytes: text.as_bytes(),
            pos,
            brackets: Vec::new(),
            indents: vec![0],
            pending_dedents: 0,
            line_start: true,
            ended: false,
        }
    }

    /// Creates a lexer for a single expression, in which newlines are ignored.
    pub(super) fn of_expression(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        lexer.brackets.push((b' ', 0));
        lexer.line_start = false;
        lexer
    }

    fn range(&self, start: usize) -> Range {
        Range { start: start as u32, end: self.pos as u32 }
    }

    fn token(&self, kind: Tok, start: usize) -> Token {
        Token { kind, range: self.range(start), op: 0 }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    /// Error recovery: closes all brackets and skips to the end of the line.
    pub(super) fn skip_line(&mut self) {
        self.brackets.clear();
        while self.pos < self.bytes.len() && self.peek(0) != b'\n' {
            self.pos += 1;
        }
    }

    /// The error for a bracket that is never closed, which is the cause of most errors inside brackets.
    pub(super) fn unclosed(&self) -> Option<SyntaxError> {
        let &(open, at) = self.brackets.last()?;
        let depth = self.brackets.len();
        let mut ahead = self.clone();
        loop {
            match ahead.next() {
                Ok(t) if t.kind == Tok::End => return None,
                Ok(_) if ahead.brackets.len() < depth => return None,
                Ok(_) => {}
                Err(_) if ahead.pos >= ahead.bytes.len() => {
                    let range = Range { start: at, end: at + 1 };
                    let message = format!("'{}' was never closed", open as char);
                    return (open != b' ').then(|| SyntaxError::fatal(range, message));
                }
                Err(_) => return None,
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Token, SyntaxError> {
        if self.pending_dedents > 0 {
            self.pending_dedents -= 1;
            return Ok(self.token(Tok::Dedent, self.pos));
        }
        if self.line_start
            && let Some(token) = self.indentation()?
        {
            return Ok(token);
        }
        self.skip_blank()?;
        if self.pos >= self.bytes.len() {
            return self.end();
        }
        let start = self.pos;
        let c = self.peek(0);
        if c == b'\n' {
            self.pos += 1;
            self.line_start = true;
            return Ok(self.token(Tok::Newline, start));
        }
        if c.is_ascii_digit() || (c == b'.' && self.peek(1).is_ascii_digit()) {
            return self.number();
        }
        if let Some(token) = self.string()? {
            return Ok(token);
        }
        if c == b'_' || c.is_ascii_alphabetic() || c >= 0x80 {
            return self.name();
        }
        self.operator()
    }

    fn end(&mut self) -> Result<Token, SyntaxError> {
        if let Some(&(open, at)) = self.brackets.last()
            && open != b' '
        {
            let range = Range { start: at, end: at + 1 };
            self.brackets.clear();
            return Err(SyntaxError::new(range, format!("'{}' was never closed", open as char)));
        }
        let pos = self.pos;
        if !self.ended {
            self.ended = true;
            if !self.line_start {
                self.line_start = true;
                return Ok(self.token(Tok::Newline, pos));
            }
        }
        if self.indents.len() > 1 {
            self.indents.pop();
            return Ok(self.token(Tok::Dedent, pos));
        }
        Ok(self.token(Tok::End, pos))
    }

    /// Skips blanks, comments and line continuations. Inside brackets also skips newlines.
    fn skip_blank(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\r' | 0x0c if self.pos < self.bytes.len() => self.pos += 1,
                b'\n' if !self.brackets.is_empty() => self.pos += 1,
                b'#' => {
                    while self.pos < self.bytes.len() && self.peek(0) != b'\n' {
                        self.pos += 1;
                    }
                }
                b'\\' if self.peek(1) == b'\n' => self.pos += 2,
                b'\\' if self.peek(1) == b'\r' && self.peek(2) == b'\n' => self.pos += 3,
                _ => return Ok(()),
            }
        }
    }

    /// Skips blank lines and comments, and compares the indentation of the next line with the open blocks. Returns a token if the
    /// line starts or ends a block.
    fn indentation(&mut self) -> Result<Option<Token>, SyntaxError> {
        loop {
            let start = self.pos;
            let mut width = 0u32;
            loop {
                match self.peek(0) {
                    b' ' => width += 1,
                    b'\t' => width = (width / 8 + 1) * 8,
                    0x0c => width = 0,
                    _ => break,
                }
                self.pos += 1;
            }
            match self.peek(0) {
                b'\r' if self.peek(1) == b'\n' => self.pos += 2,
                b'\n' => self.pos += 1,
                b'#' => {
                    while self.pos < self.bytes.len() && self.peek(0) != b'\n' {
                        self.pos += 1;
                    }
                }
                _ if self.pos >= self.bytes.len() => return Ok(None),
                _ => {
                    self.line_start = false;
                    return self.indent_to(start, width);
                }
            }
        }
    }

    fn indent_to(&mut self, start: usize, width: u32) -> Result<Option<Token>, SyntaxError> {
        let current = *self.indents.last().unwrap_or(&0);
        if width > current {
            if self.indents.len() > MAX_INDENT {
                self.pos = self.bytes.len();
                let message = format!(
                    "blocks are nested too deeply: at most {MAX_INDENT} levels are allowed"
                );
                return Err(SyntaxError::fatal(self.range(start), message));
            }
            self.indents.push(width);
            return Ok(Some(self.token(Tok::Indent, start)));
        }
        let mut dedents = 0;
        while self.indents.len() > 1 && self.indents.last().is_some_and(|&i| i > width) {
            self.indents.pop();
            dedents += 1;
        }
        if self.indents.last() != Some(&width) {
            let range = self.range(start);
            // Continue at the enclosing level, so that the rest of the file can be parsed.
            self.pending_dedents = dedents;
            return Err(SyntaxError::new(
                range,
                "unindent does not match any outer indentation level",
            ));
        }
        if dedents == 0 {
            return Ok(None);
        }
        self.pending_dedents = dedents - 1;
        Ok(Some(self.token(Tok::Dedent, start)))
    }

    fn name(&mut self) -> Result<Token, SyntaxError> {
        let start = self.pos;
        let rest = &self.text[start..];
        let len = rest.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(rest.len());
        if len == 0 {
            let c = rest.chars().next().unwrap_or(' ');
            self.pos += c.len_utf8();
            return Err(bad_character(self.range(start), c));
        }
        self.pos += len;
        Ok(self.token(Tok::Name, start))
    }

    fn number(&mut self) -> Result<Token, SyntaxError> {
        let start = self.pos;
        let radix =
            matches!(self.peek(1), b'x' | b'X' | b'o' | b'O' | b'b' | b'B') && self.peek(0) == b'0';
        while self.pos < self.bytes.len() {
            let c = self.peek(0);
            let exponent =
                !radix && matches!(c, b'e' | b'E') && matches!(self.peek(1), b'+' | b'-');
            if exponent {
                self.pos += 2;
            } else if c.is_ascii_alphanumeric() || c == b'_' || (c == b'.' && !radix) {
                self.pos += 1;
            } else {
                break;
            }
        }
        Ok(self.token(Tok::Number, start))
    }

    /// Reads the string literal at the current position, if there is one.
    fn string(&mut self) -> Result<Option<Token>, SyntaxError> {
        let mut at = 0;
        while at < 2 && matches!(self.peek(at) | 0x20, b'r' | b'b' | b'u' | b'f') {
            at += 1;
        }
        let quote = self.peek(at);
        if quote != b'"' && quote != b'\'' {
            return Ok(None);
        }
        let raw = (0..at).any(|i| self.peek(i) | 0x20 == b'r');
        let start = self.pos;
        self.pos += at + 1;
        let triple = self.peek(0) == quote && self.peek(1) == quote;
        if triple {
            self.pos += 2;
        }
        loop {
            match self.peek(0) {
                0 if self.pos >= self.bytes.len() => return Err(self.unterminated(start)),
                b'\n' if !triple => return Err(self.unterminated(start)),
                // A backslash escapes a quote even in a raw string.
                b'\\' => self.pos += if raw || self.peek(1) < 0x80 { 2 } else { 1 },
                c if c == quote && !triple => {
                    self.pos += 1;
                    break;
                }
                c if c == quote && self.peek(1) == quote && self.peek(2) == quote => {
                    self.pos += 3;
                    break;
                }
                _ => self.pos += 1,
            }
        }
        self.pos = self.pos.min(self.bytes.len());
        Ok(Some(self.token(Tok::Str, start)))
    }

    fn unterminated(&mut self, start: usize) -> SyntaxError {
        self.pos = self.pos.min(self.bytes.len());
        SyntaxError::new(self.range(start), "string literal has no closing quote")
    }

    fn operator(&mut self) -> Result<Token, SyntaxError> {
        let start = self.pos;
        let first = self.peek(0);
        let len = operator_len(first, self.peek(1), self.peek(2));
        if len == 0 {
            let c = self.text[start..].chars().next().unwrap_or(' ');
            self.pos += c.len_utf8();
            return Err(bad_character(self.range(start), c));
        }
        self.pos += len;
        match first {
            c @ (b'(' | b'[' | b'{') => self.brackets.push((c, start as u32)),
            c @ (b')' | b']' | b'}') => self.close(c, start)?,
            _ => {}
        }
        let code = self.bytes[start..self.pos].iter().fold(0, |code, &b| code << 8 | u32::from(b));
        Ok(Token { op: code, ..self.token(Tok::Op, start) })
    }

    fn close(&mut self, c: u8, start: usize) -> Result<(), SyntaxError> {
        let expected = match c {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        match self.brackets.last() {
            Some(&(open, _)) if open == expected => {
                self.brackets.pop();
                Ok(())
            }
            Some(&(open, _)) if open != b' ' => {
                let (c, open) = (c as char, open as char);
                // Pop the bracket as if it matched, so that the error is reported once.
                self.brackets.pop();
                let message = format!("closing '{c}' does not match opening '{open}'");
                Err(SyntaxError::new(self.range(start), message))
            }
            _ => Err(SyntaxError::new(
                self.range(start),
                format!("closing '{}' has no opening bracket", c as char),
            )),
        }
    }
}

fn bad_character(range: Range, c: char) -> SyntaxError {
    let error = SyntaxError::new(range, format!("invalid character '{}'", c.escape_debug()));
    match c {
        '“' | '”' | '„' => error.with_help("write a straight quote: \""),
        '‘' | '’' => error.with_help("write a straight quote: '"),
        _ => error,
    }
}

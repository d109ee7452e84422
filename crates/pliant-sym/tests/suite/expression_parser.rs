//! A small parser for Python-like expressions: `+ - * // %`, comparisons, calls.

use pliant_sym::{Sym, SymArena};

type Lookup<'a> = dyn FnMut(&mut SymArena, &str) -> Sym + 'a;

struct Parser<'a, 'b> {
    arena: &'a mut SymArena,
    tokens: Vec<String>,
    at: usize,
    lookup: &'a mut Lookup<'b>,
}

/// Builds the term described by `text`. Panics on a syntax error.
pub fn parse(arena: &mut SymArena, text: &str, lookup: &mut Lookup<'_>) -> Sym {
    let mut p = Parser { arena, tokens: tokens(text), at: 0, lookup };
    let sym = p.comparison();
    assert_eq!(p.at, p.tokens.len(), "unread text in {text}");
    sym
}

fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let len = if c.is_whitespace() {
            i += 1;
            continue;
        } else if word(c) {
            chars[i..].iter().take_while(|&&c| word(c)).count()
        } else if ["//", "<=", ">=", "==", "!="]
            .iter()
            .any(|t| chars[i..].starts_with(&t.chars().collect::<Vec<_>>()))
        {
            2
        } else {
            1
        };
        out.push(chars[i..i + len].iter().collect());
        i += len;
    }
    out
}

impl Parser<'_, '_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        self.at += 1;
        self.tokens[self.at - 1].clone()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn comparison(&mut self) -> Sym {
        let a = self.sum();
        let op = self.peek().to_owned();
        if !["<", "<=", ">", ">=", "==", "!="].contains(&op.as_str()) {
            return a;
        }
        self.at += 1;
        let b = self.sum();
        match op.as_str() {
            "<" => self.arena.lt(a, b),
            "<=" => self.arena.le(a, b),
            ">" => self.arena.gt(a, b),
            ">=" => self.arena.ge(a, b),
            "==" => self.arena.eq(a, b),
            _ => self.arena.ne(a, b),
        }
    }

    fn sum(&mut self) -> Sym {
        let mut a = self.term();
        loop {
            if self.eat("+") {
                let b = self.term();
                a = self.arena.add(a, b);
            } else if self.eat("-") {
                let b = self.term();
                a = self.arena.sub(a, b);
            } else {
                return a;
            }
        }
    }

    fn term(&mut self) -> Sym {
        let mut a = self.unary();
        loop {
            let op = self.peek().to_owned();
            if !["*", "//", "%"].contains(&op.as_str()) {
                return a;
            }
            self.at += 1;
            let b = self.unary();
            a = match op.as_str() {
                "*" => self.arena.mul(a, b),
                "//" => self.arena.floordiv(a, b),
                _ => self.arena.floormod(a, b),
            };
        }
    }

    fn unary(&mut self) -> Sym {
        if self.eat("-") {
            let a = self.unary();
            return self.arena.neg(a);
        }
        if self.eat("(") {
            let a = self.comparison();
            assert!(self.eat(")"), "a closing parenthesis");
            return a;
        }
        let word = self.take();
        if let Ok(v) = word.parse() {
            return self.arena.int(v);
        }
        if !self.eat("(") {
            return (self.lookup)(self.arena, &word);
        }
        let mut args = vec![self.comparison()];
        while self.eat(",") {
            args.push(self.comparison());
        }
        assert!(self.eat(")"), "a closing parenthesis");
        let a = &mut *self.arena;
        match (word.as_str(), args.as_slice()) {
            ("min" | "T.min", [x, y]) => a.min(*x, *y),
            ("max" | "T.max", [x, y]) => a.max(*x, *y),
            ("ceildiv", [x, y]) => a.ceildiv(*x, *y),
            ("and" | "T.And", [x, y]) => a.and(*x, *y),
            ("or" | "T.Or", [x, y]) => a.or(*x, *y),
            ("T.Not", [x]) => a.not(*x),
            ("select" | "T.Select", [c, x, y]) => a.select(*c, *x, *y),
            _ => panic!("no function {word} of {} operands", args.len()),
        }
    }
}

//! What all functions of one parse share: source, environment, names bound by imports, errors.

use std::cell::{Cell, RefCell};

use pliant_ir::{OpRegistry, Span};
use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use crate::dialect::{self, DEFAULT_NAMES, Ns};
use crate::env::{HostEnv, HostValue};
use crate::errors::{Errors, Kind, Reported, Res, ScriptError};
use crate::python::ast::{Expr, ExprKind, Range};

/// What the parse of one text shares.
pub(crate) struct Cx<'s> {
    pub text: &'s str,
    env: Cell<&'s dyn HostEnv>,
    pub ops: &'s dyn OpRegistry,
    pub errors: Errors,
    /// Names bound by imports, with the full path of what they name.
    pub imports: FxHashMap<&'s str, String>,
    /// Names of the class that is parsed: `Module.f` and `cls.f` name its functions.
    pub class_name: Option<&'s str>,
    /// The large constants that `metadata[...]` names.
    pub metadata: Vec<Tensor>,
    /// What names of the text mean in the language, so that each is worked out once.
    paths: RefCell<FxHashMap<&'s str, Option<String>>>,
    /// Values of captured names, so that the host is asked once.
    captured: RefCell<FxHashMap<&'s str, Option<HostValue>>>,
}

/// A name of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub ns: Ns,
    /// The name in it; empty for the module itself.
    pub name: String,
}

impl<'s> Cx<'s> {
    pub fn new(
        text: &'s str,
        env: &'s dyn HostEnv,
        ops: &'s dyn OpRegistry,
        errors: Errors,
    ) -> Self {
        Cx {
            text,
            env: Cell::new(env),
            ops,
            errors,
            imports: FxHashMap::default(),
            class_name: None,
            metadata: Vec::new(),
            paths: RefCell::default(),
            captured: RefCell::default(),
        }
    }

    pub fn span(&self, range: Range) -> Span {
        self.errors.span(range)
    }

    pub fn error(&self, kind: Kind, range: Range, message: impl Into<String>) -> Reported {
        self.errors.report(ScriptError::new(kind, range, message))
    }

    pub fn error_help(
        &self,
        kind: Kind,
        range: Range,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.errors.report(ScriptError::new(kind, range, message).help(help))
    }

    pub fn error_maybe(
        &self,
        kind: Kind,
        range: Range,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Reported {
        self.errors.report(ScriptError::new(kind, range, message).maybe_help(help))
    }

    /// The text of a range.
    pub fn slice(&self, range: Range) -> &'s str {
        self.text.get(range.start as usize..range.end as usize).unwrap_or("")
    }

    /// Does work in another surrounding program: that of a macro's definition.
    pub fn in_env<T>(&self, env: &'s dyn HostEnv, work: impl FnOnce() -> T) -> T {
        let outer = self.env.replace(env);
        let (paths, captured) = (self.paths.take(), self.captured.take());
        let out = work();
        self.env.set(outer);
        self.paths.replace(paths);
        self.captured.replace(captured);
        out
    }

    /// The captured value of a name.
    pub fn lookup(&self, name: &'s str) -> Option<HostValue> {
        if let Some(value) = self.captured.borrow().get(name) {
            return value.clone();
        }
        let value = self.env.get().lookup(name);
        self.captured.borrow_mut().insert(name, value.clone());
        value
    }

    /// The value of a host expression.
    pub fn eval(&self, range: Range) -> Res<HostValue> {
        let text = self.slice(range);
        self.env.get().eval(text).map_err(|message| {
            self.error(
                Kind::Host,
                range,
                format!("cannot evaluate `{}`: {message}", first_line(text)),
            )
        })
    }

    /// The path that a name stands for, if it stands for a module or member of the language.
    fn root_path(&self, name: &'s str) -> Option<String> {
        if let Some(path) = self.paths.borrow().get(name) {
            return path.clone();
        }
        let path = match self.imports.get(name) {
            Some(path) => Some(path.clone()),
            None => match self.lookup(name) {
                Some(HostValue::Path(path)) => Some(path),
                Some(_) => None,
                None => DEFAULT_NAMES.iter().find(|row| row.0 == name).map(|row| row.1.to_string()),
            },
        };
        self.paths.borrow_mut().insert(name, path.clone());
        path
    }

    /// The name of the language that a dotted expression spells. Local variables must be ruled out first.
    pub fn path(&self, e: &Expr<'s>) -> Option<Path> {
        let parts = e.dotted()?;
        let mut path = self.root_path(parts[0])?;
        for part in &parts[1..] {
            path.push('.');
            path.push_str(part);
        }
        let (ns, name) = dialect::split(&path)?;
        Some(Path { ns, name: name.to_string() })
    }

    /// The data type that an expression names: `"float32"`, `T.float32`, a captured data type.
    pub fn dtype(&self, e: &Expr<'s>) -> Res<Option<DType>> {
        match &e.kind {
            ExprKind::None => Ok(None),
            ExprKind::Name("_") => Ok(None),
            ExprKind::Str(s) if s.is_empty() || s == "void" => Ok(None),
            ExprKind::Str(s) => self.dtype_name(s, e.range).map(Some),
            ExprKind::Attribute(..) | ExprKind::Name(_) => {
                if let Some(p) = self.path(e)
                    && let Some(d) = parse_dtype(&p.name)
                {
                    return Ok(Some(d));
                }
                let value = match e.as_name() {
                    Some(name) => self.lookup(name),
                    None => None,
                };
                let value = match value {
                    Some(value) => value,
                    None => self.eval(e.range)?,
                };
                self.host_dtype(&value, e.range)
            }
            ExprKind::Call(call) if call.args.len() == 1 && call.keywords.is_empty() => {
                match self.path(&call.func) {
                    Some(p) if p.name == "dtype" => self.dtype(&call.args[0]),
                    _ => self.eval(e.range).and_then(|v| self.host_dtype(&v, e.range)),
                }
            }
            _ => self.eval(e.range).and_then(|v| self.host_dtype(&v, e.range)),
        }
    }

    fn host_dtype(&self, value: &HostValue, range: Range) -> Res<Option<DType>> {
        match value {
            HostValue::DType(d) => Ok(Some(*d)),
            HostValue::None => Ok(None),
            HostValue::Str(s) => self.dtype_name(s, range).map(Some),
            _ => Err(self.error(Kind::Value, range, "expected a data type, such as \"float32\"")),
        }
    }

    /// The data type of that name.
    pub fn dtype_name(&self, name: &str, range: Range) -> Res<DType> {
        parse_dtype(name).ok_or_else(|| {
            let names: Vec<&'static str> = DType::all().map(DType::name).collect();
            let help = crate::errors::did_you_mean(name, names.iter().copied())
                .unwrap_or_else(|| format!("known data types: {}", names.join(", ")));
            self.error_help(Kind::Value, range, format!("unknown data type '{name}'"), help)
        })
    }
}

/// The data type of that name, short forms (`f32`) included.
pub(crate) fn parse_dtype(name: &str) -> Option<DType> {
    if let Ok(d) = name.parse() {
        return Some(d);
    }
    Some(match name {
        "f16" => DType::Float16,
        "bf16" => DType::BFloat16,
        "f32" | "float" => DType::Float32,
        "f64" | "double" => DType::Float64,
        "i8" => DType::Int8,
        "i16" => DType::Int16,
        "i32" | "int" => DType::Int32,
        "i64" => DType::Int64,
        "u8" => DType::UInt8,
        "u16" => DType::UInt16,
        "u32" => DType::UInt32,
        "u64" => DType::UInt64,
        "boolean" => DType::Bool,
        _ => return None,
    })
}

/// The first line of a text, for messages.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    let short: String = line.chars().take(60).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

//! The state that the parsers of all functions of one script share: source text, environment, imported names, errors.

use std::cell::{Cell, RefCell};

use pliant_ir::{OpRegistry, Span};
use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use crate::dialect_spellings::{self, DEFAULT_NAMES, Namespace};
use crate::host_environment::{HostEnv, HostValue};
use crate::python::ast::{Expr, ExprKind, Range};
use crate::script_errors::{ErrorKind, Errors, Reported, Res, ScriptError};

/// The state that the parsers of all functions of one source text share.
pub(crate) struct ParseContext<'s> {
    pub text: &'s str,
    env: Cell<&'s dyn HostEnv>,
    pub ops: &'s dyn OpRegistry,
    pub errors: Errors,
    /// Names bound by imports, with the full path of the imported object.
    pub imports: FxHashMap<&'s str, String>,
    /// The name of the class being parsed. `Module.f` and `cls.f` refer to its functions.
    pub class_name: Option<&'s str>,
    /// The large constants that `metadata[...]` refers to.
    pub metadata: Vec<Tensor>,
    /// Cache: the path in the script language to which each name of the source resolves; `None` for other names.
    paths: RefCell<FxHashMap<&'s str, Option<String>>>,
    /// Cache: the values of names that the surrounding Python program defines. It is queried once per name.
    captured: RefCell<FxHashMap<&'s str, Option<HostValue>>>,
}

/// A name of the script language, resolved to a namespace, such as `matmul` in the namespace of graph functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub ns: Namespace,
    /// The name within the namespace `ns`; empty if the path denotes the module itself, such as `R`.
    pub name: String,
}

impl<'s> ParseContext<'s> {
    pub fn new(
        text: &'s str,
        env: &'s dyn HostEnv,
        ops: &'s dyn OpRegistry,
        errors: Errors,
    ) -> Self {
        ParseContext {
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

    pub fn error(&self, kind: ErrorKind, range: Range, message: impl Into<String>) -> Reported {
        self.errors.report(ScriptError::new(kind, range, message))
    }

    pub fn error_help(
        &self,
        kind: ErrorKind,
        range: Range,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.errors.report(ScriptError::new(kind, range, message).help(help))
    }

    pub fn error_maybe(
        &self,
        kind: ErrorKind,
        range: Range,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Reported {
        self.errors.report(ScriptError::new(kind, range, message).maybe_help(help))
    }

    /// The source text in a byte range.
    pub fn slice(&self, range: Range) -> &'s str {
        self.text.get(range.start as usize..range.end as usize).unwrap_or("")
    }

    /// Whether the parser follows TVM; see [`HostEnv::follows_tvm`].
    pub fn follows_tvm(&self) -> bool {
        self.env.get().follows_tvm()
    }

    /// Calls `work` with `env`, the environment in which a macro is defined, in place of the current environment.
    pub fn in_env<T>(&self, env: &'s dyn HostEnv, work: impl FnOnce() -> T) -> T {
        let outer = self.env.replace(env);
        let (paths, captured) = (self.paths.take(), self.captured.take());
        let out = work();
        self.env.set(outer);
        self.paths.replace(paths);
        self.captured.replace(captured);
        out
    }

    /// The value that the surrounding Python program has for a name; `None` if it does not define the name.
    pub fn lookup(&self, name: &'s str) -> Option<HostValue> {
        if let Some(value) = self.captured.borrow().get(name) {
            return value.clone();
        }
        let value = self.env.get().lookup(name);
        self.captured.borrow_mut().insert(name, value.clone());
        value
    }

    /// Evaluates the source text in a range as a Python expression, in the surrounding Python program. Reports an error if the
    /// evaluation fails.
    pub fn eval(&self, range: Range) -> Res<HostValue> {
        let text = self.slice(range);
        self.env.get().eval(text).map_err(|message| {
            self.error(
                ErrorKind::Host,
                range,
                format!("cannot evaluate the Python expression `{}`: {message}", first_line(text)),
            )
        })
    }

    /// The text of the Python function in a range, as for [`HostEnv::function_text`].
    pub fn function_text(&self, range: Range) -> Option<String> {
        self.env.get().function_text(self.slice(range))
    }

    /// The path of the module or module member of the script language to which a name refers; `None` for other names.
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

    /// The name of the script language to which a dotted expression such as `R.add` refers; `None` for other expressions. The
    /// caller must first check that the expression does not start with a local variable.
    pub fn path(&self, e: &Expr<'s>) -> Option<Path> {
        let parts = e.dotted()?;
        let mut path = self.root_path(parts[0])?;
        for part in &parts[1..] {
            path.push('.');
            path.push_str(part);
        }
        let (ns, name) = dialect_spellings::split(&path)?;
        Some(Path { ns, name: name.to_string() })
    }

    /// The data type that an expression denotes: `"float32"`, `T.float32`, or a captured data type. `None` if it is not a data
    /// type.
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
            _ => Err(self.error(
                ErrorKind::Value,
                range,
                "a data type is required here, such as \"float32\", but the value is not a data type",
            )),
        }
    }

    /// Parses the name of a data type, and reports an error if it is unknown.
    pub fn dtype_name(&self, name: &str, range: Range) -> Res<DType> {
        parse_dtype(name).ok_or_else(|| {
            let names: Vec<&'static str> = DType::all().map(DType::name).collect();
            let help = crate::script_errors::did_you_mean(name, names.iter().copied())
                .unwrap_or_else(|| format!("known data types: {}", names.join(", ")));
            self.error_help(ErrorKind::Value, range, format!("unknown data type '{name}'"), help)
        })
    }
}

/// Parses the name of a data type, including short forms such as `f32`.
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

/// The first line of a text, shortened so that it fits into an error message.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    let short: String = line.chars().take(60).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

//! Parses script texts and decorated Python functions, with the same parser as files.

use pliant_diag::{Diagnostic, SourceFile};
use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::{AttrValue, BaseFunc};
use pliant_ops::te::{self, BinOp, ExprKind};
use pliant_script::{HostEnv, HostMacro, HostSym, HostSymOp, HostValue, Parsed};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyModule, PyString, PyTuple};

use crate::error::{Error, Result, ScriptProblem};
use crate::gil_and_panics::catch_panic;
use crate::ir_module::IRModule;
use crate::relax::classes::Expr as RelaxExpr;
use crate::relax::detached_expr::Node;
use crate::relax::function::{Function, ir_function};
use crate::relax::operators::OpFunction;
use crate::relax::value_conversion::attr_value;
use crate::runtime::array_import::{borrow_tensor, parse_dtype};
use crate::source_texts::{add_source, with_sources};
use crate::te::prim_func::PrimFunc;
use crate::tir::prim_expr::PrimExpr;
use crate::tvm_compatibility;

/// The Python environment of a script: visible names, and `eval` for expressions that the parser does not evaluate
/// itself.
struct PyEnv<'py> {
    names: Bound<'py, PyDict>,
    globals: Bound<'py, PyDict>,
    /// The macros that the script may use, by index.
    macros: Vec<Bound<'py, PyAny>>,
}

impl HostEnv for PyEnv<'_> {
    fn lookup(&self, name: &str) -> Option<HostValue> {
        let value = self.names.get_item(name).ok().flatten();
        let value = value.or_else(|| self.globals.get_item(name).ok().flatten())?;
        if let Some(index) = self.macros.iter().position(|known| known.is(&value)) {
            return Some(HostValue::Macro(index as u32));
        }
        Some(host_value(&value, Some(name), 0))
    }

    fn eval(&self, text: &str) -> std::result::Result<HostValue, String> {
        let py = self.names.py();
        let code = std::ffi::CString::new(text).map_err(|e| e.to_string())?;
        let value = py.eval(&code, Some(&self.globals), Some(&self.names));
        match value {
            Ok(value) => Ok(host_value(&value, None, 0)),
            Err(e) => Err(format!("{}: {}", e.get_type(py), e.value(py))),
        }
    }

    fn function_text(&self, text: &str) -> Option<String> {
        let code = std::ffi::CString::new(text).ok()?;
        let value = self.names.py().eval(&code, Some(&self.globals), Some(&self.names)).ok()?;
        match attr_value(&value).ok()? {
            AttrValue::Str(text) if value.is_callable() => Some(text.to_string()),
            _ => None,
        }
    }

    fn follows_tvm(&self) -> bool {
        tvm_compatibility::is_enabled()
    }
}

/// Converts a Python object to a value for the parser.
fn host_value(obj: &Bound<'_, PyAny>, name: Option<&str>, depth: u32) -> HostValue {
    const MAX_DEPTH: u32 = 32;
    let other = || {
        let class = obj.get_type().name().map_or_else(|_| "object".to_string(), |n| n.to_string());
        HostValue::Other(class)
    };
    if depth > MAX_DEPTH {
        return other();
    }
    plain_value(obj, depth)
        .or_else(|| language_value(obj, name))
        .or_else(|| array_value(obj))
        .unwrap_or_else(other)
}

fn plain_value(obj: &Bound<'_, PyAny>, depth: u32) -> Option<HostValue> {
    if obj.is_none() {
        return Some(HostValue::None);
    }
    if obj.is_instance_of::<PyBool>() {
        return Some(HostValue::Bool(obj.is_truthy().ok()?));
    }
    if obj.is_instance_of::<PyInt>() {
        return obj.extract().ok().map(HostValue::Int);
    }
    if obj.is_instance_of::<PyFloat>() {
        return obj.extract().ok().map(HostValue::Float);
    }
    if let Ok(text) = obj.cast::<PyString>() {
        return Some(HostValue::Str(text.to_string()));
    }
    let items = |list: Bound<'_, PyAny>| -> Option<Vec<HostValue>> {
        let items = list.try_iter().ok()?;
        items.map(|i| Some(host_value(&i.ok()?, None, depth + 1))).collect()
    };
    if obj.is_instance_of::<PyList>() {
        return items(obj.clone()).map(HostValue::List);
    }
    if obj.is_instance_of::<PyTuple>() {
        return items(obj.clone()).map(HostValue::Tuple);
    }
    if let Ok(dict) = obj.cast::<PyDict>() {
        let pairs: Option<Vec<_>> = dict
            .iter()
            .map(|(k, v)| Some((k.extract::<String>().ok()?, host_value(&v, None, depth + 1))))
            .collect();
        return pairs.map(HostValue::Map);
    }
    None
}

/// Converts a Python object that belongs to the script language: a module of Pliant, a name, an expression or a
/// function. `None` for other objects.
fn language_value(obj: &Bound<'_, PyAny>, name: Option<&str>) -> Option<HostValue> {
    if let Ok(module) = obj.cast::<PyModule>() {
        let path = module.name().ok()?.to_string();
        let is_pliant = path == "pliant"
            || path.starts_with("pliant.")
            || path == "tvm"
            || path.starts_with("tvm.");
        return is_pliant.then_some(HostValue::Path(path));
    }
    if let Ok(op) = obj.cast::<OpFunction>() {
        return Some(HostValue::Path(op.get().op.name().to_string()));
    }
    if let Ok(e) = obj.cast::<PrimExpr>() {
        let e = &e.get().expr;
        return Some(match host_sym(e) {
            Some(sym) => HostValue::Sym(sym),
            None => match e.kind() {
                ExprKind::Float(v) => HostValue::Float(*v),
                _ => return None,
            },
        });
    }
    if let Ok(func) = obj.cast::<Function>() {
        let ir = ir_function(&func.as_super().get().node, "a name in a script").ok()?;
        let symbol = ir.attrs.get(GLOBAL_SYMBOL).and_then(|v| v.as_str()).map(String::from);
        let known_name = symbol.or_else(|| func.get().known_name().map(|n| n.to_string()));
        let name = name.map(String::from).or(known_name).unwrap_or_else(|| "main".to_string());
        return Some(HostValue::Func(name, BaseFunc::Relax(ir)));
    }
    if let Ok(func) = obj.cast::<PrimFunc>() {
        let func = func.get();
        let name = name.map_or_else(|| func.name(), String::from);
        return Some(HostValue::Func(name, BaseFunc::Prim(func.func.clone())));
    }
    if let Ok(e) = obj.cast::<RelaxExpr>() {
        return match e.get().node.get() {
            Node::Constant(t) => Some(HostValue::Tensor(t.clone())),
            Node::Prim(e) => host_sym(e).map(HostValue::Sym),
            Node::Str(s) => Some(HostValue::Str(s.to_string())),
            Node::DType(d) => Some(HostValue::DType(*d)),
            _ => None,
        };
    }
    let path = obj.getattr(pyo3::intern!(obj.py(), "__pliant_path__")).ok()?;
    path.extract().ok().map(HostValue::Path)
}

/// Converts arrays to tensor constants, NumPy scalars to numbers, and NumPy types to data types. Returns `None` for other
/// objects.
fn array_value(obj: &Bound<'_, PyAny>) -> Option<HostValue> {
    if obj.is_instance_of::<pyo3::types::PyType>()
        || obj.hasattr("itemsize").ok()? && obj.hasattr("kind").ok()?
    {
        return parse_dtype(obj).ok().map(HostValue::DType);
    }
    if !obj.hasattr("dtype").ok()? {
        return None;
    }
    if obj.hasattr("item").ok()? && !obj.hasattr("__dlpack__").ok()? {
        let value = obj.call_method0("item").ok()?;
        return plain_value(&value, 0);
    }
    let tensor = borrow_tensor(obj).ok().flatten()?;
    crate::relax::value_conversion::immutable_tensor(tensor).ok().map(HostValue::Tensor)
}

/// Converts a size expression over variables of the surrounding Python program for the parser. Returns `None` for an operation
/// that sizes in scripts do not have.
fn host_sym(e: &te::Expr) -> Option<HostSym> {
    use std::hash::{Hash, Hasher};
    Some(match e.kind() {
        ExprKind::Int(v) => HostSym::Int(*v),
        ExprKind::Var(v) => {
            let mut hasher = rustc_hash::FxHasher::default();
            v.hash(&mut hasher);
            HostSym::Var(hasher.finish(), v.name().to_string())
        }
        ExprKind::Cast(a) if e.ty().dtype.holds_all_of(a.ty().dtype) => host_sym(a)?,
        ExprKind::Binary(op, a, b) => {
            let op = match op {
                BinOp::Add => HostSymOp::Add,
                BinOp::Sub => HostSymOp::Sub,
                BinOp::Mul => HostSymOp::Mul,
                BinOp::FloorDiv => HostSymOp::FloorDiv,
                BinOp::FloorMod => HostSymOp::FloorMod,
                BinOp::Min => HostSymOp::Min,
                BinOp::Max => HostSymOp::Max,
                _ => return None,
            };
            HostSym::Binary(op, Box::new(host_sym(a)?), Box::new(host_sym(b)?))
        }
        _ => return None,
    })
}

/// A macro of the surrounding Python program: its text, and the names visible at its definition.
#[derive(FromPyObject)]
struct PyMacro<'py> {
    text: String,
    file: String,
    first_line: u32,
    dedent: u32,
    hygienic: bool,
    names: Bound<'py, PyDict>,
    globals: Bound<'py, PyDict>,
}

/// Parses a script. Returns a module or a single function. For a class that defines a pattern rewriter, returns its name and its
/// module. `first_line` and `dedent` locate the text in the user's file. `macros` are the macros that the text may use.
#[pyfunction]
#[pyo3(signature = (text, file="<str>", first_line=1, dedent=0, names=None, globals=None, macros=None))]
#[expect(clippy::too_many_arguments, reason = "each has a name in Python")]
pub fn parse_script<'py>(
    py: Python<'py>,
    text: &str,
    file: &str,
    first_line: u32,
    dedent: u32,
    names: Option<Bound<'py, PyDict>>,
    globals: Option<Bound<'py, PyDict>>,
    macros: Option<Vec<Bound<'py, PyAny>>>,
) -> Result<Bound<'py, PyAny>> {
    let add = |name: &str, text: &str, first_line: u32, dedent: u32| {
        add_source(SourceFile { name: name.into(), text: text.into(), first_line, dedent })
    };
    let id = add(file, text, first_line, dedent);
    let macros = macros.unwrap_or_default();
    let env = |names: Option<Bound<'py, PyDict>>, globals: Option<Bound<'py, PyDict>>| PyEnv {
        names: names.unwrap_or_else(|| PyDict::new(py)),
        globals: globals.unwrap_or_else(|| PyDict::new(py)),
        macros: macros.clone(),
    };
    let macro_defs = macros
        .iter()
        .map(|macro_def| Ok(macro_def.extract::<PyMacro<'py>>()?))
        .collect::<Result<Vec<_>>>()?;
    let envs: Vec<PyEnv<'py>> = macro_defs
        .iter()
        .map(|macro_def| env(Some(macro_def.names.clone()), Some(macro_def.globals.clone())))
        .collect();
    let mut text = text.to_string();
    let mut host_macros = Vec::with_capacity(macro_defs.len());
    for (macro_def, env) in macro_defs.iter().zip(&envs) {
        text.push('\n');
        let start = u32::try_from(text.len()).map_err(|_| {
            Error::Value(
                "the script and its macros are longer than the maximum of 4 GiB together".into(),
            )
        })?;
        text.push_str(&macro_def.text);
        let file = add(&macro_def.file, &macro_def.text, macro_def.first_line, macro_def.dedent);
        host_macros.push(HostMacro { start, file, hygienic: macro_def.hygienic, env });
    }
    let env = env(names, globals);
    let ops = pliant_ops::registry();
    let (parsed, errors) =
        catch_panic(|| Ok(pliant_script::parse_with_macros(&text, id, &host_macros, &env, ops)))?;
    match parsed {
        Some(Parsed::Module(module)) => Ok(Bound::new(py, IRModule::wrap(module))?.into_any()),
        Some(Parsed::Rewriter(name, module)) => {
            let module = Bound::new(py, IRModule::wrap(module))?;
            let name = PyString::new(py, &name).into_any();
            Ok(PyTuple::new(py, [name, module.into_any()])?.into_any())
        }
        Some(Parsed::Function(name, func)) => Ok(match func {
            BaseFunc::Relax(f) => Function::named(py, f, &name)?.into_any(),
            BaseFunc::Prim(f) => Bound::new(py, PrimFunc::named(f, &name))?.into_any(),
        }),
        None => Err(Error::Script(script_problem(&errors))),
    }
}

/// Raises an error for violations of the IR's rules in a script, with their source lines.
#[pyfunction]
pub fn check_script(module: &Bound<'_, IRModule>) -> Result<()> {
    let module = module.get().snapshot();
    let problems = pliant_ir::verify::verify_module(&module, pliant_ops::registry());
    if problems.is_empty() { Ok(()) } else { Err(Error::Script(script_problem(&problems))) }
}

/// Creates the exception for a script with errors from the first error and a report of all errors.
fn script_problem(errors: &[Diagnostic]) -> ScriptProblem {
    let Some(first) = errors.first() else {
        return ScriptProblem {
            message: "the script could not be parsed".into(),
            ..ScriptProblem::default()
        };
    };
    with_sources(|sources| {
        let mut message = first.message.clone();
        if let Some(help) = &first.help {
            message.push_str(&format!(" (help: {help})"));
        }
        for label in &first.labels {
            if let Some((file, line, _)) = sources.lines(label.span) {
                message.push_str(&format!(" ({}: {file}:{line})", label.text));
            }
        }
        match errors.len() {
            1 => {}
            n => message.push_str(&format!(" [and {} more]", n - 1)),
        }
        let start = sources.line_column(first.span);
        let file = sources.get(first.span.file);
        let location =
            start.zip(file).map(|((line, column), f)| (f.name.to_string(), line, column));
        let line = start.zip(file).and_then(|((line, _), f)| {
            let text = f.text.lines().nth((line - f.first_line) as usize)?;
            Some(format!("{}{text}\n", " ".repeat(f.dedent as usize)))
        });
        let length = first.span.end.saturating_sub(first.span.start).max(1);
        let width = line.as_ref().map_or(0, |l| l.trim_end().chars().count() as u32);
        let end_column = start.map(|(_, column)| (column + length).min(width + 1).max(column + 1));
        let rendered = pliant_diag::render_all(errors, sources, false);
        ScriptProblem { message, rendered, more: errors.len() > 1, location, end_column, line }
    })
}

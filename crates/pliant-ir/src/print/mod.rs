//! The printer: prints any module as a script that parses to the same module and prints identically again.
//!
//! | file | prints |
//! |---|---|
//! | `unique_names` | identifiers, which it makes valid and unique |
//! | `literals` | strings, numbers, attributes, small tensors |
//! | `symbol_names` | symbolic integers |
//! | `relax`, `relax_expr` | graph functions; their types and expressions |
//! | `tir`, `tir_block`, `tir_expr` | loop functions; their blocks and expressions |
//! | `syntax_highlighting` | colours for terminals |
//!
//! # Format
//! - Symbols that a signature introduces are printed as strings (`"n"`). All symbols of a function are declared at the start of its
//!   body (`n = T.int64()`), in the order of their first appearance. A local function only quotes and declares the symbols that the
//!   enclosing functions do not use.
//! - Every binding is annotated with the variable's type. Operands are printed by position and attributes by keyword, except for
//!   attributes with default values. Destination-passing calls are printed with `out_sinfo=` (a list for several results), other
//!   calls with explicit result types with `sinfo_args=(...,)`.
//! - A branch of an `if` ends with `var: type = result` for the variable that the `if` defines.
//! - Constants of at most 16 elements are printed as `R.const(value, "dtype")`, larger ones as
//!   `metadata["relax.expr.Constant"][i]`. With [`PrintOptions::show_meta`], the table precedes the module:
//!   `metadata = {"relax.expr.Constant": [I.tensor((2, 16), "float32", [[...], [...]])]}`. Tensors of more than 512 elements, and
//!   those with NaN, are written as base64 text.
//! - In loop functions plain integer literals are int64. Other constants state their type (`T.int32(3)`, `T.float32(0.5)`,
//!   `T.bool(True)`). `a / b` is float division; integers have `//`, `%`, `T.truncdiv` and `T.truncmod`. A range `(min, extent)` is
//!   printed as `min, end`: `end` is a constant if both are, `b` if the extent is `b - min`, and otherwise `min + extent`. Parsing
//!   `min + e` restores the extent `e`.
//! - `T.alloc_buffer` directly in a block allocates for the block. Elsewhere, and as `T.decl_buffer` in a block, the buffer lives
//!   until the end of the statement list.
//!
//! Printing takes linear time and does not recurse into long chains.

mod kernel_calls;
mod literals;
mod relax;
mod relax_expr;
mod symbol_names;
mod syntax_highlighting;
mod tir;
mod tir_block;
mod tir_expr;
mod unique_names;

use std::sync::Arc;

use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use crate::ir_module::{BaseFunc, IRModule};
use crate::op::OpRegistry;
use crate::{relax as graph, tir as loops};
pub use syntax_highlighting::highlight;

/// The name that the printer uses for variables whose values are not used.
pub const DISCARDED: &str = "_";

/// The first line of every printed script.
pub const HEADER: &str = "from pliant.script import ir as I, relax as R, tir as T\n";

/// Options of the printer.
#[derive(Clone, Debug)]
pub struct PrintOptions {
    /// Whether large constants are included in the script. Without them, the text cannot be parsed again.
    pub show_meta: bool,
    /// Whether the script starts with the import line.
    pub header: bool,
    /// The name of the class that represents the module in the script.
    pub module_name: Arc<str>,
}

impl Default for PrintOptions {
    fn default() -> Self {
        PrintOptions { show_meta: false, header: true, module_name: "Module".into() }
    }
}

impl PrintOptions {
    /// Options for a script that contains the whole module, including large constants.
    pub fn complete() -> Self {
        PrintOptions { show_meta: true, ..Self::default() }
    }
}

/// The state that the printers of all functions of a module share.
struct ModulePrinter<'a> {
    ops: &'a dyn OpRegistry,
    options: &'a PrintOptions,
    /// The printed names of global functions, by their names in the module.
    globals: FxHashMap<Arc<str>, String>,
    /// The large constants, which are printed before the functions in the table `metadata`.
    constants: Vec<Tensor>,
    /// The index in `constants` of each large constant, by the address of the tensor object.
    constant_ids: FxHashMap<usize, usize>,
}

impl<'a> ModulePrinter<'a> {
    fn new(ops: &'a dyn OpRegistry, options: &'a PrintOptions) -> Self {
        let (globals, constants) = (FxHashMap::default(), Vec::new());
        ModulePrinter { ops, options, globals, constants, constant_ids: FxHashMap::default() }
    }

    /// The index of a large constant in the table `metadata`, to which functions refer. The constant is added if it is new.
    fn constant(&mut self, tensor: &Tensor) -> usize {
        let address = std::ptr::from_ref(tensor.dl()) as usize;
        let next = self.constants.len();
        let index = *self.constant_ids.entry(address).or_insert(next);
        if index == next {
            self.constants.push(tensor.clone());
        }
        index
    }

    /// The printed name of a global function.
    fn global(&self, name: &str) -> String {
        self.globals.get(name).cloned().unwrap_or_else(|| unique_names::sanitize(name))
    }

    /// The text before the functions: the import line and the metadata.
    fn preamble(&self) -> String {
        let mut out = String::new();
        if self.options.header {
            out.push_str(HEADER);
            out.push('\n');
        }
        if self.constants.is_empty() {
            return out;
        }
        if !self.options.show_meta {
            out.push_str(
                "# Metadata omitted. Use show_meta=True in script() method to show it.\n\n",
            );
            return out;
        }
        out.push_str("metadata = {\n    \"relax.expr.Constant\": [\n");
        for tensor in &self.constants {
            let dims: Vec<String> = tensor.shape().iter().map(i64::to_string).collect();
            let shape = tuple(&dims);
            let data = literals::metadata_elements(tensor);
            out.push_str(&format!("        I.tensor({shape}, \"{}\", {data}),\n", tensor.dtype()));
        }
        out.push_str("    ]\n}\n\n");
        out
    }
}

/// Formats the parts as a Python tuple, such as `(a, b)` or `(a,)`.
pub(crate) fn tuple(parts: &[String]) -> String {
    match parts {
        [one] => format!("({one},)"),
        _ => format!("({})", parts.join(", ")),
    }
}

/// Prints a module. `ops` provides the signatures of operators.
pub fn print_module(module: &IRModule, ops: &dyn OpRegistry, options: &PrintOptions) -> String {
    let mut printer = ModulePrinter::new(ops, options);
    let mut taken = unique_names::Names::new();
    for name in module.functions.keys() {
        let printed = taken.take(name);
        printer.globals.insert(name.clone(), printed);
    }
    let mut body =
        format!("@I.ir_module\nclass {}:\n", unique_names::sanitize(&options.module_name));
    if !module.attrs.is_empty() {
        body.push_str(&format!("    I.module_attrs({})\n", literals::func_attrs(&module.attrs)));
    }
    if module.functions.is_empty() && module.attrs.is_empty() {
        body.push_str("    pass\n");
    }
    for (i, (name, func)) in module.functions.iter().enumerate() {
        if i > 0 {
            body.push('\n');
        }
        let name = printer.global(name);
        match func {
            BaseFunc::Relax(f) => relax::print(&mut printer, &mut body, &name, f, 1),
            BaseFunc::Prim(f) => tir::print(&mut body, &name, f, 1),
        }
    }
    let mut out = printer.preamble();
    out.push_str(&body);
    out
}

/// Prints a graph function as a standalone script.
pub fn print_function(
    name: &str,
    func: &graph::Function,
    ops: &dyn OpRegistry,
    options: &PrintOptions,
) -> String {
    let mut printer = ModulePrinter::new(ops, options);
    let mut body = String::new();
    relax::print(&mut printer, &mut body, &unique_names::sanitize(name), func, 0);
    let mut out = printer.preamble();
    out.push_str(&body);
    out
}

/// Prints a loop function as a standalone script.
pub fn print_prim_func(name: &str, func: &loops::PrimFunc, options: &PrintOptions) -> String {
    let mut out = String::new();
    if options.header {
        out.push_str(HEADER);
        out.push('\n');
    }
    tir::print(&mut out, &unique_names::sanitize(name), func, 0);
    out
}

/// Prints an expression of a graph function for error messages. Variables keep their own names.
pub fn expr_text(func: &graph::Function, expr: graph::Expr, ops: &dyn OpRegistry) -> String {
    let options = PrintOptions::default();
    let mut printer = ModulePrinter::new(ops, &options);
    relax::FuncPrinter::for_messages(&mut printer, func).expr(expr)
}

/// Prints a type of a graph function for error messages. Variables and symbols keep their own names.
pub fn type_text(func: &graph::Function, ty: graph::Type) -> String {
    let options = PrintOptions::default();
    let mut printer = ModulePrinter::new(&crate::op::NoOps, &options);
    relax::FuncPrinter::for_messages(&mut printer, func).ty(ty).to_string()
}

/// Prints an expression of a loop function for error messages. Variables and buffers keep their own names.
pub fn tir_expr_text(func: &loops::PrimFunc, expr: loops::Expr) -> String {
    tir::TirPrinter::for_messages(func).expr(expr)
}

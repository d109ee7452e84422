//! Tables with the meaning of every name of the script language, in all spellings of all dialects.
//!
//! Three dialects are supported: the dialect of TVM's RFC of Relax (2022), the `struct_info`
//! dialect of TVM 0.13 to 0.22 (which the printer produces), and the dialect of TVM 0.26. To
//! support another spelling, add a row to the tables.

/// A namespace of the script language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Namespace {
    /// The namespace of module constructs, with the prefix `I` as in `I.ir_module`.
    Ir,
    /// The namespace of graph functions, with the prefix `R` as in `R.function`.
    Relax,
    /// The namespace of loop functions, with the prefix `T` as in `T.prim_func`.
    Tir,
    /// The namespace of tensor expressions, `te`. Scripts use only the variables in it, as in `te.var("n")`.
    Te,
    /// The root modules `tvm` and `tvm.script`, which contain the modules of the other namespaces.
    Root,
}

/// The names that refer to a module although the script does not import or define them, with the
/// path of the module.
pub(crate) const DEFAULT_NAMES: &[(&str, &str)] = &[
    ("R", "tvm.script.relax"),
    ("T", "tvm.script.tir"),
    ("I", "tvm.script.ir"),
    ("relax", "tvm.relax"),
    ("rx", "tvm.relax"),
    ("tir", "tvm.tir"),
    ("te", "tvm.te"),
    ("ty", "tvm.tir"),
    ("tvm", "tvm"),
    ("pliant", "tvm"),
];

/// Module paths and their namespaces, longest first. `pliant` is equivalent to `tvm`.
const MODULES: &[(&str, Namespace)] = &[
    ("tvm.script.relax", Namespace::Relax),
    ("tvm.relax.op", Namespace::Relax),
    ("tvm.relax", Namespace::Relax),
    ("tvm.script.tirx", Namespace::Tir),
    ("tvm.script.tir", Namespace::Tir),
    ("tvm.script.ty", Namespace::Tir),
    ("tvm.s_tir", Namespace::Tir),
    ("tvm.tirx", Namespace::Tir),
    ("tvm.tir", Namespace::Tir),
    ("tvm.te", Namespace::Te),
    ("tvm.script.ir", Namespace::Ir),
    ("tvm.ir", Namespace::Ir),
    ("relax", Namespace::Relax),
    ("tir", Namespace::Tir),
    ("tvm.script", Namespace::Root),
    ("tvm", Namespace::Root),
    ("pliant", Namespace::Root),
];

/// Splits a dotted path into its namespace and the name in it. Names of the root modules are looked up in [`ROOT_NAMES`].
pub(crate) fn split(path: &str) -> Option<(Namespace, &str)> {
    let owned;
    let normal = match path.strip_prefix("pliant") {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => {
            owned = format!("tvm{rest}");
            owned.as_str()
        }
        _ => path,
    };
    for (module, ns) in MODULES {
        if let Some(rest) = normal.strip_prefix(module)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            let name = rest.trim_start_matches('.');
            let from = path.len() - name.len();
            if *ns == Namespace::Root
                && let Some(row) = ROOT_NAMES.iter().find(|row| row.0 == name)
            {
                return Some((row.1, row.2));
            }
            return Some((*ns, &path[from..]));
        }
    }
    None
}

/// Names in the root modules that denote a name of another namespace: `tvm.ir_module` is `I.ir_module`.
const ROOT_NAMES: &[(&str, Namespace, &str)] = &[
    ("ir_module", Namespace::Ir, "ir_module"),
    ("ir", Namespace::Ir, ""),
    ("relax", Namespace::Relax, ""),
    ("tir", Namespace::Tir, ""),
    ("te", Namespace::Te, ""),
    ("ty", Namespace::Tir, ""),
];

/// A construct of graph functions that is not an ordinary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RelaxName {
    Function,
    Dataflow,
    Output,
    FuncAttr,
    MatchCast,
    MatchShape,
    CallTir,
    CallDpsPacked,
    CallPacked,
    CallPurePacked,
    CallPyFunc,
    CallBuiltinWithCtx,
    CallInplacePacked,
    CallTirInplace,
    CallTirWithGrad,
    CallKernel,
    WhileLoop,
    Const,
    PrimValue,
    ShapeValue,
    StrValue,
    DTypeValue,
    TupleValue,
    TupleGetItem,
    ExternFunc,
    TensorTy,
    ShapeTy,
    TupleTy,
    ObjectTy,
    PrimTy,
    CallableTy,
}

/// The spellings of the constructs in graph functions that are not ordinary operators, in all
/// dialects.
const RELAX_NAMES: &[(&str, RelaxName)] = &[
    ("function", RelaxName::Function),
    ("func", RelaxName::Function),
    ("dataflow", RelaxName::Dataflow),
    ("output", RelaxName::Output),
    ("outputs", RelaxName::Output),
    ("func_attr", RelaxName::FuncAttr),
    ("match_cast", RelaxName::MatchCast),
    ("match_shape", RelaxName::MatchShape),
    ("call_tir", RelaxName::CallTir),
    ("call_tir_dyn", RelaxName::CallTir),
    ("call_dps_packed", RelaxName::CallDpsPacked),
    ("call_packed", RelaxName::CallPacked),
    ("call_pure_packed", RelaxName::CallPurePacked),
    ("call_py_func", RelaxName::CallPyFunc),
    ("call_builtin_with_ctx", RelaxName::CallBuiltinWithCtx),
    ("call_inplace_packed", RelaxName::CallInplacePacked),
    ("call_tir_inplace", RelaxName::CallTirInplace),
    ("call_tir_with_grad", RelaxName::CallTirWithGrad),
    ("call_kernel", RelaxName::CallKernel),
    ("while_loop", RelaxName::WhileLoop),
    ("const", RelaxName::Const),
    ("prim_value", RelaxName::PrimValue),
    ("PrimValue", RelaxName::PrimValue),
    ("shape", RelaxName::ShapeValue),
    ("ShapeExpr", RelaxName::ShapeValue),
    ("str", RelaxName::StrValue),
    ("dtype", RelaxName::DTypeValue),
    ("tuple", RelaxName::TupleValue),
    ("TupleGetItem", RelaxName::TupleGetItem),
    ("ExternFunc", RelaxName::ExternFunc),
    ("extern", RelaxName::ExternFunc),
    ("Tensor", RelaxName::TensorTy),
    ("DTensor", RelaxName::TensorTy),
    ("Shape", RelaxName::ShapeTy),
    ("Tuple", RelaxName::TupleTy),
    ("Object", RelaxName::ObjectTy),
    ("Any", RelaxName::ObjectTy),
    ("Prim", RelaxName::PrimTy),
    ("Callable", RelaxName::CallableTy),
];

/// The construct that a name spells in any dialect; `None` for other names.
pub(crate) fn relax_name(name: &str) -> Option<RelaxName> {
    RELAX_NAMES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// Alternative spellings of operators, with the declared names. Both omit the prefix `relax.`.
const OP_ALIASES: &[(&str, &str)] = &[
    ("dot", "matmul"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("div", "divide"),
    ("true_divide", "divide"),
    ("neg", "negative"),
    ("pow", "power"),
    ("transpose", "permute_dims"),
    ("concatenate", "concat"),
    ("cast", "astype"),
    ("relu", "nn.relu"),
    ("gelu", "nn.gelu"),
    ("silu", "nn.silu"),
    ("softmax", "nn.softmax"),
    ("log_softmax", "nn.log_softmax"),
    ("layer_norm", "nn.layer_norm"),
    ("rms_norm", "nn.rms_norm"),
    ("dropout", "nn.dropout"),
    ("attention", "nn.attention"),
    ("conv2d", "nn.conv2d"),
    ("batch_norm", "nn.batch_norm"),
    ("dense", "linear"),
    ("nn.dense", "linear"),
    ("nn.matmul", "matmul"),
    ("nn.batch_matmul", "matmul"),
    ("nn.add", "add"),
    ("vm.builtin.alloc_storage", "vm.alloc_storage"),
    ("vm.builtin.alloc_tensor", "vm.alloc_tensor"),
    ("runtime.builtin.alloc_heap", "vm.alloc_shape_heap"),
    ("runtime.builtin.alloc_storage", "memory.alloc_storage"),
    ("runtime.builtin.alloc_tensor", "memory.alloc_tensor"),
    ("runtime.builtin.free_storage", "memory.kill_storage"),
    ("runtime.builtin.free_tensor", "memory.kill_tensor"),
    ("runtime.builtin.load_shape", "vm.load_shape"),
    ("runtime.builtin.store_shape", "vm.store_shape"),
    ("vm.builtin.load_shape", "vm.load_shape"),
    ("vm.builtin.store_shape", "vm.store_shape"),
];

/// The declared name of the operator with this alternative spelling.
pub(crate) fn op_alias(name: &str) -> Option<&'static str> {
    OP_ALIASES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// The indices of two operands that are exchanged in this spelling of an operator, the smaller
/// index first.
pub(crate) fn swapped_operands(name: &str) -> Option<(usize, usize)> {
    // In the RFC the shape precedes the offset.
    (name == "runtime.builtin.alloc_tensor").then_some((1, 2))
}

/// All spellings of constructs and operators, from which error messages suggest corrections.
pub(crate) fn relax_spellings() -> impl Iterator<Item = &'static str> {
    RELAX_NAMES.iter().map(|row| row.0).chain(OP_ALIASES.iter().map(|row| row.0))
}

/// The name of the tensor operator that a Python operator such as `+` calls.
pub(crate) fn python_op(symbol: &str) -> Option<&'static str> {
    const TABLE: &[(&str, &str)] = &[
        ("+", "add"),
        ("-", "subtract"),
        ("*", "multiply"),
        ("/", "divide"),
        ("//", "floor_divide"),
        ("%", "floor_mod"),
        ("**", "power"),
        ("@", "matmul"),
        ("<<", "left_shift"),
        (">>", "right_shift"),
        ("&", "bitwise_and"),
        ("|", "bitwise_or"),
        ("^", "bitwise_xor"),
        ("==", "equal"),
        ("!=", "not_equal"),
        ("<", "less"),
        ("<=", "less_equal"),
        (">", "greater"),
        (">=", "greater_equal"),
    ];
    TABLE.iter().find(|row| row.0 == symbol).map(|row| row.1)
}

/// The keyword arguments, in all dialects, that state the result type of a call.
pub(crate) const TYPE_KEYWORDS: &[&str] =
    &["sinfo_args", "ty_args", "type_args", "out_sinfo", "out_ty", "out_struct_info"];

/// Keyword arguments of calls that are ignored, because there is only CPU memory. The memory
/// builtins in TVM's RFC of Relax (2022) have them.
pub(crate) const IGNORED_KEYWORDS: &[&str] = &["device", "vdevice"];

/// The default value of an operand that scripts in the dialect of TVM's RFC of Relax (2022) may omit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperandDefault {
    /// The default is this integer scalar.
    Int(i64),
    /// The default is this string.
    Str(&'static str),
    /// The default is this data type.
    DType(pliant_tensor::DType),
}

/// Returns the default value of an operand that scripts in the dialect of TVM's RFC of Relax (2022) may omit; `None` if the
/// operand has no default.
pub(crate) fn operand_default(op: &str, operand: &str) -> Option<OperandDefault> {
    let memory = matches!(op, "relax.memory.alloc_storage" | "relax.vm.alloc_storage");
    match operand {
        "virtual_device_index" | "runtime_device_index" => Some(OperandDefault::Int(0)),
        "storage_scope" if memory => Some(OperandDefault::Str("global")),
        "dtype" if memory => Some(OperandDefault::DType(pliant_tensor::DType::UInt8)),
        _ => None,
    }
}

//! The table of spellings: what every name means in every dialect.
//!
//! Three dialects are supported: that of the RFC of 2022, the `struct_info` dialect of TVM 0.13 to 0.22 (which the printer
//! produces), and that of TVM 0.26. To support another spelling, add a row here.

/// A namespace of the script language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Namespace {
    /// Modules: `I`.
    Ir,
    /// Graph functions: `R`.
    Relax,
    /// Loop functions: `T`.
    Tir,
    /// Tensor expressions. Scripts use only their variables.
    Te,
    /// Parent modules of the above (`tvm`, `tvm.script`).
    Root,
}

/// Names that refer to a module unless the script defines them.
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

/// Names of the root modules that belong to another namespace.
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

/// The spellings of constructs of graph functions.
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

/// The construct with the given spelling.
pub(crate) fn relax_name(name: &str) -> Option<RelaxName> {
    RELAX_NAMES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// Alternative spellings of operators, without the prefix `relax.`.
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

/// The declared name for an alternative spelling of an operator.
pub(crate) fn op_alias(name: &str) -> Option<&'static str> {
    OP_ALIASES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// Indices of two operands whose order is swapped in this spelling, the smaller index first.
pub(crate) fn swapped_operands(name: &str) -> Option<(usize, usize)> {
    // In the RFC the shape precedes the offset.
    (name == "runtime.builtin.alloc_tensor").then_some((1, 2))
}

/// All spellings of constructs and operators, for suggestions.
pub(crate) fn relax_spellings() -> impl Iterator<Item = &'static str> {
    RELAX_NAMES.iter().map(|row| row.0).chain(OP_ALIASES.iter().map(|row| row.0))
}

/// The operator on tensors for a Python operator.
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

/// The keywords for the result type of a call in all dialects.
pub(crate) const TYPE_KEYWORDS: &[&str] =
    &["sinfo_args", "ty_args", "type_args", "out_sinfo", "out_ty", "out_struct_info"];

/// Keywords of the RFC's memory builtins that are ignored, because there is only CPU memory.
pub(crate) const IGNORED_KEYWORDS: &[&str] = &["device", "vdevice"];

/// The default value of an operand that the dialect of 2022 omits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperandDefault {
    /// A scalar.
    Int(i64),
    /// A string.
    Str(&'static str),
    /// A data type.
    DType(pliant_tensor::DType),
}

/// The default value of an operand that the dialect of 2022 omits, by operator and operand name.
pub(crate) fn operand_default(op: &str, operand: &str) -> Option<OperandDefault> {
    let memory = matches!(op, "relax.memory.alloc_storage" | "relax.vm.alloc_storage");
    match operand {
        "virtual_device_index" | "runtime_device_index" => Some(OperandDefault::Int(0)),
        "storage_scope" if memory => Some(OperandDefault::Str("global")),
        "dtype" if memory => Some(OperandDefault::DType(pliant_tensor::DType::UInt8)),
        _ => None,
    }
}

//! Determines the element types of an operator's operands and result by querying its type rule, so that no separate list must be
//! maintained.

use pliant_ir::relax::{Expr, FunctionBuilder, TypeData};
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_ops::op_declaration::{Default, Legalize};
use pliant_ops::type_inference::InferCtx;
use pliant_ops::{OpDecl, registry};

const TYPES: [DType; 13] = [
    DType::Bool,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
    DType::Float16,
    DType::BFloat16,
    DType::Float32,
    DType::Float64,
];

/// The cases in which operands are tested: nothing is known about the operand's shape (`None`), or
/// only its rank is known.
const KNOWN_RANKS: [Option<usize>; 7] =
    [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)];

/// Whether the operand is a tensor or a tuple of tensors.
#[derive(Clone, Copy)]
enum Kind {
    Tensor,
    Tuple,
}

/// What is known about an operand: nothing (`None`), or its kind, optionally its rank, and its
/// element type.
type KnownOperand = Option<(Kind, Option<usize>, DType)>;

/// The element types of an operator's operands and result.
pub struct DataTypes {
    /// The types in words, such as "`x` floats; result as `x`".
    pub text: String,
    /// Whether the type rule rejects tensors of other types. False if the attribute `dtype` can change the accepted types.
    pub restricted: bool,
}

/// The element types of the operands and of the result. `None` if there are no tensors, for operators that later stages implement and
/// for operators with side effects.
pub fn data_types(decl: &OpDecl) -> Option<DataTypes> {
    if matches!(decl.legalize, Legalize::Keep) || !decl.pure {
        return None;
    }
    let operands = element_types(decl);
    let restricted = operands.iter().any(|(_, types)| types != "any type")
        && !decl.attrs.iter().any(|(name, _)| *name == "dtype");
    let operands = operands.into_iter();
    let mut list: Vec<String> = operands.map(|(name, types)| format!("`{name}` {types}")).collect();
    list.extend(result_type(decl).map(|ty| format!("result {ty}")));
    (!list.is_empty()).then(|| DataTypes { text: list.join("; "), restricted })
}

/// For each operand that is a tensor or a tuple of tensors, the element types that the type rule accepts, in words. For an operand
/// that must have the type of another one, the text is "as" and the name of the other operand.
pub fn element_types(decl: &OpDecl) -> Vec<(String, String)> {
    let mut list = Vec::new();
    let operands = decl.signature().operands;
    for (k, spec) in operands.iter().enumerate() {
        let name = spec.name;
        if let Some(same) = operand_of_same_type(decl, k) {
            list.push((name.to_string(), format!("as `{}`", operands[same].name)));
            continue;
        }
        for (kind, before) in [(Kind::Tensor, ""), (Kind::Tuple, "tuple of ")] {
            if !accepts_kind(decl, k, kind) {
                continue;
            }
            let taken: Vec<DType> =
                TYPES.into_iter().filter(|&t| accepts_type(decl, k, kind, t)).collect();
            if !taken.is_empty() {
                list.push((name.to_string(), format!("{before}{}", type_class_names(&taken))));
                break;
            }
        }
    }
    list
}

/// The first operand before operand `k` whose element type operand `k` must have. `None` if there is no such operand. An operand must
/// have the type of another one if there are ranks for which the type rule accepts equal types, but rejects all different ones.
fn operand_of_same_type(decl: &OpDecl, k: usize) -> Option<usize> {
    let must_be_equal = |first: usize, ranks: (Option<usize>, Option<usize>)| {
        let accepted = |a: DType, b: DType| {
            let known = |i: usize| {
                let operands = [(first, ranks.0, a), (k, ranks.1, b)];
                let operand = operands.into_iter().find(|operand| operand.0 == i);
                operand.map(|(_, rank, dtype)| (Kind::Tensor, rank, dtype))
            };
            !results(decl, k, known).is_empty()
        };
        TYPES.into_iter().any(|a| accepted(a, a))
            && TYPES.into_iter().all(|a| TYPES.into_iter().all(|b| a == b || !accepted(a, b)))
    };
    let ranks =
        || KNOWN_RANKS.into_iter().flat_map(|a| KNOWN_RANKS.into_iter().map(move |b| (a, b)));
    (0..k).find(|&first| ranks().any(|ranks| must_be_equal(first, ranks)))
}

/// The element type of the result in words: "as" and the name of an operand, or a type that is always the same. `None` if the
/// operands do not determine the type in this way, or an attribute does.
fn result_type(decl: &OpDecl) -> Option<String> {
    if decl.attrs.iter().any(|(name, _)| name.contains("dtype") || *name == "out_int32") {
        return None;
    }
    for (k, spec) in decl.signature().operands.iter().enumerate() {
        let mut pairs: Vec<(DType, Option<DType>)> = Vec::new();
        for dtype in TYPES {
            let known = |i: usize| (i == k).then_some((Kind::Tensor, None, dtype));
            pairs.extend(results(decl, k, known).into_iter().map(|result| (dtype, result)));
        }
        let Some(&(_, Some(first))) = pairs.first() else { continue };
        if pairs.iter().all(|&(dtype, result)| result == Some(dtype)) {
            return Some(format!("as `{}`", spec.name));
        }
        if pairs.iter().all(|&(_, result)| result == Some(first)) {
            return Some(first.to_string());
        }
    }
    None
}

/// Whether operand `k` can be of this kind. The type rule is called with first operands of ranks 1
/// to 4. The result is false if the rule accepts an operand `k` of unknown type for some of these
/// ranks, but rejects every operand `k` of this kind for all of them.
fn accepts_kind(decl: &OpDecl, k: usize, kind: Kind) -> bool {
    let open: Vec<usize> =
        (1..5).filter(|&rank| k > 0 && accepts(decl, k, None, Some(rank))).collect();
    let any = |rank: &usize| {
        KNOWN_RANKS.into_iter().any(|known| {
            [DType::Float32, DType::Int64]
                .into_iter()
                .any(|dtype| accepts(decl, k, Some((kind, known, dtype)), Some(*rank)))
        })
    };
    open.is_empty() || open.iter().any(any)
}

/// Whether an operand accepts the element type `dtype`. The result is false if there is a rank for
/// which the type rule rejects `dtype` but accepts another element type.
fn accepts_type(decl: &OpDecl, k: usize, kind: Kind, dtype: DType) -> bool {
    let mut accepted_once = false;
    for known in KNOWN_RANKS {
        let accepted = accepts(decl, k, Some((kind, known, dtype)), None);
        accepted_once |= accepted;
        let other = |other: DType| accepts(decl, k, Some((kind, known, other)), None);
        if !accepted && TYPES.into_iter().any(other) {
            return false;
        }
    }
    accepted_once
}

/// Whether the type rule of an operator accepts operand `k` of the kind, rank and data type `is`. Operand 0 is a float32 tensor of
/// rank `first` unless that is `None` or `k` is 0. The types of all other operands are unknown.
fn accepts(decl: &OpDecl, k: usize, is: KnownOperand, first: Option<usize>) -> bool {
    let first = first.map(|rank| (Kind::Tensor, Some(rank), DType::Float32));
    !results(decl, k, |i| if i == k { is } else { first.filter(|_| i == 0) }).is_empty()
}

/// Calls the type rule of an operator once for each sample of its required attributes. The operands of the calls are
/// the required ones and those up to operand `k`; `known(i)` is what their types state about operand `i`. Returns, for
/// each call that the type rule accepts, the element type of the result: `None` if the result is not a tensor or its
/// element type is unknown.
fn results(decl: &OpDecl, k: usize, known: impl Fn(usize) -> KnownOperand) -> Vec<Option<DType>> {
    let last = decl.signature().operands.iter().rposition(|s| !s.optional);
    let count = (k + 1).max(last.map_or(0, |k| k + 1));
    let mut list = Vec::new();
    for attrs in samples(decl) {
        let mut builder = FunctionBuilder::new(registry());
        let args: Vec<Expr> = (0..count).map(|i| operand(&mut builder, known(i))).collect();
        let func = builder.func_mut();
        let mut ctx = InferCtx::new(func, decl, &args, &attrs, &[]);
        let Ok(ty) = (decl.infer)(&mut ctx) else { continue };
        list.push(match ctx.func.types.get(ty) {
            TypeData::Tensor { dtype, .. } => *dtype,
            _ => None,
        });
    }
    list
}

fn operand(builder: &mut FunctionBuilder<'static>, is: KnownOperand) -> Expr {
    let func = builder.func_mut();
    let ty = match is {
        None => func.intern(TypeData::Any),
        Some((kind, known, dtype)) => {
            let tensor = match known {
                None => TypeData::tensor_unknown(Some(dtype)),
                Some(rank) => {
                    let dims: Vec<_> = (0..rank)
                        .map(|_| {
                            let var = func.fresh_sym("n");
                            func.syms.var(var)
                        })
                        .collect();
                    TypeData::tensor(dims, dtype)
                }
            };
            let tensor = func.intern(tensor);
            match kind {
                Kind::Tensor => tensor,
                Kind::Tuple => func.intern(TypeData::Tuple([tensor].into())),
            }
        }
    };
    let var = builder.param("x", ty);
    builder.func_mut().var_expr(var)
}

/// Sets of values for the required attributes. The operator accepts at least one of the sets.
fn samples(decl: &OpDecl) -> Vec<Attrs> {
    let required: Vec<&str> = decl
        .attrs
        .iter()
        .filter(|(_, d)| matches!(d, Default::Required))
        .map(|(name, _)| *name)
        .collect();
    if required.is_empty() {
        return vec![Attrs::default()];
    }
    let ints = |n: usize| AttrValue::ints(vec![1; n]);
    let rows = [AttrValue::Int(1), AttrValue::Int(0), ints(1), ints(2), ints(4), ints(6), ints(8)];
    rows.into_iter()
        .map(|value| {
            let mut attrs = Attrs::default();
            for name in &required {
                let value = match *name {
                    "index_map" => AttrValue::str("lambda i, j: (j, i)"),
                    "subscripts" => AttrValue::str("ab->b"),
                    "dtype" => AttrValue::DType(DType::Float32),
                    // Normalizations require a channel axis that is not among the normalized axes.
                    "channel_axis" => AttrValue::Int(0),
                    _ => value.clone(),
                };
                attrs.set(name, value);
            }
            attrs
        })
        .collect()
}

/// The names of the classes, such as "floats", that these types form.
fn type_class_names(types: &[DType]) -> String {
    let has =
        |t: &dyn Fn(DType) -> bool| TYPES.into_iter().filter(|&d| t(d)).all(|d| types.contains(&d));
    let classes: [(&str, &dyn Fn(DType) -> bool); 5] = [
        ("any type", &|_| true),
        ("numbers", &|d| !d.is_bool()),
        ("integers", &|d| d.is_integer()),
        ("floats", &|d| d.is_float()),
        ("bool", &|d| d.is_bool()),
    ];
    let (mut words, mut covered) = (Vec::new(), Vec::new());
    for (name, holds) in classes {
        let class_types: Vec<DType> = TYPES.into_iter().filter(|&d| holds(d)).collect();
        if has(holds) && !class_types.iter().all(|d| covered.contains(d)) {
            words.push(name.to_string());
            covered.extend(class_types);
        }
    }
    words.extend(types.iter().filter(|d| !covered.contains(d)).map(|d| d.to_string()));
    words.join(", ")
}

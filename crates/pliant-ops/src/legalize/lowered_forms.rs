//! Creates the forms to which a call is lowered: a loop function made from tensor expressions, a view, or a call of a packed
//! function.

use pliant_ir::op::Op;
use pliant_ir::relax::{Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Sym};
use rustc_hash::FxHashSet;

use super::{LegalizeCtx, LegalizeError, Legalized, TirCall, to_tir};
use crate::op_declaration::{Legalize, OpDecl};
use crate::ops::squeezed_axes_to_check;
use crate::te::{self, Arg, AssumedDims, VarMap};
use crate::type_inference::InferCtx;

/// A call that is expressed by tensor expressions.
pub(crate) struct TeForm {
    /// The preferred name of the loop function.
    pub(crate) name: &'static str,
    /// The inputs of the tensor expressions of a call: placeholders, each with the operand that it represents.
    pub(crate) inputs: Vec<(te::Tensor, Expr)>,
    /// The tensor expressions of the results of a call.
    pub(crate) outputs: Vec<te::Tensor>,
    /// The dims of operands that are assumed to be equal to other sizes, and the checks of this
    /// assumption.
    pub(crate) assumed: AssumedDims,
    /// The mapping between symbols of the calling function and size variables of the tensor
    /// expressions.
    pub(crate) vars: VarMap,
}

/// The tensor expressions of `op(args, attrs)`; `None` if the operator has none.
///
/// # Errors
/// If a required shape or data type is unknown.
pub(crate) fn te_form(
    func: &mut Function,
    decl: &'static OpDecl,
    (args, attrs): (&[Expr], &Attrs),
    ty: Type,
    trust_indices: bool,
) -> Result<Option<TeForm>, LegalizeError> {
    let (Legalize::Te(te) | Legalize::View(te)) = decl.legalize else { return Ok(None) };
    let mut ctx = LegalizeCtx::new(func, decl, args, attrs, ty);
    ctx.trust_indices = trust_indices;
    let outputs = te(&mut ctx)?;
    let LegalizeCtx { inputs, vars, assumed, name_hint, .. } = ctx;
    let name = name_hint.unwrap_or_else(|| decl.name.rsplit('.').next().unwrap_or(decl.name));
    Ok(Some(TeForm { name, inputs, outputs, assumed, vars }))
}

/// Lowers a call to a view of its first operand.
pub(super) fn legalize_view(
    func: &mut Function,
    decl: &'static OpDecl,
    args: &[Expr],
    attrs: &Attrs,
    ty: Type,
) -> Result<Option<Legalized>, LegalizeError> {
    if decl.name == "relax.reshape" && func.types.get(ty).dims().is_none() {
        let sizes = args.get(1).map(|&shape| func.expr(shape));
        let is_placeholder_size = |d: &Sym| func.syms.as_int(*d).is_some_and(|size| size <= 0);
        if matches!(sizes, Some(ExprData::Shape(written)) if written.iter().any(is_placeholder_size))
        {
            let message = format!(
                "{op}: the shape of x must be known, because a size in the new shape is -1 or 0, \
                 which depends on it",
                op = decl.name
            );
            return Err(LegalizeError::unknown(message));
        }
        // The shape is a run-time value, which the VM uses directly.
        return Ok(None);
    }
    let mut infer = InferCtx::new(func, decl, args, attrs, &[]);
    if decl.name == "relax.squeeze" && !squeezed_axes_to_check(&mut infer)?.is_empty() {
        // If the tensor is empty, the number of elements does not show whether a size is 1.
        let call = to_tir(func, Op::new(decl.name), args, attrs, ty, false)?;
        return Ok(call.map(Legalized::Tir));
    }
    let dims = LegalizeCtx::new(func, decl, args, attrs, ty).out_dims(0)?;
    if let (Some(&shape), "relax.reshape") = (args.get(1), decl.name)
        && matches!(func.expr(shape), ExprData::Shape(written) if **written == *dims)
    {
        return Ok(None);
    }
    let shape = func.shape(&dims);
    Ok(Some(Legalized::Reshape { input: args[0], shape }))
}

/// Creates the loop function that computes `outputs`, and a call of it. The call passes the tensors
/// among `inputs` that the outputs read.
///
/// # Errors
/// Those of [`te::create_prim_func`], or if a size does not correspond to a symbol of the function.
pub(crate) fn tir_call(
    func: &mut Function,
    name: &str,
    inputs: &[(te::Tensor, Expr)],
    outputs: &[te::Tensor],
    vars: &VarMap,
    ty: Type,
) -> Result<TirCall, LegalizeError> {
    tir_call_assuming(func, name, (inputs, outputs, &AssumedDims::default()), vars, ty)
}

/// Makes each output a separate stage. An output is copied if it is an operand, or the same tensor
/// as another output.
///
/// # Errors
/// If an output is a placeholder that is not an operand.
pub(super) fn copy_aliased_outputs(
    name: &str,
    inputs: &[(te::Tensor, Expr)],
    outputs: &[te::Tensor],
) -> Result<Vec<te::Tensor>, LegalizeError> {
    let mut seen = FxHashSet::default();
    let mut distinct = Vec::with_capacity(outputs.len());
    for t in outputs {
        if t.is_placeholder() && !inputs.iter().any(|(input, _)| input == t) {
            let message =
                format!("{name}: the result {} is a placeholder that is not an operand", t.name());
            return Err(LegalizeError::new(message));
        }
        distinct.push(match t.is_placeholder() || !seen.insert(t.clone()) {
            true => te::compute(t.shape().to_vec(), "T_copy", |i| t.at(i)),
            false => t.clone(),
        });
    }
    Ok(distinct)
}

/// Creates the loop function that computes `outputs` from `inputs`, and a call of it. The outputs may be computed as if dims of the
/// inputs were equal to other sizes; `assumed` lists these dims, with run-time checks of the equality.
pub(crate) fn tir_call_assuming(
    func: &mut Function,
    name: &str,
    (inputs, outputs, assumed): (&[(te::Tensor, Expr)], &[te::Tensor], &AssumedDims),
    vars: &VarMap,
    ty: Type,
) -> Result<TirCall, LegalizeError> {
    let outputs = &copy_aliased_outputs(name, inputs, outputs)?[..];
    let used: FxHashSet<te::Tensor> = te::placeholders_of(outputs).into_iter().collect();
    // Inputs that are only read by checks must be passed as well.
    let is_read = |t: &te::Tensor| used.contains(t) || assumed.declared.contains_key(t);
    let inputs: Vec<&(te::Tensor, Expr)> = inputs.iter().filter(|(t, _)| is_read(t)).collect();
    let args: Vec<Arg> = inputs.iter().map(|(t, _)| t).chain(outputs).map(Arg::from).collect();
    let created = te::create_prim_func_assuming(&args, assumed)?;
    let mut tir_vars = Vec::new();
    for var in &created.size_params {
        let Some(size) = vars.get_term(&mut func.syms, var) else {
            return Err(LegalizeError::new(format!(
                "{name}: the size {var} in a result's shape is not a symbol of the calling function"
            )));
        };
        tir_vars.push(size);
    }
    let (out_tys, tuple) = match func.types.get(ty) {
        TypeData::Tuple(fields) => (fields.to_vec(), true),
        _ => (vec![ty], false),
    };
    let mut prim = created.func;
    prim.private = true;
    let inputs = inputs.iter().map(|&&(_, e)| e).collect();
    Ok(TirCall { func: prim, name: name.into(), inputs, tir_vars, out_tys, tuple })
}

/// Lowers a call to a packed function. The packed function receives the operands of the call, then
/// the attributes as values, then the variadic operands.
pub(super) fn legalize_packed(
    func: &mut Function,
    decl: &OpDecl,
    name: &'static str,
    args: &[Expr],
    attrs: &Attrs,
) -> Result<Legalized, LegalizeError> {
    let fixed = decl.operands.iter().position(|o| o.starts_with('*')).unwrap_or(args.len());
    let (fixed, rest) = args.split_at(fixed.min(args.len()));
    let mut args = fixed.to_vec();
    // Attributes have fixed positions, so absent operands before them are passed explicitly.
    let operands = decl.operands.iter().take_while(|o| !o.starts_with('*')).count();
    while args.len() < operands && !decl.attrs.is_empty() {
        args.push(func.tuple(&[]));
    }
    for (key, _) in decl.attrs {
        let value = match crate::call_attributes::attr(decl, attrs, key) {
            AttrValue::Bool(b) => {
                let v = func.syms.int(b as i64);
                func.int_value(v, DType::Int64)
            }
            AttrValue::Int(v) => {
                let v = func.syms.int(v);
                func.int_value(v, DType::Int64)
            }
            AttrValue::Float(bits) => func.float_value(f64::from_bits(bits), DType::Float64),
            AttrValue::Str(s) => func.str_value(&s),
            AttrValue::DType(d) => func.dtype_value(d),
            AttrValue::None => func.tuple(&[]),
            AttrValue::List(_) | AttrValue::Map(_) => {
                let op = decl.name;
                return Err(LegalizeError::new(format!(
                    "{op}: attribute {key} is a list or a dict, which cannot be passed to the packed function {name}"
                )));
            }
        };
        args.push(value);
    }
    args.extend_from_slice(rest);
    Ok(Legalized::Packed { name, args })
}

//! # What it does
//! Rewrites convolutions, and operators on their results, to the channels-last layout (`NCHW` becomes `NHWC`), which the
//! kernels read and write directly and in which they add residuals. The input of the first convolution is transposed, and
//! results are transposed back for readers that expect the old layout.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Tensor(("n", 2, "h", 4), "float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     with R.dataflow():
//!         lv = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
//!         gv = R.nn.relu(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Tensor(("n", 2, "h", 4), "float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     with R.dataflow():
//!         lv1: R.Tensor((n, h, 4, 2), "float32") = R.permute_dims(x, axes=[0, 2, 3, 1])
//!         lv2: R.Tensor((n, h, 4, 2), "float32") = R.nn.conv2d(lv1, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
//!         lv: R.Tensor((n, 2, h, 4), "float32") = R.permute_dims(lv2, axes=[0, 3, 1, 2])
//!         lv3: R.Tensor((n, h, 4, 2), "float32") = R.nn.relu(lv2)
//!         gv: R.Tensor((n, 2, h, 4), "float32") = R.permute_dims(lv3, axes=[0, 3, 1, 2])
//!         R.output(lv3, gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. [`DeadCodeElimination`](crate::canonicalize::dead_code_elimination) removes the transposes that nobody reads.
//!
//! # Keeps
//! The types of all bindings. Operators that it does not know read what was transposed back; convolutions of other types, of
//! weights whose sizes are not known, and all of it where kernels are switched off.
//!
//! # Never
//! Changes a value.

use std::sync::Arc;

use pliant_ir::op::InferError;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, BaseFunc, DType, IRModule, Op, OpRegistry};
use pliant_pass::pattern::Defs;
use pliant_pass::rewrite::{Namer, reachable_seqs, rewrite_bindings};
use pliant_pass::{ModulePass, PassContext, PassError, Writers};
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use crate::common::products::{CONVOLUTIONS, PERMUTE};
use crate::offload::dequantized::is_one;
use crate::offload::integer_sums::{CAST, SUBTRACT};
use crate::offload::rules::conv_int8::matcher as integers;

const POOLS: [Op; 9] = [
    Op("relax.nn.max_pool1d"),
    Op("relax.nn.max_pool2d"),
    Op("relax.nn.max_pool3d"),
    Op("relax.nn.avg_pool1d"),
    Op("relax.nn.avg_pool2d"),
    Op("relax.nn.avg_pool3d"),
    Op("relax.nn.adaptive_avg_pool1d"),
    Op("relax.nn.adaptive_avg_pool2d"),
    Op("relax.nn.adaptive_avg_pool3d"),
];
/// Reductions over axes.
const REDUCTIONS: [Op; 3] = [Op("relax.mean"), Op("relax.sum"), Op("relax.max")];

/// See the module's documentation.
pub struct ChannelsLast;

impl ModulePass for ChannelsLast {
    fn name(&self) -> &str {
        "ChannelsLast"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let names: Vec<Arc<str>> = module.relax_funcs().map(|(name, _)| name.clone()).collect();
        let writers = Writers::of(&module);
        for name in names {
            ctx.check_cancelled()?;
            let Some(BaseFunc::Relax(func)) = module.functions.get_mut(&name) else { continue };
            if !convolves(func) {
                continue;
            }
            let func = Arc::make_mut(func);
            let defs = Defs::of(func, ctx.ops, Some(&writers));
            let mut turner = Turner { ops: ctx.ops, defs, last: FxHashMap::default(), namer: None };
            rewrite_bindings(func, |func, binding, out| turner.binding(func, binding, out))
                .map_err(|e: PassError| e.in_function(&name))?;
        }
        Ok(module)
    }
}

/// The call of an operator: the operator, its operands and its attributes.
fn call(func: &Function, e: Expr) -> Option<(Op, Vec<Expr>, Attrs)> {
    match func.expr(e) {
        ExprData::Call { callee: Callee::Op(op), args, attrs, .. } => {
            Some((*op, func.list(*args).to_vec(), func.call_attrs(*attrs).clone()))
        }
        _ => None,
    }
}

fn convolves(func: &Function) -> bool {
    reachable_seqs(func).into_iter().any(|seq| {
        let mut blocks = func.seq(seq).blocks.iter();
        let any = |e: Expr| convolution(func, e) || integers::may_be(func, e);
        blocks.any(|&b| func.block(b).bindings.iter().any(|b| any(b.value)))
    })
}

/// Whether a value is a convolution of float32 by weights of known sizes whose channels come first.
fn convolution(func: &Function, e: Expr) -> bool {
    let Some((op, args, attrs)) = call(func, e) else { return false };
    let Some(place) = CONVOLUTIONS.iter().position(|&o| o == op) else { return false };
    let float = |e: Expr| func.ty(e).dtype() == Some(DType::Float32);
    let known = |d: &[_]| d.iter().all(|&d| func.syms.as_int(d).is_some());
    func.ty(args[1]).dims().is_some_and(known)
        && args.iter().all(|&a| float(a))
        && float(e)
        && func.ty(e).dims().is_some()
        && func.ty(args[0]).dims().is_some()
        && channels_first(&attrs, "data_layout", place % 3 + 1)
}

/// Whether a layout has its channels first, and that of the results is the same.
fn channels_first(attrs: &Attrs, name: &str, dims: usize) -> bool {
    let own = attrs.get(name).and_then(AttrValue::as_str);
    let out = attrs.get("out_layout").filter(|v| !v.is_none()).and_then(AttrValue::as_str);
    let first = format!("NC{}", &"DHW"[3 - dims..]);
    own == Some(&first) && out.is_none_or(|o| o == first || o.is_empty())
}

/// The attributes with layouts whose channels come last.
fn with_last(mut attrs: Attrs, name: &str, dims: usize) -> Attrs {
    let last = AttrValue::str(&format!("N{}C", &"DHW"[3 - dims..]));
    attrs.set("out_layout", last.clone());
    attrs.set(name, last);
    attrs
}

struct Turner<'a> {
    ops: &'a dyn OpRegistry,
    /// Between which effects variables are computed: what writes into one leaves its other form as it was.
    defs: Defs,
    /// The values with channels last of variables with channels first.
    last: FxHashMap<Var, Expr>,
    namer: Option<Namer>,
}

impl Turner<'_> {
    fn binding(
        &mut self,
        func: &mut Function,
        mut binding: Binding,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        if let Some(value) = self.reduced(func, binding)? {
            binding.value = value;
        } else if let Some(value) = self.turned(func, binding, out)? {
            let y = self.bind(func, value, binding.var, out);
            let rank = func.ty(value).dims().map_or(0, <[_]>::len);
            let back: Vec<i64> =
                std::iter::once(0).chain([rank as i64 - 1]).chain(1..rank as i64 - 1).collect();
            let whole = self.permuted(func, y, back)?;
            if func.expr_ty(whole) == func.var(binding.var).ty {
                self.last.insert(binding.var, y);
                binding.value = whole;
            }
        }
        out.push(binding);
        Ok(())
    }

    /// The value of a binding with channels last, where there is one.
    fn turned(
        &mut self,
        func: &mut Function,
        binding: Binding,
        out: &mut Vec<Binding>,
    ) -> Result<Option<Expr>, PassError> {
        if convolution(func, binding.value) {
            let Some((op, args, attrs)) = call(func, binding.value) else { return Ok(None) };
            let dims = func.ty(args[0]).dims().map_or(0, <[_]>::len) - 2;
            let x = self.operand(func, args[0], binding.var, out)?;
            let attrs = with_last(attrs, "data_layout", dims);
            return self.call(func, op, &[x, args[1]], attrs).map(Some);
        }
        let Some((op, args, attrs)) = call(func, binding.value) else { return Ok(None) };
        if let Some(c) = integers::convolution(func, &self.defs, binding).filter(|c| !c.last) {
            let x = self.integers(func, args[0], &c, binding.var, out)?;
            let attrs = with_last(attrs, "data_layout", c.dims);
            return self.call(func, op, &[x, args[1]], attrs).map(Some);
        }
        let known: Vec<Option<Expr>> =
            args.iter().map(|&a| self.known(func, a, binding.var)).collect();
        match known[..] {
            [Some(x)] if POOLS.contains(&op) => {
                let dims = func.ty(x).dims().map_or(0, <[_]>::len) - 2;
                if !channels_first(&attrs, "layout", dims) {
                    return Ok(None);
                }
                self.call(func, op, &[x], with_last(attrs, "layout", dims)).map(Some)
            }
            _ if self.ops.is_elementwise(op) && known.iter().any(Option::is_some) => {
                self.elementwise(func, binding, &known, out)
            }
            _ => Ok(None),
        }
    }

    /// An elementwise call with channels last. Operands without a known form are numbers or have one for each channel.
    fn elementwise(
        &mut self,
        func: &mut Function,
        binding: Binding,
        known: &[Option<Expr>],
        out: &mut Vec<Binding>,
    ) -> Result<Option<Expr>, PassError> {
        let Some((op, args, attrs)) = call(func, binding.value) else { return Ok(None) };
        let Some(dims) = func.ty(binding.value).dims().map(<[_]>::to_vec) else { return Ok(None) };
        let mut operands = Vec::with_capacity(args.len());
        for (&known, &e) in known.iter().zip(&args) {
            operands.push(match known {
                Some(known) if func.ty(e).dims() == Some(&dims[..]) => known,
                Some(_) => return Ok(None),
                None => match constant_last(func, e, dims.len()) {
                    Some(constant) => constant,
                    None if is_per_channel(func, e, dims.len()) => {
                        self.operand(func, e, binding.var, out)?
                    }
                    None => return Ok(None),
                },
            });
        }
        self.call(func, op, &operands, attrs).map(Some)
    }

    /// A reduction over all but batch and channels, which leaves no layout.
    fn reduced(&self, func: &mut Function, binding: Binding) -> Result<Option<Expr>, PassError> {
        let value = binding.value;
        let Some((op, args, mut attrs)) = call(func, value) else { return Ok(None) };
        let keeps = attrs.get("keepdims").and_then(AttrValue::as_bool).unwrap_or(false);
        let (false, true, &[x]) = (keeps, REDUCTIONS.contains(&op), &args[..]) else {
            return Ok(None);
        };
        let Some(x) = self.known(func, x, binding.var) else { return Ok(None) };
        let rank = func.ty(x).dims().map_or(0, <[_]>::len) as i64;
        let axes = attrs.get("axis").filter(|a| !a.is_none());
        let Some(mut axes) = axes.and_then(|a| a.as_int().map(|a| vec![a]).or_else(|| a.as_ints()))
        else {
            return Ok(None);
        };
        axes.iter_mut().for_each(|a| *a = if *a < 0 { *a + rank } else { *a });
        axes.sort_unstable();
        if axes != (2..rank).collect::<Vec<_>>() {
            return Ok(None);
        }
        attrs.set("axis", AttrValue::ints(1..rank - 1));
        let new = self.call(func, op, &[x], attrs)?;
        Ok((func.expr_ty(new) == func.expr_ty(value)).then_some(new))
    }

    /// The value with channels last of an operand of `reader`, if there is one and nothing may have written since.
    fn known(&self, func: &Function, e: Expr, reader: Var) -> Option<Expr> {
        match func.expr(e) {
            ExprData::Var(v) if self.defs.epoch(*v) == self.defs.epoch(reader) => {
                self.last.get(v).copied()
            }
            _ => None,
        }
    }

    /// The input of a convolution of integers with its channels last, which its bytes get, being fewer.
    fn integers(
        &mut self,
        func: &mut Function,
        e: Expr,
        c: &integers::Convolution,
        reader: Var,
        out: &mut Vec<Binding>,
    ) -> Result<Expr, PassError> {
        if let Some(known) = self.known(func, e, reader) {
            return Ok(known);
        }
        let mut x = self.operand(func, c.x, reader, out)?;
        if func.ty(x).dtype() != func.ty(e).dtype() {
            let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int32));
            let wide = self.call(func, CAST, &[x], attrs)?;
            x = self.bind(func, wide, reader, out);
        }
        if let Some(zero) = c.zero {
            let rest = self.call(func, SUBTRACT, &[x, zero], Attrs::default())?;
            x = self.bind(func, rest, reader, out);
        }
        Ok(x)
    }

    /// An operand with its channels last.
    fn operand(
        &mut self,
        func: &mut Function,
        e: Expr,
        reader: Var,
        out: &mut Vec<Binding>,
    ) -> Result<Expr, PassError> {
        if let Some(known) = self.known(func, e, reader) {
            return Ok(known);
        }
        let rank = func.ty(e).dims().map_or(0, <[_]>::len) as i64;
        let turned =
            self.permuted(func, e, std::iter::once(0).chain(2..rank).chain([1]).collect())?;
        Ok(self.bind(func, turned, reader, out))
    }

    fn permuted(&self, func: &mut Function, e: Expr, axes: Vec<i64>) -> Result<Expr, PassError> {
        let attrs = Attrs::default().with("axes", AttrValue::ints(axes));
        self.call(func, PERMUTE, &[e], attrs)
    }

    fn call(
        &self,
        func: &mut Function,
        op: Op,
        args: &[Expr],
        attrs: Attrs,
    ) -> Result<Expr, PassError> {
        let attrs = self.ops.complete(op, attrs);
        let ty = self
            .ops
            .infer(func, op, args, &attrs, &[])
            .map_err(|e: InferError| PassError::internal(e.message))?;
        Ok(func.call(Callee::Op(op), args, attrs, &[], ty))
    }

    /// Binds a value, for as long as a variable lives.
    fn bind(
        &mut self,
        func: &mut Function,
        value: Expr,
        like: Var,
        out: &mut Vec<Binding>,
    ) -> Expr {
        let namer = self.namer.get_or_insert_with(|| Namer::new(func));
        let e = namer.bind(func, "lv", value, out);
        if let ExprData::Var(v) = *func.expr(e) {
            func.var_mut(v).dataflow = func.var(like).dataflow;
        }
        e
    }
}

/// Whether a tensor of float32 of that rank has one number for each channel, channels coming first.
fn is_per_channel(func: &Function, e: Expr, rank: usize) -> bool {
    let ty = func.ty(e);
    let ones = |dims: &[_]| {
        let mut others = dims.iter().enumerate().filter(|(k, _)| *k != 1);
        dims.len() == rank && others.all(|(_, &d)| func.syms.as_int(d) == Some(1))
    };
    ty.dtype() == Some(DType::Float32) && ty.dims().is_some_and(ones)
}

/// One number, or a constant with a number for each channel, as it is added to data with channels last.
fn constant_last(func: &mut Function, e: Expr, rank: usize) -> Option<Expr> {
    let own = func.ty(e).dims()?.len();
    if own < rank && is_one(func, e) {
        return Some(e);
    }
    let ExprData::Constant(c) = func.expr(e) else { return None };
    let tensor = func.const_tensor(*c);
    let shape = tensor.shape().to_vec();
    let channel = 1usize.checked_sub(rank.checked_sub(shape.len())?)?;
    if !shape.iter().enumerate().all(|(k, &d)| k == channel || d == 1) {
        return None;
    }
    let mut last = vec![1; rank];
    last[rank - 1] = shape[channel];
    let turned = match tensor.dtype() {
        DType::Float32 => Tensor::from_slice(&last, &tensor.to_vec::<f32>().ok()?),
        DType::Int32 => Tensor::from_slice(&last, &tensor.to_vec::<i32>().ok()?),
        _ => return None,
    };
    Some(func.constant(turned.ok()?))
}

//! # What it does
//! Offloads convolutions to library kernels and packs their weights: constants at compile time into panels that the kernel
//! reads sequentially, other weights in scratch memory at each call. A per-channel bias and an activation become the epilogue,
//! and so does a residual if channels come last. Constant 3 x 3 filters over 64 or more channels that come last are transformed
//! for Winograd's algorithm F(2x2, 3x3), or as the setting `winograd` says. Groups of 2, 4 or 8 filters and at most as many
//! channels share panels. A transposed convolution becomes one call for each phase of its strides.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Tensor(("n", 2, "h", 4), "float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     with R.dataflow():
//!         lv = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
//!         lv1 = R.add(lv, R.const([[[[1.0]], [[-2.0]]]], "float32"))
//!         gv = R.nn.relu(lv1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32")) -> R.Tensor(("n", 2, "h", 4), dtype="float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         gv: R.Tensor((n, 2, h, 4), dtype="float32") = R.call_tir(cls.conv2d_packed, (x, metadata["relax.expr.Constant"][0], R.const([1.0, -2.0], "float32")), out_sinfo=R.Tensor((n, 2, h, 4), dtype="float32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def conv2d_packed(var_A: T.handle, B: T.Buffer((1, 2, 16), "float32"), C: T.Buffer((2,), "float32"), var_conv2d_packed: T.handle):
//!     ...
//!         T.evaluate(T.call_kernel("conv", ...))
//! ```
//!
//! # Requires
//! Nothing. It is of use before [`LegalizeOps`](crate::lower::legalize_ops), and after
//! [`ChannelsLast`](crate::offload::channels_last).
//!
//! # Keeps
//! Convolutions of other types than float32, of weights whose sizes are not known or channels that must yet be checked, those in
//! groups of fewer than 4 channels where channels come first, transposed ones with strides and dilations along one dim, kernels
//! smaller than their strides or more than 64 phases, and all of them where kernels are switched off.
//!
//! # Never
//! Moves what follows a convolution out of its dataflow block, or a convolution behind a call that may write into what it reads.

pub(crate) mod found;
mod given;
pub(crate) mod kernel;
mod phases;
mod weights;

use pliant_ir::IRModule;
use pliant_ir::relax::{Expr, Function, Var};
use pliant_pass::{ModulePass, PassContext, PassError, Writers};
use pliant_tensor::{Tensor, TensorError, Winograd};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::kernels::{Kernels, bind_calls, each_found};
use found::{Bias, Convolution, Weights};
use phases::Phase;

/// See the module's documentation.
pub struct PackConvolutions;

impl ModulePass for PackConvolutions {
    fn name(&self) -> &str {
        "PackConvolutions"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let writers = Writers::of(&module);
        let winograd = match ctx.winograd() {
            "off" => None,
            "4x4" => Some(Winograd::Four),
            _ => Some(Winograd::Two),
        };
        let mut packer = Packer { packed: Vec::new() };
        let find = |func: &Function| found::all(func, ctx.ops, &writers, winograd);
        each_found(&mut module, ctx, find, |kernels, func, found| {
            packer.function(kernels, func, &found, ctx)
        })?;
        Ok(module)
    }
}

struct Packer {
    /// Weights that are packed already: how, and as what.
    packed: Vec<(Packing, Tensor)>,
}

/// Weights and how they are packed.
struct Packing {
    weights: Tensor,
    layout: String,
    groups: i64,
    shared: bool,
    winograd: Option<Winograd>,
    /// Which phase of a transposed convolution, in which form.
    phase: Option<(usize, PhaseForm)>,
}

/// What the weights of a phase follow from, beside those of the convolution: strides, dilation and what is cut off.
type PhaseForm = (Vec<i64>, Vec<i64>, Vec<(i64, i64)>);

impl Packing {
    /// How the constant weights of phase `index` of a convolution are packed.
    fn of(c: &Convolution, weights: &Tensor, index: usize, phase: &Phase) -> Packing {
        let form = || (c.strides.clone(), c.dilation.clone(), c.pads.clone());
        Packing {
            weights: weights.clone(),
            layout: c.weight_layout.clone(),
            groups: c.groups,
            shared: c.shares_panels(),
            winograd: phase.convolution.turned(),
            phase: c.transposed.is_some().then(|| (index, form())),
        }
    }

    fn is(&self, other: &Packing) -> bool {
        self.weights.same(&other.weights)
            && self.layout == other.layout
            && self.groups == other.groups
            && self.shared == other.shared
            && self.winograd == other.winograd
            && self.phase == other.phase
    }
}

impl Packer {
    fn function(
        &mut self,
        kernels: &mut Kernels,
        func: &mut Function,
        found: &[Convolution],
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        let (mut calls, mut gone): (FxHashMap<Var, Expr>, FxHashSet<Var>) = Default::default();
        for convolution in found {
            ctx.check_cancelled()?;
            if let Some(call) = self.call(kernels, func, convolution)? {
                calls.insert(convolution.result, call);
                gone.extend(&convolution.inside);
            }
        }
        bind_calls(func, &calls, &gone)
    }

    /// The call of the loop function; `None` where its result would not be of the same type.
    fn call(
        &mut self,
        kernels: &mut Kernels,
        func: &mut Function,
        c: &Convolution,
    ) -> Result<Option<Expr>, PassError> {
        let failed = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("a convolution has no loop function: {e}"))
        };
        let phases = phases::of(c).map_err(|e| failed(&e))?;
        let mut weights = Vec::with_capacity(phases.len());
        for (index, phase) in phases.iter().enumerate() {
            if let (Weights::Constant(whole), Weights::Constant(own)) =
                (&c.weights, &phase.convolution.weights)
            {
                let packing = Packing::of(c, whole, index, phase);
                let packed = self.packed(packing, phase, own).map_err(|e| failed(&e))?;
                weights.push(func.constant(packed));
            }
        }
        if let Weights::Given(given) = &c.weights {
            weights.push(given.weights);
        }
        let bias = c.bias.clone().map(|b| match b {
            Bias::Constant(b) => func.constant(b),
            Bias::Given(b) => b,
        });
        let ty = func.var(c.result).ty;
        let call = kernel::call(func, c, &phases, &weights, bias).map_err(|e| failed(&e))?;
        if call.out_tys != [ty] {
            return Ok(None);
        }
        Ok(Some(kernels.call(func, call)))
    }

    /// The packed weights of a phase, of which each form exists once.
    fn packed(
        &mut self,
        packing: Packing,
        phase: &Phase,
        own: &Tensor,
    ) -> Result<Tensor, TensorError> {
        if let Some((_, packed)) = self.packed.iter().find(|(other, _)| other.is(&packing)) {
            return Ok(packed.clone());
        }
        let packed = weights::packed(&phase.convolution, own)?;
        self.packed.push((packing, packed.clone()));
        Ok(packed)
    }
}

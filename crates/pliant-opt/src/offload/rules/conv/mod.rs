//! # What it does
//! Offloads convolutions to the kernel `conv` and packs their weights into panels that the kernel reads sequentially: constants
//! at compile time, other weights by a loop function in each call. A per-channel bias and an activation become the epilogue; in
//! channels-last layout, a residual does, too. In this layout, constant 3 x 3 filters with strides and dilations of 1, one group,
//! and at least 64 channels and 64 filters are transformed for Winograd's algorithm F(2x2, 3x3) if they fit into a cache. The
//! setting `winograd` selects another tile or disables this. Groups share panels if each has 2, 4 or 8 filters and not more
//! channels than filters. A transposed convolution becomes a loop function with one kernel call for each phase of its strides.
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
//!     with R.dataflow():
//!         gv: R.Tensor((n, 2, h, 4), dtype="float32") = R.call_kernel("conv", x=x, weight=..., bias=R.const([1.0, -2.0], "float32"), axes={"x": [0, 1, -1, 2, 3], "out": [0, 1, -1, 2, 3]}, kernel_shape=[1, 1, 1], panel_width=16, activation="relu", out_sinfo=R.Tensor((n, 2, h, 4), dtype="float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. It should run after [`ChannelsLast`](crate::offload::channels_last) and before
//! [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! - Convolutions of other types than float32.
//! - Convolutions with weights of unknown sizes, or whose input is not known to have the channels of the weights.
//! - Groups of fewer than 4 channels in channels-first layout.
//! - Transposed convolutions with both strides and dilation along one dim, with filters smaller than their strides, or with more
//!   than 64 phases.
//! - All convolutions if kernels are disabled.
//!
//! # Never
//! Moves an epilogue out of its dataflow block, or a convolution past a call that may write to its operands.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `conv_matcher` | recognizes convolutions and epilogues (bias, residual if channels last and not transposed, activation); decides whether Winograd's algorithm is used |
//! | `conv_kernel_call` | creates the kernel calls |
//! | `pack_constant_weights` | packs constant weights at compile time |
//! | `pack_non_constant_weights` | emits the loop function that packs other weights in each call |
//! | `transposed_conv_phases` | decomposes transposed convolutions into ordinary ones |

pub(crate) mod conv_kernel_call;
pub(crate) mod conv_matcher;
mod pack_constant_weights;
mod pack_non_constant_weights;
mod transposed_conv_phases;

use pliant_pass::{PassContext, PassError};
use pliant_tensor::{Tensor, TensorError, Winograd};

use crate::common::matmul_and_conv_operands::CONVOLUTIONS;
use crate::offload::offload_rule::{Decision, Rule, RuleInfo, Site, Stage};
use conv_matcher::{Bias, Convolution, Weights, extend_epilogue};
use transposed_conv_phases::Phase;

/// The entry of the rule `conv` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "conv",
        "conv",
        "float32 convolutions, with a bias, a residual and an activation",
        Stage::Kernel,
        &CONVOLUTIONS,
        |ctx| Ok(Box::new(Conv { packed: Vec::new(), winograd: winograd_setting(ctx) })),
    )
}

/// Returns the output tile of Winograd's algorithm that the setting `winograd` selects; `None` if the setting is off.
fn winograd_setting(ctx: &PassContext) -> Option<Winograd> {
    match ctx.winograd() {
        "off" => None,
        "4x4" => Some(Winograd::Four),
        _ => Some(Winograd::Two),
    }
}

struct Conv {
    /// The packed weights of earlier convolutions, so that equal weights are packed once.
    packed: Vec<(PackingKey, Tensor)>,
    winograd: Option<Winograd>,
}

/// The key of the cache of packed weights: the weights, and the properties of the convolution that determine how they
/// are packed.
struct PackingKey {
    weights: Tensor,
    layout: String,
    groups: i64,
    shares_panels: bool,
    winograd: Option<Winograd>,
    /// For a transposed convolution, the index of the phase and the attributes that determine its weights. A phase is the subset of
    /// the results that one ordinary convolution computes.
    phase: Option<(usize, PhaseAttrs)>,
}

/// The attributes of a transposed convolution that determine the weights of its phases: (strides, dilation, number of results that
/// are cropped before and after each spatial dim).
type PhaseAttrs = (Vec<i64>, Vec<i64>, Vec<(i64, i64)>);

impl PackingKey {
    /// Creates the key for the constant weights of phase `index` of a convolution.
    fn of(c: &Convolution, weights: &Tensor, index: usize, phase: &Phase) -> PackingKey {
        let attrs = || (c.strides.clone(), c.dilation.clone(), c.pads.clone());
        PackingKey {
            weights: weights.clone(),
            layout: c.weight_layout.clone(),
            groups: c.groups,
            shares_panels: c.shares_panels(),
            winograd: phase.convolution.active_winograd(),
            phase: c.transposed.is_some().then(|| (index, attrs())),
        }
    }

    /// Whether two keys are equal, so that the packed weights can be reused.
    fn matches(&self, other: &PackingKey) -> bool {
        self.weights.same(&other.weights)
            && self.layout == other.layout
            && self.groups == other.groups
            && self.shares_panels == other.shares_panels
            && self.winograd == other.winograd
            && self.phase == other.phase
    }
}

impl Rule for Conv {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let mut c = match conv_matcher::convolution(site.func, site.root, self.winograd) {
            Ok(c) => c,
            Err(reason) => return Ok(Err(reason)),
        };
        if site.dataflow {
            let uses = site.uses();
            while extend_epilogue(site.func, uses, &mut c, site.replaced_vars) {}
        }
        let internal_error = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("a convolution cannot be replaced by a kernel call: {e}"))
        };
        let phases = transposed_conv_phases::phases(&c).map_err(|e| internal_error(&e))?;
        let mut weights = Vec::with_capacity(phases.len());
        for (index, phase) in phases.iter().enumerate() {
            weights.push(match (&c.weights, &phase.convolution.weights) {
                (Weights::Constant(all_weights), Weights::Constant(phase_weights)) => {
                    let packing_key = PackingKey::of(&c, all_weights, index, phase);
                    let (packed, width) = self
                        .packed_weights(packing_key, phase, phase_weights)
                        .map_err(|e| internal_error(&e))?;
                    (site.func.constant(packed), width)
                }
                (_, Weights::NonConstant(weights_operand)) => {
                    let packing = pack_non_constant_weights::packing_call(
                        site.func,
                        &phase.convolution,
                        weights_operand,
                    );
                    let (call, width) = packing.map_err(|e| internal_error(&e))?;
                    let packed = site.loop_functions.call(site.func, call);
                    (site.emit(packed), width)
                }
                _ => unreachable!(
                    "if the weights of a convolution are constant, those of each phase are, too"
                ),
            });
        }
        let bias = c.bias.clone().map(|b| match b {
            Bias::Constant(b) => site.func.constant(b),
            Bias::NonConstant(b) => b,
        });
        match &c.transposed {
            None => {
                let (weights, width) = weights[0];
                let call = conv_kernel_call::graph_call(&c, weights, width, bias);
                Ok(site.call_kernel(call, c.result, c.removed))
            }
            Some(output_padding) => {
                let call = conv_kernel_call::transposed_call(
                    site.func,
                    &c,
                    output_padding,
                    &phases,
                    &weights,
                    bias,
                );
                Ok(site.offload(call.map_err(|e| internal_error(&e))?, c.result, c.removed))
            }
        }
    }
}

impl Conv {
    /// Returns (packed weights of a phase, value of the kernel attribute `panel_width`). Caches packed weights.
    fn packed_weights(
        &mut self,
        packing_key: PackingKey,
        phase: &Phase,
        phase_weights: &Tensor,
    ) -> Result<(Tensor, i64), TensorError> {
        let c = &phase.convolution;
        let packed = match self.packed.iter().find(|(other, _)| other.matches(&packing_key)) {
            Some((_, packed)) => packed.clone(),
            None => {
                let packed = pack_constant_weights::pack_weights(c, phase_weights)?;
                self.packed.push((packing_key, packed.clone()));
                packed
            }
        };
        let width = match (c.is_depthwise(), c.shares_panels()) {
            (true, _) => 1,
            (_, true) => c.filters / c.groups,
            _ => packed.shape()[2],
        };
        Ok((packed, width))
    }
}

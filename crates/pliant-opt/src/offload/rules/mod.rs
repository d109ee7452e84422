//! The offload rules, one per module, and the table of all rules. Programs add rules with [`register_rule`].
//!
//! | module | what its rule replaces |
//! |---|---|
//! | `attention` | attention, as one operator or as several |
//! | `conv` | float32 convolutions |
//! | `conv_int8` | convolutions of 8-bit integers |
//! | `integer_conv` | convolutions of dequantized operands |
//! | `integer_matmul` | matmuls of dequantized operands |
//! | `lookup` | elementwise functions from one 8-bit tensor to 8-bit integers |
//! | `matmul_int8` | matmuls of 8-bit integers |
//! | `matmul_packed` | float matmuls by constants |
//! | `registered_patterns` | matches of a pattern that a program registers |
//! | `pool` | pooling of float32, float16 and bfloat16 images |
//! | `recurrent` | recurrent layers |
//! | `softmax` | softmax and log-softmax along the last axis |
//! | `transpose` | transposes that move the last dim |
//! | `weight_only_matmul` | float32 matmuls by dequantized constants |
//! | `widen_16_bit` | matmuls, convolutions and attention of 16-bit floats |
//!
//! Matmuls of two non-constant operands of float32 or float64 have no rule, except inside attention. They become loop functions,
//! and the default schedule replaces the loops by calls of the kernel `matmul` (`pliant-tir/src/schedule/gemm.rs`).

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod conv_int8;
pub(crate) mod integer_conv;
pub(crate) mod integer_matmul;
pub(crate) mod lookup;
pub(crate) mod matmul_int8;
pub(crate) mod matmul_packed;
pub(crate) mod pool;
pub(crate) mod recurrent;
pub mod registered_patterns;
pub(crate) mod softmax;
pub(crate) mod transpose;
pub(crate) mod weight_only_matmul;
pub(crate) mod widen_16_bit;

use std::sync::{PoisonError, RwLock};

use crate::offload::offload_rule::RuleInfo;

/// Lists the rules of this crate, in the order in which they are tried.
fn builtin() -> Vec<RuleInfo> {
    vec![
        widen_16_bit::info(),
        integer_matmul::info(),
        integer_conv::info(),
        weight_only_matmul::info(),
        lookup::info(),
        attention::info(),
        conv::info(),
        matmul_int8::info(),
        conv_int8::info(),
        pool::info(),
        recurrent::info(),
        matmul_packed::info(),
        softmax::info(),
        transpose::info(),
    ]
}

/// The rules that the program has registered, in the order of registration.
static REGISTERED: RwLock<Vec<RuleInfo>> = RwLock::new(Vec::new());

/// Checks the name of a rule that a program registers.
///
/// # Errors
/// If the name is empty, contains control characters, or is the name of a rule of this crate.
pub fn check_rule_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(format!(
            "the name {name:?} of an offload rule is invalid: it must not be empty or contain control characters"
        ));
    }
    match builtin().iter().any(|builtin_rule| builtin_rule.name == name) {
        true => Err(format!(
            "the name '{name}' belongs to an offload rule of Pliant; choose another name"
        )),
        false => Ok(()),
    }
}

/// Registers a rule. Returns the registered rule with the same name, which it replaces. Rules that are registered later are tried
/// earlier, and before the rules of this crate.
///
/// # Errors
/// If the name is not valid ([`check_rule_name`]).
pub fn register_rule(rule: RuleInfo) -> Result<Option<RuleInfo>, String> {
    check_rule_name(&rule.name)?;
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let old = remove_by_name(&mut registered, &rule.name);
    registered.push(rule);
    Ok(old)
}

/// Removes a registered rule and returns it; `None` if there is no registered rule with this name.
pub fn remove_rule(name: &str) -> Option<RuleInfo> {
    remove_by_name(&mut REGISTERED.write().unwrap_or_else(PoisonError::into_inner), name)
}

/// Removes the rule with this name from a list and returns it. The caller must drop it without holding the lock, because it may own
/// objects whose destructors list rules.
fn remove_by_name(rules: &mut Vec<RuleInfo>, name: &str) -> Option<RuleInfo> {
    let index = rules.iter().position(|rule| rule.name == name)?;
    Some(rules.remove(index))
}

/// Lists all rules, in the order in which they are tried.
pub fn rules() -> Vec<RuleInfo> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.iter().rev().cloned().chain(builtin()).collect()
}

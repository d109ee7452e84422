//! The offload rules, one per module, and the table of all. A program adds rules by [`register_rule`].
//!
//! | module | what its rule replaces |
//! |---|---|
//! | `attention` | attention, as an operator or as several |
//! | `conv` | float32 convolutions |
//! | `conv_int8` | convolutions of 8-bit integers |
//! | `matmul_int8` | matmuls of 8-bit integers |
//! | `matmul_packed` | float matmuls by constants |
//! | `pattern` | matches of a pattern, by a rule of the program |
//! | `recurrent` | recurrent layers |
//! | `transpose` | transposes that move the last dim |
//! | `weight_only_matmul` | float32 matmuls by dequantized constants |

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod conv_int8;
pub(crate) mod matmul_int8;
pub(crate) mod matmul_packed;
pub mod pattern;
pub(crate) mod recurrent;
pub(crate) mod transpose;
pub(crate) mod weight_only_matmul;

use std::sync::{PoisonError, RwLock};

use crate::offload::rule::RuleInfo;

/// The rules of this crate, in the order in which they are tried.
fn builtin() -> Vec<RuleInfo> {
    vec![
        weight_only_matmul::info(),
        attention::info(),
        conv::info(),
        matmul_int8::info(),
        conv_int8::info(),
        recurrent::info(),
        matmul_packed::info(),
        transpose::info(),
    ]
}

/// The rules that the program has registered, in that order.
static REGISTERED: RwLock<Vec<RuleInfo>> = RwLock::new(Vec::new());

/// Adds a rule, or replaces the registered one of that name. Rules registered later are tried earlier, and before those of this
/// crate.
///
/// # Errors
/// A rule of this crate has the name.
pub fn register_rule(rule: RuleInfo) -> Result<(), String> {
    if builtin().iter().any(|own| own.name == rule.name) {
        return Err(format!("there is an offload rule '{}' already", rule.name));
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|other| other.name != rule.name);
    registered.push(rule);
    Ok(())
}

/// Removes a registered rule; returns whether there was one of that name.
pub fn remove_rule(name: &str) -> bool {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let before = registered.len();
    registered.retain(|rule| rule.name != name);
    registered.len() < before
}

/// All rules, in the order in which they are tried.
pub fn rules() -> Vec<RuleInfo> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.iter().rev().cloned().chain(builtin()).collect()
}

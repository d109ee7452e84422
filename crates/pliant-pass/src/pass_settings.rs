//! The table of compiler settings that [`PassContext::config`](crate::PassContext::config) accepts. Setting an unknown name is an
//! error.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_ir::AttrValue;

/// The values that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigKind {
    /// The setting accepts `True` and `False`.
    Bool,
    /// The setting accepts integers.
    Int,
    /// The setting accepts strings.
    Str,
    /// The setting accepts the strings in this list.
    OneOf(&'static [&'static str]),
    /// The setting accepts attribute values of any kind.
    Any,
}

impl ConfigKind {
    /// Parses the name of a kind: `bool`, `int`, `str` or `any`. Returns `None` for other names.
    pub fn parse(name: &str) -> Option<ConfigKind> {
        [Bool, Int, Str, Any].into_iter().find(|kind| kind.name() == name)
    }

    /// The name of the kind: `bool`, `int`, `str` or `any`.
    pub fn name(self) -> &'static str {
        match self {
            ConfigKind::Bool => "bool",
            ConfigKind::Int => "int",
            ConfigKind::Str | ConfigKind::OneOf(_) => "str",
            ConfigKind::Any => "any",
        }
    }

    fn accepts(self, value: &AttrValue) -> bool {
        match self {
            ConfigKind::Bool => matches!(value, AttrValue::Bool(_) | AttrValue::Int(0 | 1)),
            ConfigKind::Int => matches!(value, AttrValue::Int(_)),
            ConfigKind::Str => matches!(value, AttrValue::Str(_)),
            ConfigKind::OneOf(all) => value.as_str().is_some_and(|text| all.contains(&text)),
            ConfigKind::Any => true,
        }
    }
}

/// A compiler setting: its name, kind and description.
#[derive(Clone, Debug)]
pub struct ConfigKey {
    /// The name of the setting.
    pub name: String,
    /// The values that the setting accepts.
    pub kind: ConfigKind,
    /// A one-line description of the setting.
    pub doc: String,
}

use ConfigKind::{Any, Bool, Int, OneOf, Str};

/// The name of the setting that allows or forbids calls of the kernel library, for matmuls and similar operations
/// (`pliant.compile(..., kernels="off")`).
pub const KERNELS: &str = "kernels";

/// The name of the setting for the dtype to which constant right operands of float32 matmuls are rounded: `float32` or `bfloat16`
/// (`pliant.compile(..., precision="bf16")`).
pub const PRECISION: &str = "precision";

/// The values that the setting [`PRECISION`] accepts.
const PRECISIONS: &[&str] = &["float32", "f32", "bfloat16", "bf16"];

/// The name of the setting for the output tile of Winograd's algorithm for convolutions with 3x3 filters: `2x2`, `4x4` or `off`.
pub const WINOGRAD: &str = "winograd";

/// The values that the setting [`WINOGRAD`] accepts.
const WINOGRADS: &[&str] = &["2x2", "4x4", "off"];

/// The built-in settings, each as (name, kind, description). They include TVM settings that are accepted for compatibility and
/// ignored.
const KEYS: &[(&str, ConfigKind, &str)] = &[
    (
        "keep_ir",
        Bool,
        "keep the input module of each pass, and write it to a file if the pass fails with an internal error",
    ),
    (
        KERNELS,
        Bool,
        "use library kernels for matmuls, convolutions, attention and recurrent layers; default: on",
    ),
    (
        PRECISION,
        OneOf(PRECISIONS),
        "dtype to which constant right operands of float32 matmuls are rounded: float32 (no rounding) or bfloat16; default: float32",
    ),
    (
        WINOGRAD,
        OneOf(WINOGRADS),
        "output tile of Winograd's algorithm for 3 x 3 convolutions: 2x2, 4x4 (faster, twenty times the error) or off; default: 2x2",
    ),
    ("verify_passes", Bool, "verify the results of user-defined passes; default: on"),
    ("relax.FuseOps.max_depth", Int, "maximum number of operators in a fused group"),
    (
        "relax.FoldConstant.max_elements",
        Int,
        "maximum number of elements of a value that constant folding computes; default: 2**24, 0: no constant folding",
    ),
    (
        "relax.trust_indices",
        Bool,
        "do not check non-constant indices; an index out of range accesses another element",
    ),
    ("relax.fallback_device_type", Int, "accepted for compatibility with TVM; ignored"),
    ("relax.backend.use_cuda_graph", Bool, "accepted for compatibility with TVM; ignored"),
    (
        "relax.transform.apply_legalize_ops.enable_warning",
        Bool,
        "accepted for compatibility with TVM; ignored",
    ),
    ("tir.disable_vectorize", Bool, "accepted for compatibility with TVM; ignored"),
    ("tir.noalias", Bool, "accepted for compatibility with TVM; ignored"),
    ("tir.disable_assert", Bool, "accepted for compatibility with TVM; ignored: checks are kept"),
    ("tir.disable_storage_rewrite", Bool, "accepted for compatibility with TVM; ignored"),
    ("tir.enable_debug", Bool, "accepted for compatibility with TVM; ignored"),
    ("tir.add_lower_pass", Any, "accepted for compatibility with TVM; ignored"),
];

static REGISTERED: Mutex<Vec<ConfigKey>> = Mutex::new(Vec::new());

fn registered() -> MutexGuard<'static, Vec<ConfigKey>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists all settings: the built-in ones, and those that users have registered.
pub fn keys() -> Vec<ConfigKey> {
    let own = KEYS.iter().map(|&(name, kind, doc)| ConfigKey {
        name: name.into(),
        kind,
        doc: doc.into(),
    });
    own.chain(registered().iter().cloned()).collect()
}

/// Registers a setting for user-defined passes. Registering the same name again replaces its kind and description.
///
/// # Errors
/// A one-line message if a built-in setting has this name.
pub fn register(key: ConfigKey) -> Result<(), String> {
    if KEYS.iter().any(|(name, ..)| *name == key.name) {
        return Err(format!(
            "the pass setting '{}' is already defined by Pliant, so choose another name",
            key.name
        ));
    }
    let mut list = registered();
    list.retain(|k| k.name != key.name);
    list.push(key);
    Ok(())
}

/// Checks that a setting with this name exists and accepts the value.
///
/// # Errors
/// If the setting does not exist or the value has the wrong kind: a one-line message with a suggestion.
pub fn check(name: &str, value: &AttrValue) -> Result<(), String> {
    let keys = keys();
    let Some(key) = keys.iter().find(|k| k.name == name) else {
        let hint = did_you_mean(name, keys.iter().map(|k| &*k.name)).unwrap_or_else(|| {
            let names: Vec<&str> = keys.iter().map(|k| &*k.name).collect();
            format!("the settings are: {}", names.join(", "))
        });
        return Err(format!("there is no pass setting '{name}' ({hint})"));
    };
    if key.kind.accepts(value) {
        return Ok(());
    }
    if let OneOf(all) = key.kind {
        return Err(format!(
            "the pass setting '{name}' must be one of {}, not {}",
            all.join(", "),
            value_text(value)
        ));
    }
    let (kind, value) = (key.kind.name(), value_text(value));
    Err(format!("the pass setting '{name}' must be a value of type {kind}, not {value}"))
}

/// Formats a value for error messages as it is written in a script.
fn value_text(value: &AttrValue) -> String {
    match value {
        AttrValue::None => "None".to_string(),
        AttrValue::Bool(true) => "True".to_string(),
        AttrValue::Bool(false) => "False".to_string(),
        AttrValue::Int(i) => i.to_string(),
        AttrValue::Float(bits) => f64::from_bits(*bits).to_string(),
        AttrValue::Str(s) => format!("'{s}'"),
        AttrValue::DType(dtype) => format!("'{dtype}'"),
        AttrValue::List(_) => "a list".to_string(),
        AttrValue::Map(_) => "a dict".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_by_name_and_kind() {
        assert!(check("keep_ir", &AttrValue::Bool(true)).is_ok());
        let error = check("keep_iir", &AttrValue::Bool(true)).unwrap_err();
        assert!(error.contains("did you mean 'keep_ir'?"), "{error}");
        let error = check("keep_ir", &AttrValue::Int(2)).unwrap_err();
        assert!(error.contains("must be a value of type bool, not 2"), "{error}");

        assert!(check(PRECISION, &AttrValue::str("bf16")).is_ok());
        let error = check(PRECISION, &AttrValue::str("bf17")).unwrap_err();
        assert!(
            error.contains("must be one of float32, f32, bfloat16, bf16, not 'bf17'"),
            "{error}"
        );

        let own = ConfigKey { name: "test.own".into(), kind: Int, doc: "of a test".into() };
        assert!(check("test.own", &AttrValue::Int(1)).is_err());
        register(own).unwrap();
        assert!(check("test.own", &AttrValue::Int(1)).is_ok());
        let taken = ConfigKey { name: "keep_ir".into(), kind: Int, doc: String::new() };
        assert!(register(taken).is_err());
    }
}

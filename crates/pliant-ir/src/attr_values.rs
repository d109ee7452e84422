//! Attribute values: compile-time arguments of operators, and annotations of functions, loops and blocks.

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_tensor::DType;

use crate::attr_names::{FORCE_PURE, FORCE_PURE_OLD};

/// The value of an attribute. Floats are compared by their bits, so that values can be hash-consed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttrValue {
    /// The absence of a value; `None` in a script.
    None,
    /// A truth value; `True` or `False` in a script.
    Bool(bool),
    /// An integer attribute value.
    Int(i64),
    /// A float, represented by its bits.
    Float(u64),
    /// A string attribute value.
    Str(Arc<str>),
    /// A data type, printed as a string.
    DType(DType),
    /// A list of attribute values.
    List(Vec<AttrValue>),
    /// A map from names to attribute values, in a fixed order.
    Map(Vec<(Arc<str>, AttrValue)>),
}

impl AttrValue {
    /// Creates a float attribute value.
    pub fn float(value: f64) -> Self {
        AttrValue::Float(value.to_bits())
    }

    /// Creates a string attribute value.
    pub fn str(value: &str) -> Self {
        AttrValue::Str(value.into())
    }

    /// Creates an attribute value that is a list of integers.
    pub fn ints(values: impl IntoIterator<Item = i64>) -> Self {
        AttrValue::List(values.into_iter().map(AttrValue::Int).collect())
    }

    /// The value of an integer; a bool counts as 0 or 1. `None` for other values.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            AttrValue::Int(v) => Some(*v),
            AttrValue::Bool(b) => Some(*b as i64),
            _ => None,
        }
    }

    /// The value of a bool; an integer counts as true unless it is 0. `None` for other values.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            AttrValue::Bool(b) => Some(*b),
            AttrValue::Int(v) => Some(*v != 0),
            _ => None,
        }
    }

    /// The value of a float or an integer, as a float. `None` for other values.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            AttrValue::Float(bits) => Some(f64::from_bits(*bits)),
            AttrValue::Int(v) => Some(*v as f64),
            _ => None,
        }
    }

    /// The text of a string; `None` for other values.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            AttrValue::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The data type of a `DType` value, or of a string that names a data type; `None` for other values.
    pub fn as_dtype(&self) -> Option<DType> {
        match self {
            AttrValue::DType(d) => Some(*d),
            AttrValue::Str(s) => s.parse().ok(),
            _ => None,
        }
    }

    /// The items of a list of integers; a single integer counts as a list of one item. `None` for other values.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        match self {
            AttrValue::List(items) => items
                .iter()
                .map(|item| match item {
                    AttrValue::Int(v) => Some(*v),
                    _ => None,
                })
                .collect(),
            AttrValue::Int(v) => Some(vec![*v]),
            _ => None,
        }
    }

    /// Whether the value is [`AttrValue::None`].
    pub fn is_none(&self) -> bool {
        matches!(self, AttrValue::None)
    }
}

/// The attributes of a call, in the order of the operator's declaration. Equal attributes are
/// stored once per function.
///
/// # Examples
/// ```
/// use pliant_ir::{AttrValue, Attrs};
///
/// let mut attrs = Attrs::default().with("axis", AttrValue::Int(-1));
/// attrs.set("axis", AttrValue::Int(1));
/// assert_eq!(attrs.get("axis").and_then(AttrValue::as_int), Some(1));
/// assert!(attrs.get("keepdims").is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attrs(pub Vec<(Arc<str>, AttrValue)>);

impl Attrs {
    /// The value of `key`; `None` if it is absent.
    pub fn get(&self, key: &str) -> Option<&AttrValue> {
        self.0.iter().find(|(k, _)| &**k == key).map(|(_, v)| v)
    }

    /// Sets the value of `key`: adds the attribute, or replaces the existing value.
    pub fn set(&mut self, key: &str, value: AttrValue) {
        match self.0.iter_mut().find(|(k, _)| &**k == key) {
            Some(slot) => slot.1 = value,
            None => self.0.push((key.into(), value)),
        }
    }

    /// Returns these attributes with the value of `key` set; see [`set`](Self::set).
    pub fn with(mut self, key: &str, value: AttrValue) -> Self {
        self.set(key, value);
        self
    }

    /// Whether the call has no attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The attributes of a function or module, in insertion order. Passes use them to annotate functions (`global_symbol`, `Primitive`,
/// `tir.noalias`, ...).
pub type FuncAttrs = IndexMap<Arc<str>, AttrValue>;

/// Whether a function with these attributes counts as pure, whatever its body does
/// (`relax.force_pure`).
pub fn is_forced_pure(attrs: &FuncAttrs) -> bool {
    let force = attrs.get(FORCE_PURE).or_else(|| attrs.get(FORCE_PURE_OLD));
    force.and_then(AttrValue::as_bool) == Some(true)
}

//! [`Pattern`]: a shared, immutable description of an expression.
//!
//! Patterns are compared by identity: a pattern is only equal to itself and its clones. A match maps these identities to the
//! matched expressions. Patterns can be nested arbitrarily deeply, so dropping them does not recurse.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{BitAnd, BitOr, Not};
use std::sync::Arc;

use pliant_ir::op::{CALL_DPS_PACKED, CALL_TIR};
use pliant_ir::{AttrValue, DType, Op};
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use super::type_pattern::{SizePattern, TypePattern};

/// A pattern, which describes an expression to match. Clones have the same identity; [`dup`](Pattern::dup) creates independent
/// copies.
#[derive(Clone)]
pub struct Pattern(Arc<PatternBox>);

struct PatternBox(PatternKind);

/// The condition that a pattern imposes on an expression.
#[derive(Clone, Debug)]
pub enum PatternKind {
    /// Matches any expression.
    Wildcard,
    /// An operator, as the callee of a call.
    Op(Op),
    /// A variable, regardless of its value.
    Var {
        /// The name that the variable must have; `None` if any name is accepted.
        name: Option<Arc<str>>,
        /// Whether the variable must be local to a dataflow block.
        dataflow: bool,
    },
    /// A function of the module. If the name is `Some`, the function must have this name.
    Global(Option<Arc<str>>),
    /// A packed function. If the name is `Some`, the function must have this name.
    Extern(Option<Arc<str>>),
    /// Any tensor constant.
    Constant,
    /// A literal whose value equals this one.
    Literal(Literal),
    /// A shape value with these sizes.
    ShapeValue(Box<[SizePattern]>),
    /// A tuple with fields that match these patterns.
    Tuple {
        /// The patterns of the fields.
        fields: Box<[Pattern]>,
        /// Whether the field patterns may match the fields in any order.
        unordered: bool,
    },
    /// An access of a field of a tuple. If the index is `Some`, the field must have this index.
    GetItem(Pattern, Option<u32>),
    /// A call of a function or operator.
    Call {
        /// The pattern of the callee.
        callee: Pattern,
        /// The patterns of the operands.
        args: Box<[Pattern]>,
        /// Whether the call may have more operands than there are patterns in `args`.
        more: bool,
    },
    /// An expression that matches at least one of these patterns, which are tried in order.
    Or(Box<[Pattern]>),
    /// An expression that matches all of these patterns.
    And(Box<[Pattern]>),
    /// An expression that does not match this pattern.
    Not(Pattern),
    /// A call that matches the pattern and has these attribute values. Omitted attributes have their default values.
    Attrs(Pattern, Box<[(Arc<str>, AttrValue)]>),
    /// A value that matches the pattern and has this data type.
    DType(Pattern, DType),
    /// A tensor or shape that matches the pattern and has these sizes.
    Shape(Pattern, Box<[SizePattern]>),
    /// A value that matches the pattern and has this type.
    Type(Pattern, TypePattern),
    /// An expression that matches the first of these patterns. The other patterns are also parts of the whole pattern
    /// and match other values. All values that these patterns match must provably have the same shape.
    SameShape(Box<[Pattern]>),
}

/// A literal value in a pattern.
#[derive(Clone, Debug)]
pub enum Literal {
    /// Matches a tensor constant with equal contents.
    Tensor(Tensor),
    /// Matches an integer scalar with this value and data type.
    Int(i64, DType),
    /// Matches a float scalar with this value and data type.
    Float(f64, DType),
    /// Matches an equal string.
    Str(Arc<str>),
    /// Matches an operand that is this data type.
    DType(DType),
}

impl Pattern {
    /// Creates a pattern with the given condition.
    pub fn new(kind: PatternKind) -> Self {
        Pattern(Arc::new(PatternBox(kind)))
    }

    /// The condition that the pattern imposes on an expression.
    pub fn kind(&self) -> &PatternKind {
        &self.0.0
    }

    /// The identity of the pattern, which is unique while the pattern exists.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The direct subpatterns of the pattern.
    pub fn children(&self) -> Vec<&Pattern> {
        match self.kind() {
            PatternKind::Tuple { fields: list, .. }
            | PatternKind::Or(list)
            | PatternKind::And(list)
            | PatternKind::SameShape(list) => list.iter().collect(),
            PatternKind::Call { callee, args, .. } => {
                std::iter::once(callee).chain(args.iter()).collect()
            }
            PatternKind::GetItem(p, _)
            | PatternKind::Not(p)
            | PatternKind::Attrs(p, _)
            | PatternKind::DType(p, _)
            | PatternKind::Shape(p, _)
            | PatternKind::Type(p, _) => vec![p],
            _ => Vec::new(),
        }
    }

    /// Whether `part` is this pattern or one of its direct or indirect subpatterns.
    pub fn contains(&self, part: &Pattern) -> bool {
        let (mut stack, mut seen) = (vec![self], rustc_hash::FxHashSet::default());
        while let Some(pattern) = stack.pop() {
            if pattern.id() == part.id() {
                return true;
            }
            if seen.insert(pattern.id()) {
                stack.extend(pattern.children());
            }
        }
        false
    }

    /// Creates a pattern that matches calls with exactly these operands and a callee that this pattern matches.
    pub fn call(&self, args: impl IntoIterator<Item = Pattern>) -> Pattern {
        let args = args.into_iter().collect();
        Pattern::new(PatternKind::Call { callee: self.clone(), args, more: false })
    }

    /// Creates a pattern that matches calls whose first operands match `args` and whose callee this pattern matches. The call may
    /// have more operands.
    pub fn call_any(&self, args: impl IntoIterator<Item = Pattern>) -> Pattern {
        let args = args.into_iter().collect();
        Pattern::new(PatternKind::Call { callee: self.clone(), args, more: true })
    }

    /// Creates a pattern of the calls that match this pattern and have these attribute values.
    pub fn has_attr<'a>(&self, attrs: impl IntoIterator<Item = (&'a str, AttrValue)>) -> Pattern {
        let attrs = attrs.into_iter().map(|(k, v)| (k.into(), v)).collect();
        Pattern::new(PatternKind::Attrs(self.clone(), attrs))
    }

    /// Creates a pattern of the values that match this pattern and have this data type.
    pub fn has_dtype(&self, dtype: DType) -> Pattern {
        Pattern::new(PatternKind::DType(self.clone(), dtype))
    }

    /// Creates a pattern of the values that match this pattern and have this shape.
    pub fn has_shape(&self, sizes: impl IntoIterator<Item = SizePattern>) -> Pattern {
        Pattern::new(PatternKind::Shape(self.clone(), sizes.into_iter().collect()))
    }

    /// Creates a pattern of the values that match this pattern and have this type.
    pub fn has_type(&self, ty: TypePattern) -> Pattern {
        Pattern::new(PatternKind::Type(self.clone(), ty))
    }

    /// Creates a pattern that matches this pattern or the larger pattern that `option` builds from it.
    pub fn optional(&self, option: impl FnOnce(Pattern) -> Pattern) -> Pattern {
        option(self.clone()) | self.clone()
    }

    /// Copies the pattern. The copy and its nested patterns have new identities, so they can match other values than the
    /// original. A nested pattern that occurs several times is also shared in the copy.
    pub fn dup(&self) -> Pattern {
        let mut copies = Pattern::dup_all(std::slice::from_ref(self));
        copies.pop().expect("copying one pattern returns one copy")
    }

    /// Copies patterns with their nested patterns. The copies have new identities, as with [`dup`](Pattern::dup). A nested pattern
    /// that several patterns share is also shared by their copies.
    pub fn dup_all(patterns: &[Pattern]) -> Vec<Pattern> {
        let mut copies: FxHashMap<Pattern, Pattern> = FxHashMap::default();
        let mut stack: Vec<(&Pattern, bool)> = patterns.iter().map(|p| (p, false)).collect();
        while let Some((p, ready)) = stack.pop() {
            if copies.contains_key(p) {
                continue;
            }
            if ready {
                let copy = Pattern::new(p.kind().map(|inner| copies[inner].clone()));
                copies.insert(p.clone(), copy);
            } else {
                stack.push((p, true));
                stack.extend(p.children().into_iter().map(|inner| (inner, false)));
            }
        }
        patterns.iter().map(|p| copies[p].clone()).collect()
    }
}

impl PatternKind {
    /// Returns the condition of the pattern with each nested pattern replaced by the result of `f`.
    fn map(&self, mut f: impl FnMut(&Pattern) -> Pattern) -> PatternKind {
        use PatternKind::{
            And, Attrs, Call, DType, GetItem, Not, Or, SameShape, Shape, Tuple, Type,
        };
        let mut all = |list: &[Pattern]| list.iter().map(&mut f).collect();
        match self {
            Tuple { fields, unordered } => Tuple { fields: all(fields), unordered: *unordered },
            Or(list) => Or(all(list)),
            And(list) => And(all(list)),
            SameShape(list) => SameShape(all(list)),
            Call { callee, args, more } => {
                Call { callee: f(callee), args: args.iter().map(f).collect(), more: *more }
            }
            GetItem(p, index) => GetItem(f(p), *index),
            Not(p) => Not(f(p)),
            Attrs(p, attrs) => Attrs(f(p), attrs.clone()),
            DType(p, dtype) => DType(f(p), *dtype),
            Shape(p, sizes) => Shape(f(p), sizes.clone()),
            Type(p, ty) => Type(f(p), ty.clone()),
            leaf => leaf.clone(),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::impossible_patterns::describe(self))
    }
}

impl BitOr for Pattern {
    type Output = Pattern;
    fn bitor(self, other: Pattern) -> Pattern {
        Pattern::new(PatternKind::Or([self, other].into()))
    }
}

impl BitAnd for Pattern {
    type Output = Pattern;
    fn bitand(self, other: Pattern) -> Pattern {
        Pattern::new(PatternKind::And([self, other].into()))
    }
}

impl Not for Pattern {
    type Output = Pattern;
    fn not(self) -> Pattern {
        Pattern::new(PatternKind::Not(self))
    }
}

/// Moves the nested patterns of a condition to a stack, so that dropping deeply nested patterns does not recurse.
fn take_children(kind: PatternKind, stack: &mut Vec<Pattern>) {
    match kind {
        PatternKind::Tuple { fields: list, .. }
        | PatternKind::Or(list)
        | PatternKind::And(list)
        | PatternKind::SameShape(list) => stack.extend(list),
        PatternKind::Call { callee, args, .. } => {
            stack.push(callee);
            stack.extend(args);
        }
        PatternKind::GetItem(p, _)
        | PatternKind::Not(p)
        | PatternKind::Attrs(p, _)
        | PatternKind::DType(p, _)
        | PatternKind::Shape(p, _)
        | PatternKind::Type(p, _) => stack.push(p),
        _ => {}
    }
}

impl Drop for PatternBox {
    fn drop(&mut self) {
        let mut stack = Vec::new();
        take_children(std::mem::replace(&mut self.0, PatternKind::Wildcard), &mut stack);
        while let Some(pattern) = stack.pop() {
            if let Some(mut inner) = Arc::into_inner(pattern.0) {
                take_children(std::mem::replace(&mut inner.0, PatternKind::Wildcard), &mut stack);
            }
        }
    }
}

/// Creates a pattern that matches any expression.
pub fn wildcard() -> Pattern {
    Pattern::new(PatternKind::Wildcard)
}

/// Creates a pattern that matches an operator as a callee, as in `is_op(op).call([...])`.
pub fn is_op(op: Op) -> Pattern {
    Pattern::new(PatternKind::Op(op))
}

/// Creates a pattern that matches any tensor constant.
pub fn is_const() -> Pattern {
    Pattern::new(PatternKind::Constant)
}

/// Creates a pattern that matches a variable; if `name` is `Some`, only a variable with this name.
pub fn is_var(name: Option<&str>) -> Pattern {
    Pattern::new(PatternKind::Var { name: name.map(Into::into), dataflow: false })
}

/// Creates a pattern that matches a function of the module; if `name` is `Some`, only the function with this name.
pub fn is_gv(name: Option<&str>) -> Pattern {
    Pattern::new(PatternKind::Global(name.map(Into::into)))
}

/// Creates a pattern that matches a tuple with these fields.
pub fn is_tuple(fields: impl IntoIterator<Item = Pattern>) -> Pattern {
    Pattern::new(PatternKind::Tuple { fields: fields.into_iter().collect(), unordered: false })
}

/// Creates a pattern that matches an access of a field of a tuple; if `index` is `Some`, only of the field with this index.
pub fn is_tuple_get_item(tuple: Pattern, index: Option<u32>) -> Pattern {
    Pattern::new(PatternKind::GetItem(tuple, index))
}

/// Creates a pattern of a call `R.call_tir(name, (args...))`. `name: None` accepts any function, `args: None` any arguments.
pub fn is_call_tir(name: Option<&str>, args: Option<Vec<Pattern>>) -> Pattern {
    is_op(CALL_TIR).call_any([is_gv(name), args.map_or_else(wildcard, is_tuple)])
}

/// Creates a pattern of a call `R.call_dps_packed(name, (args...))`. `name: None` accepts any function, `args: None` any arguments.
pub fn is_call_dps_packed(name: Option<&str>, args: Option<Vec<Pattern>>) -> Pattern {
    let func = Pattern::new(PatternKind::Extern(name.map(Into::into)));
    is_op(CALL_DPS_PACKED).call_any([func, args.map_or_else(wildcard, is_tuple)])
}

/// Creates a pattern of a call `R.call_packed(name, args...)`. `name: None` accepts any function, `args: None` any arguments.
pub fn is_call_packed(name: Option<&str>, args: Option<Vec<Pattern>>) -> Pattern {
    let func = Pattern::new(PatternKind::Extern(name.map(Into::into)));
    match args {
        Some(args) => func.call(args),
        None => func.call_any([]),
    }
}

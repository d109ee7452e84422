//! Expressions that belong to no function: trees that Python code builds before a block builder emits them.
//!
//! Nodes are shared and immutable. After an expression is emitted, it belongs to a function ([`Node::InFunc`]) and is
//! identified by the [`FuncOwner`] of the function and an id. Python loops may build trees of any depth, so dropping a tree
//! does not recurse.
//!
//! Two nodes are the same expression if their [`Key`]s are equal. A variable of a rewritten function has the same key
//! as in the original function.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pliant_ir::relax as ir;
use pliant_ir::{Attrs, Op};
use pliant_ops::te;
use pliant_tensor::{DType, Tensor};

use crate::error::Result;
use crate::nesting_limit::{MAX_NESTING, too_deep};
use crate::relax::detached_functions::{FuncNode, IfNode, SeqNode};
use crate::relax::function_owner::FuncOwner;
use crate::relax::struct_info::SInfo;

/// A reference-counted graph-level expression. Clones share the expression.
#[derive(Clone)]
pub struct NodeRef(Arc<NodeInner>);

struct NodeInner(Node, u32);

/// The kind and the contents of a graph-level expression.
pub enum Node {
    /// A variable that Python code created outside of any function.
    Var(FreeVar),
    /// An expression of the function that a [`FuncOwner`] holds.
    InFunc(Arc<FuncOwner>, ir::Expr),
    /// A reference to a function of the module by name.
    Global(Arc<str>),
    /// A reference to a packed function by name.
    Extern(Arc<str>),
    /// A tensor constant.
    Constant(Tensor),
    /// A Python number that is used together with tensor operands. It takes their dtype.
    Scalar(Scalar),
    /// A shape expression: a list of sizes.
    Shape(Vec<te::Expr>),
    /// An integer scalar.
    Prim(te::Expr),
    /// A string as an expression.
    Str(Arc<str>),
    /// A data type as an expression.
    DType(DType),
    /// A tuple expression with these fields.
    Tuple(Vec<NodeRef>),
    /// A read of the field with this index from a tuple.
    GetItem(NodeRef, u32),
    /// A call of an operator or a function.
    Call(CallNode),
    /// A conditional on a scalar bool.
    If(IfNode),
    /// A sequence of binding blocks, followed by its result.
    Seq(SeqNode),
    /// A function that Python code built.
    Func(FuncNode),
    /// The whole function that a [`FuncOwner`] holds.
    Root(Arc<FuncOwner>),
}

/// Identifies an expression of a function, or a variable that Python code created. Copies of the expression or variable in other
/// functions have the same identity.
pub type Ident = (u64, u32);

/// Returns a number that is unique in this process.
pub fn fresh_uid() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Identifies an expression. Two nodes that represent the same expression have equal keys, even if they belong to different
/// Python objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The key of a variable, or of an expression of a function: its identity.
    Ident(Ident),
    /// The key of a reference to a function of the module: the name of the function.
    Global(Arc<str>),
    /// The key of a packed function: its name.
    Extern(Arc<str>),
    /// The key of any other node. For a sequence of a function: the address of the function's [`FuncOwner`], and the id of the
    /// sequence. For a whole function: the address of its [`FuncOwner`], and `u32::MAX`. Otherwise: the address of the node, and
    /// `u32::MAX`.
    Address(usize, u32),
}

/// A Python number that is an operand.
#[derive(Clone, Copy)]
pub enum Scalar {
    /// A Python int.
    Int(i64),
    /// A Python float.
    Float(f64),
    /// A Python bool.
    Bool(bool),
}

/// A call that Python code built, with its callee and operands.
pub struct CallNode {
    /// The called operator or function.
    pub callee: CalleeNode,
    /// The operands of the call.
    pub args: Vec<NodeRef>,
    /// The attributes of the call.
    pub attrs: Attrs,
    /// The types of the results, if the callee does not determine them.
    pub ty_args: Vec<SInfo>,
}

/// The callee of a call: an operator or an expression.
pub enum CalleeNode {
    /// The callee is an operator.
    Op(Op),
    /// The callee is an expression whose value is a function.
    Expr(NodeRef),
}

/// A variable that Python code created. It is equal only to itself.
#[derive(Clone)]
pub struct FreeVar(pub Arc<FreeVarData>);

/// The data of a variable that Python code created.
pub struct FreeVarData {
    /// A number that identifies the variable.
    pub uid: u64,
    /// The name of the variable.
    pub name: Arc<str>,
    /// The type of the variable, if given.
    pub sinfo: Option<SInfo>,
    /// Whether the variable is local to a dataflow block.
    pub dataflow: bool,
}

impl FreeVar {
    /// Creates a new variable with its own identity.
    pub fn new(name: &str, sinfo: Option<SInfo>, dataflow: bool) -> Self {
        FreeVar(Arc::new(FreeVarData { uid: fresh_uid(), name: name.into(), sinfo, dataflow }))
    }

    /// Returns the identity of the variable, which its copies share.
    pub fn ident(&self) -> Ident {
        (self.0.uid, u32::MAX)
    }
}

impl NodeRef {
    /// Creates a reference-counted node with these contents.
    pub fn new(node: Node) -> Self {
        let depth = depth_of(&node);
        NodeRef(Arc::new(NodeInner(node, depth)))
    }

    /// Returns the nesting depth of the types and functions in the node. Operands of operators are
    /// not counted.
    pub fn depth(&self) -> u32 {
        self.0.1
    }

    /// Returns the node if its nesting is not too deep for code that recurses over types and functions.
    ///
    /// # Errors
    /// `ValueError` if the depth exceeds [`MAX_NESTING`].
    pub fn checked(self) -> Result<NodeRef> {
        if self.depth() > MAX_NESTING { Err(too_deep("tuples")) } else { Ok(self) }
    }

    /// If this node reads a field of a tuple expression, returns the expression of that field.
    pub fn field(&self) -> Option<&NodeRef> {
        match self.get() {
            Node::GetItem(tuple, index) => match tuple.get() {
                Node::Tuple(fields) => fields.get(*index as usize),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the contents of the node.
    pub fn get(&self) -> &Node {
        &self.0.0
    }

    /// Returns the address of the node, which is unique while the node lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether both nodes represent the same expression.
    pub fn same(&self, other: &NodeRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.key() == other.key()
    }

    /// Returns the key of the expression that the node represents. Nodes that represent the same expression have equal keys.
    pub fn key(&self) -> Key {
        match self.get() {
            Node::Var(v) => Key::Ident(v.ident()),
            Node::InFunc(owner, e) => owner.lock().key(*e),
            Node::Global(name) => Key::Global(name.clone()),
            Node::Extern(name) => Key::Extern(name.clone()),
            Node::Root(owner) => Key::Address(owner.address(), u32::MAX),
            Node::Seq(SeqNode::In(owner, seq)) => Key::Address(owner.address(), seq.as_u32()),
            _ => Key::Address(self.id(), u32::MAX),
        }
    }

    /// Returns the direct operands of the node.
    pub fn children(&self) -> &[NodeRef] {
        match self.get() {
            Node::Tuple(fields) => fields,
            Node::GetItem(tuple, _) => std::slice::from_ref(tuple),
            Node::Call(call) => &call.args,
            _ => &[],
        }
    }
}

fn depth_of(node: &Node) -> u32 {
    let deepest = |nodes: &[NodeRef]| nodes.iter().map(NodeRef::depth).max().unwrap_or(0);
    match node {
        Node::If(choice) => deepest(&choice.parts()).saturating_add(1),
        Node::Seq(seq) => seq.depth(),
        Node::Func(func) => func.data().body.depth().saturating_add(1),
        Node::Var(v) => v.0.sinfo.as_ref().map_or(0, SInfo::depth),
        Node::Tuple(fields) => deepest(fields).saturating_add(1),
        Node::GetItem(tuple, index) => match tuple.get() {
            Node::Tuple(fields) => fields.get(*index as usize).map_or(0, NodeRef::depth),
            _ => tuple.depth().saturating_add(1),
        },
        Node::Call(call) => {
            let callee = match &call.callee {
                CalleeNode::Op(_) => 0,
                CalleeNode::Expr(callee) => callee.depth().saturating_add(1),
            };
            call.ty_args.iter().map(SInfo::depth).max().unwrap_or(0).max(callee)
        }
        _ => 0,
    }
}

/// Moves the children of a node that is being dropped onto the stack, so that deep trees are dropped without
/// recursion.
fn take_children(node: Node, stack: &mut Vec<NodeRef>) {
    match node {
        Node::Tuple(fields) => stack.extend(fields),
        Node::GetItem(tuple, _) => stack.push(tuple),
        Node::Call(call) => {
            stack.extend(call.args);
            if let CalleeNode::Expr(callee) = call.callee {
                stack.push(callee);
            }
        }
        _ => {}
    }
}

impl Drop for NodeInner {
    fn drop(&mut self) {
        if !matches!(self.0, Node::Tuple(_) | Node::GetItem(..) | Node::Call(_)) {
            return;
        }
        let mut stack = Vec::new();
        take_children(std::mem::replace(&mut self.0, Node::DType(DType::Bool)), &mut stack);
        while let Some(node) = stack.pop() {
            if let Some(mut inner) = Arc::into_inner(node.0) {
                take_children(
                    std::mem::replace(&mut inner.0, Node::DType(DType::Bool)),
                    &mut stack,
                );
            }
        }
    }
}

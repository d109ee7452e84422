//! Free-standing expressions: trees that Python builds before a block builder takes them in.
//!
//! A node is shared and never changes. Once emitted, an expression is a function's ([`Node::InFunc`]): a home and
//! an id. Trees may be as deep as the user's loops made them, so dropping never recurses.
//!
//! Whether two nodes are one expression is told by their [`Key`]s: a variable that a rewritten function took over from
//! the function before it has the same key in both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pliant_ir::relax as ir;
use pliant_ir::{Attrs, Op};
use pliant_ops::te;
use pliant_tensor::{DType, Tensor};

use crate::error::Result;
use crate::nesting::{MAX_NESTING, too_deep};
use crate::relax::home::Home;
use crate::relax::seq::{FuncNode, IfNode, SeqNode};
use crate::relax::sinfo::SInfo;

/// A shared node.
#[derive(Clone)]
pub struct NodeRef(Arc<NodeBox>);

struct NodeBox(Node, u32);

/// What an expression is.
pub enum Node {
    /// A variable that the user made.
    Var(FreeVar),
    /// An expression of a function.
    InFunc(Arc<Home>, ir::Expr),
    /// A function of the module, by name.
    Global(Arc<str>),
    /// A packed function, by name.
    Extern(Arc<str>),
    /// A tensor constant.
    Constant(Tensor),
    /// A Python number among tensors: it takes the dtype of the tensor beside it.
    Scalar(Scalar),
    /// A shape.
    Shape(Vec<te::Expr>),
    /// An integer scalar.
    Prim(te::Expr),
    /// A string.
    Str(Arc<str>),
    /// A data type.
    DType(DType),
    /// A tuple.
    Tuple(Vec<NodeRef>),
    /// A field of a tuple.
    GetItem(NodeRef, u32),
    /// A call.
    Call(CallNode),
    /// A choice.
    If(IfNode),
    /// Binding blocks and a result.
    Seq(SeqNode),
    /// A function that Python built.
    Func(FuncNode),
    /// The whole function of a home.
    Root(Arc<Home>),
}

/// What an expression of a function or a variable of the user's is, wherever it is copied to.
pub type Ident = (u64, u32);

/// A number that nothing else has.
pub fn fresh_uid() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What makes two nodes the same expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A variable, or an expression of a function.
    Ident(Ident),
    /// A function of the module, by name.
    Global(Arc<str>),
    /// A packed function, by name.
    Extern(Arc<str>),
    /// A finished function, a sequence or another node, by address and part.
    Place(usize, u32),
}

/// A Python number.
#[derive(Clone, Copy)]
pub enum Scalar {
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A bool.
    Bool(bool),
}

/// A call.
pub struct CallNode {
    /// What is called.
    pub callee: CalleeNode,
    /// The operands.
    pub args: Vec<NodeRef>,
    /// The attributes.
    pub attrs: Attrs,
    /// The types of the results, where the callee does not tell.
    pub ty_args: Vec<SInfo>,
}

/// What a call calls.
pub enum CalleeNode {
    /// An operator.
    Op(Op),
    /// A function.
    Expr(NodeRef),
}

/// A variable that the user made; equal only to itself.
#[derive(Clone)]
pub struct FreeVar(pub Arc<FreeVarData>);

/// What a variable is.
pub struct FreeVarData {
    /// What tells it from all others.
    pub uid: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Its type, if given.
    pub sinfo: Option<SInfo>,
    /// Whether it is local to a dataflow block.
    pub dataflow: bool,
}

impl FreeVar {
    /// A new variable.
    pub fn new(name: &str, sinfo: Option<SInfo>, dataflow: bool) -> Self {
        FreeVar(Arc::new(FreeVarData { uid: fresh_uid(), name: name.into(), sinfo, dataflow }))
    }

    /// What the variable is, wherever it is copied to.
    pub fn ident(&self) -> Ident {
        (self.0.uid, u32::MAX)
    }
}

impl NodeRef {
    /// A new node.
    pub fn new(node: Node) -> Self {
        let depth = depth_of(&node);
        NodeRef(Arc::new(NodeBox(node, depth)))
    }

    /// How deeply the types and functions are nested that follow from the node; operands of operators do not count.
    pub fn depth(&self) -> u32 {
        self.0.1
    }

    /// The node itself, if it is not too deep for what recurses over types and functions.
    ///
    /// # Errors
    /// `ValueError` beyond [`MAX_NESTING`].
    pub fn checked(self) -> Result<NodeRef> {
        if self.depth() > MAX_NESTING { Err(too_deep("tuples")) } else { Ok(self) }
    }

    /// The field that a field access of a tuple expression gives.
    pub fn field(&self) -> Option<&NodeRef> {
        match self.get() {
            Node::GetItem(tuple, index) => match tuple.get() {
                Node::Tuple(fields) => fields.get(*index as usize),
                _ => None,
            },
            _ => None,
        }
    }

    /// The node.
    pub fn get(&self) -> &Node {
        &self.0.0
    }

    /// The node's identity while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether both are the same expression.
    pub fn same(&self, other: &NodeRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.key() == other.key()
    }

    /// What the node shares with every other node that is the same expression.
    pub fn key(&self) -> Key {
        match self.get() {
            Node::Var(v) => Key::Ident(v.ident()),
            Node::InFunc(home, e) => home.lock().key(*e),
            Node::Global(name) => Key::Global(name.clone()),
            Node::Extern(name) => Key::Extern(name.clone()),
            Node::Root(home) => Key::Place(home.address(), u32::MAX),
            Node::Seq(SeqNode::In(home, seq)) => Key::Place(home.address(), seq.as_u32()),
            _ => Key::Place(self.id(), u32::MAX),
        }
    }

    /// The direct operands.
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

/// Moves the children of a node that is being dropped onto the stack.
fn disown(node: Node, stack: &mut Vec<NodeRef>) {
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

impl Drop for NodeBox {
    fn drop(&mut self) {
        if !matches!(self.0, Node::Tuple(_) | Node::GetItem(..) | Node::Call(_)) {
            return;
        }
        let mut stack = Vec::new();
        disown(std::mem::replace(&mut self.0, Node::DType(DType::Bool)), &mut stack);
        while let Some(node) = stack.pop() {
            if let Some(mut inner) = Arc::into_inner(node.0) {
                disown(std::mem::replace(&mut inner.0, Node::DType(DType::Bool)), &mut stack);
            }
        }
    }
}

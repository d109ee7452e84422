//! Sequences, blocks, bindings, conditionals and functions that Python code builds before they belong to a function.
//!
//! A sequence, block or binding may also be a part of an existing function. It then consists of a reference to the function's
//! [`FuncOwner`] and the id of the part.

use std::sync::{Arc, OnceLock};

use pliant_ir::attr_values::FuncAttrs;
use pliant_ir::relax as ir;
use rustc_hash::FxHashMap;

use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::function_owner::FuncOwner;
use crate::relax::struct_info::SInfo;

/// A sequence: binding blocks followed by a result.
pub enum SeqNode {
    /// A sequence of the function that a [`FuncOwner`] holds.
    In(Arc<FuncOwner>, ir::Seq),
    /// A sequence that belongs to no function.
    Free {
        /// The binding blocks of the sequence, in order.
        blocks: Vec<BlockRef>,
        /// The result expression of the sequence.
        body: NodeRef,
    },
}

impl SeqNode {
    /// Returns the nesting depth of the types and functions in the sequence.
    pub fn depth(&self) -> u32 {
        match self {
            SeqNode::In(..) => 0,
            SeqNode::Free { blocks, body } => {
                blocks.iter().map(BlockRef::depth).max().unwrap_or(0).max(body.depth())
            }
        }
    }

    /// Returns the blocks of the sequence.
    pub fn blocks(&self) -> Vec<BlockRef> {
        match self {
            SeqNode::In(owner, seq) => {
                let state = owner.lock();
                let blocks = state.func().map(|f| f.seq(*seq).blocks.clone()).unwrap_or_default();
                blocks.into_iter().map(|b| BlockRef::new(BlockNode::In(owner.clone(), b))).collect()
            }
            SeqNode::Free { blocks, .. } => blocks.clone(),
        }
    }

    /// Returns the [`FuncOwner`] of the function that contains the sequence or its parts; `None` if no function contains them.
    pub fn owner(&self) -> Option<Arc<FuncOwner>> {
        match self {
            SeqNode::In(owner, _) => Some(owner.clone()),
            SeqNode::Free { blocks, .. } => blocks.iter().find_map(BlockRef::owner),
        }
    }

    /// Returns the result expression of the sequence; `None` if the construction of the function that contains the sequence was
    /// abandoned.
    pub fn body(&self) -> Option<NodeRef> {
        match self {
            SeqNode::In(owner, seq) => {
                let result = owner.lock().func().map(|f| f.seq(*seq).result)?;
                Some(NodeRef::new(Node::InFunc(owner.clone(), result)))
            }
            SeqNode::Free { body, .. } => Some(body.clone()),
        }
    }
}

/// A block of bindings that several Python objects may share.
#[derive(Clone)]
pub struct BlockRef(Arc<BlockNode>);

/// A block of bindings.
pub enum BlockNode {
    /// A block of the function that a [`FuncOwner`] holds.
    In(Arc<FuncOwner>, ir::Block),
    /// A block that belongs to no function.
    Free {
        /// Whether this is a dataflow block.
        dataflow: bool,
        /// The bindings of the block, in order.
        bindings: Vec<BindingRef>,
        /// The nesting depth of the types and functions in the block.
        depth: u32,
    },
}

impl BlockRef {
    /// Wraps a block so that it can be shared.
    pub fn new(node: BlockNode) -> Self {
        BlockRef(Arc::new(node))
    }

    /// Creates a block with these bindings that belongs to no function.
    pub fn free(dataflow: bool, bindings: Vec<BindingRef>) -> Self {
        let depth = bindings.iter().map(|b| b.value().map_or(0, |v| v.depth())).max().unwrap_or(0);
        BlockRef::new(BlockNode::Free { dataflow, bindings, depth })
    }

    /// Returns the contents of the block.
    pub fn get(&self) -> &BlockNode {
        &self.0
    }

    fn depth(&self) -> u32 {
        match self.get() {
            BlockNode::In(..) => 0,
            BlockNode::Free { depth, .. } => *depth,
        }
    }

    /// Whether this is a dataflow block.
    pub fn dataflow(&self) -> bool {
        match self.get() {
            BlockNode::In(owner, b) => owner.lock().func().is_some_and(|f| f.block(*b).dataflow),
            BlockNode::Free { dataflow, .. } => *dataflow,
        }
    }

    /// Returns the bindings of the block.
    pub fn bindings(&self) -> Vec<BindingRef> {
        match self.get() {
            BlockNode::In(owner, b) => {
                let state = owner.lock();
                let list = state.func().map(|f| f.block(*b).bindings.clone()).unwrap_or_default();
                list.into_iter().map(|b| BindingRef::In(owner.clone(), b)).collect()
            }
            BlockNode::Free { bindings, .. } => bindings.clone(),
        }
    }

    /// Finds the runs of two or more consecutive bindings of local functions. The functions of a run are visible in each other.
    /// Returns each run as the index of its first binding and the index after its last one.
    pub fn function_runs(&self) -> Vec<(usize, usize)> {
        let funcs: Vec<bool> = match self.get() {
            BlockNode::In(owner, b) => {
                let state = owner.lock();
                let Some(f) = state.func() else { return Vec::new() };
                let is_func = |b: &ir::Binding| {
                    b.cast.is_none() && matches!(f.expr(b.value), ir::ExprData::Func(_))
                };
                f.block(*b).bindings.iter().map(is_func).collect()
            }
            BlockNode::Free { bindings, .. } => {
                bindings.iter().map(BindingRef::is_function).collect()
            }
        };
        let mut runs = Vec::new();
        let mut start = 0;
        while start < funcs.len() {
            let len = funcs[start..].iter().take_while(|&&f| f).count();
            if len > 1 {
                runs.push((start, start + len));
            }
            start += len + 1;
        }
        runs
    }

    /// Whether both are the same block or have exactly the same bindings.
    pub fn same(&self, other: &BlockRef) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        if let (BlockNode::In(f, a), BlockNode::In(g, b)) = (self.get(), other.get())
            && Arc::ptr_eq(f, g)
            && a == b
        {
            return true;
        }
        if self.dataflow() != other.dataflow() {
            return false;
        }
        let (a, b) = (self.bindings(), other.bindings());
        a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.same(b))
    }

    /// Returns the [`FuncOwner`] of the function that contains the block or its bindings; `None` if no function contains them.
    pub fn owner(&self) -> Option<Arc<FuncOwner>> {
        match self.get() {
            BlockNode::In(owner, _) => Some(owner.clone()),
            BlockNode::Free { bindings, .. } => bindings.iter().find_map(|b| match b {
                BindingRef::In(owner, _) => Some(owner.clone()),
                BindingRef::Free(_) => None,
            }),
        }
    }

    /// Returns the address of the block, which is unique while the block lives.
    pub fn address(&self) -> usize {
        match self.get() {
            BlockNode::In(owner, b) => owner.address().wrapping_add(b.as_u32() as usize),
            BlockNode::Free { .. } => Arc::as_ptr(&self.0) as usize,
        }
    }
}

/// A binding of a variable to a value.
#[derive(Clone)]
pub enum BindingRef {
    /// A binding of the function that a [`FuncOwner`] holds.
    In(Arc<FuncOwner>, ir::Binding),
    /// A binding that belongs to no function.
    Free(Arc<FreeBinding>),
}

/// A binding that Python code built.
pub struct FreeBinding {
    /// The variable that is bound.
    pub var: NodeRef,
    /// The value to which the variable is bound.
    pub value: NodeRef,
    /// The type for which a `match_cast` binding checks the value; `None` for other bindings.
    pub cast: Option<SInfo>,
}

impl BindingRef {
    /// Returns the variable that is bound; `None` if the construction of the function that contains the binding was abandoned.
    pub fn var(&self) -> Option<NodeRef> {
        match self {
            BindingRef::In(owner, b) => {
                let e = owner.lock().func()?.var_expr(b.var);
                Some(NodeRef::new(Node::InFunc(owner.clone(), e)))
            }
            BindingRef::Free(b) => Some(b.var.clone()),
        }
    }

    /// Returns the value to which the variable is bound.
    pub fn value(&self) -> Option<NodeRef> {
        match self {
            BindingRef::In(owner, b) => Some(NodeRef::new(Node::InFunc(owner.clone(), b.value))),
            BindingRef::Free(b) => Some(b.value.clone()),
        }
    }

    /// Whether the binding defines a local function.
    pub fn is_function(&self) -> bool {
        match self {
            BindingRef::In(owner, b) => owner.lock().func().is_some_and(|f| {
                b.cast.is_none() && matches!(f.expr(b.value), ir::ExprData::Func(_))
            }),
            BindingRef::Free(b) => match b.value.get() {
                Node::Func(_) | Node::Root(_) => true,
                Node::InFunc(owner, e) => {
                    owner.lock().func().is_some_and(|f| matches!(f.expr(*e), ir::ExprData::Func(_)))
                }
                _ => false,
            },
        }
    }

    /// Returns the type for which a `match_cast` binding checks the value; `None` for other bindings.
    pub fn cast(&self) -> Option<SInfo> {
        match self {
            BindingRef::In(owner, b) => b.cast.expand().map(|t| owner.lock().sinfo_of(t)),
            BindingRef::Free(b) => b.cast.clone(),
        }
    }

    /// Whether the binding is a `match_cast`.
    pub fn is_cast(&self) -> bool {
        match self {
            BindingRef::In(_, b) => b.cast.is_some(),
            BindingRef::Free(b) => b.cast.is_some(),
        }
    }

    /// Whether both bind the same variable to the same value.
    pub fn same(&self, other: &BindingRef) -> bool {
        let parts = |b: &BindingRef| Some((b.var()?.key(), b.value()?.key()));
        match (self, other) {
            (BindingRef::In(f, a), BindingRef::In(g, b)) if Arc::ptr_eq(f, g) => a == b,
            (BindingRef::Free(a), BindingRef::Free(b)) if Arc::ptr_eq(a, b) => true,
            _ if self.is_cast() != other.is_cast() => false,
            _ if parts(self) != parts(other) => false,
            _ => match (self.cast(), other.cast()) {
                (Some(a), Some(b)) => a.same(&b),
                _ => true,
            },
        }
    }
}

/// A conditional on a scalar bool, with a sequence for each branch.
pub struct IfNode {
    /// The condition, a scalar bool.
    pub cond: NodeRef,
    /// The sequence that is evaluated if the condition is true.
    pub then_seq: NodeRef,
    /// The sequence that is evaluated if the condition is false.
    pub else_seq: NodeRef,
}

impl IfNode {
    /// Returns the condition and both branches.
    pub fn parts(&self) -> [NodeRef; 3] {
        [self.cond.clone(), self.then_seq.clone(), self.else_seq.clone()]
    }
}

/// The types of a module's functions by name.
pub type GlobalTypes = FxHashMap<Arc<str>, SInfo>;

/// A function that Python code built: its parts, and after its first use also the IR function that was built from them.
pub struct FuncNode {
    data: FuncParts,
    built: OnceLock<Arc<FuncOwner>>,
}

/// The parts from which Python code builds a function.
#[derive(Clone)]
pub struct FuncParts {
    /// The parameters of the function.
    pub params: Vec<NodeRef>,
    /// The body of the function.
    pub body: NodeRef,
    /// The result type. `None` means the type of the body.
    pub ret: Option<SInfo>,
    /// Whether calls have no side effects. With `None`, this is derived from the calls in the body.
    pub pure: Option<bool>,
    /// The attributes of the function.
    pub attrs: FuncAttrs,
    /// Whether the function is visible only in its module.
    pub private: bool,
    /// Whether the type of the body replaces the declared result type if they contradict each other.
    pub replace_ret: bool,
}

impl FuncNode {
    /// Creates a function from these parts. The IR function is built on first use.
    pub fn new(data: FuncParts) -> Self {
        FuncNode { data, built: OnceLock::new() }
    }

    /// Returns the parts of the function.
    pub fn data(&self) -> &FuncParts {
        &self.data
    }

    /// Returns the [`FuncOwner`] of the IR function built from these parts. The first call builds it.
    ///
    /// # Errors
    /// If a variable is neither a parameter nor defined, or if a type rule fails.
    pub fn owner(&self) -> crate::error::Result<Arc<FuncOwner>> {
        self.owner_in_module(GlobalTypes::default)
    }

    /// Returns the [`FuncOwner`] of the IR function, as [`owner`](Self::owner) does. If this call builds the IR function, it calls
    /// `globals` for the types of the module's functions, which determine the types of calls by name.
    ///
    /// # Errors
    /// As for [`owner`](Self::owner).
    pub fn owner_in_module(
        &self,
        globals: impl FnOnce() -> GlobalTypes,
    ) -> crate::error::Result<Arc<FuncOwner>> {
        if let Some(owner) = self.built.get() {
            return Ok(owner.clone());
        }
        let owner = crate::gil_and_panics::catch_panic(|| {
            crate::relax::lower_func::build_function(&self.data, globals())
        })?;
        Ok(self.built.get_or_init(|| owner).clone())
    }

    /// Returns the [`FuncOwner`] of the IR function; `None` if the IR function has not been built yet.
    pub fn built(&self) -> Option<&Arc<FuncOwner>> {
        self.built.get()
    }
}

//! [`SymArena`]: stores terms with hash-consing, creates variables, and gives access to terms.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use cranelift_entity::EntityRef;
use rustc_hash::FxHasher;

use crate::term_types::{Node, Range, Sym, SymKind, SymVar, Term};

/// Flag of a term that is a `FloorMod` by a constant, or contains one as a factor or addend.
pub(crate) const HAS_MOD: u8 = 1;
/// Flag of a term that is a `FloorDiv` by a constant, or contains one as a factor or addend.
pub(crate) const HAS_DIV: u8 = 2;
/// Flag of a term that is a predicate: its value is 0 or 1.
pub(crate) const IS_BOOL: u8 = 4;

/// The description of a term to look up in the arena or to create. Its lists of operands may be outside the arena.
#[derive(Copy, Clone)]
pub(crate) enum TermDraft<'a> {
    Leaf(Node),
    Sum(&'a [Term], i64),
    Product(&'a [Sym]),
    Min(&'a [Sym]),
    Max(&'a [Sym]),
    And(&'a [Sym]),
    Or(&'a [Sym]),
}

/// An append-only store of symbolic integers in normal form.
///
/// Cloning copies a few flat tables. Ids of existing terms remain valid in the clone. Terms that are created later exist only in
/// the arena where they were created.
///
/// # Examples
/// ```
/// use pliant_sym::SymArena;
///
/// let mut arena = SymArena::new();
/// let var = arena.fresh_var("n");
/// let (n, one) = (arena.var(var), arena.int(1));
/// let (next, also_next) = (arena.add(n, one), arena.add(one, n));
/// assert_eq!(next, also_next);
/// assert_eq!(arena.sub(next, n), one);
/// assert_eq!(arena.evaluate(next, &|_| Some(7)), Ok(8));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SymArena {
    nodes: Vec<Node>,
    flags: Vec<u8>,
    weights: Vec<u32>,
    terms: Vec<Term>,
    lists: Vec<Sym>,
    /// Open-addressing hash table over `nodes`. An entry is a term id plus 1; 0 marks an empty slot.
    table: Vec<u32>,
    names: Vec<Box<str>>,
    var_syms: Vec<Sym>,
}

impl SymArena {
    /// Creates an empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of distinct terms.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the arena contains no terms.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Creates a variable. Its name is only used for printing and need not be unique.
    pub fn fresh_var<'n>(&mut self, name: impl Into<Cow<'n, str>>) -> SymVar {
        let var = SymVar::new(self.names.len());
        self.names.push(name.into().into_owned().into_boxed_str());
        let sym = self.intern(TermDraft::Leaf(Node::Var(var)));
        self.var_syms.push(sym);
        var
    }

    /// The term of a variable of this arena.
    pub fn var(&self, var: SymVar) -> Sym {
        self.var_syms[var.index()]
    }

    /// The name of a variable of this arena.
    pub fn name(&self, var: SymVar) -> &str {
        &self.names[var.index()]
    }

    /// All variables, in order of creation.
    pub fn vars(&self) -> impl ExactSizeIterator<Item = SymVar> + use<> {
        (0..self.names.len()).map(SymVar::new)
    }

    /// The kind and the operands of a term.
    pub fn kind(&self, sym: Sym) -> SymKind<'_> {
        match self.nodes[sym.index()] {
            Node::Int(v) => SymKind::Int(v),
            Node::Var(v) => SymKind::Var(v),
            Node::Sum(r) => {
                let all = &self.terms[r.start as usize..(r.start + r.len) as usize];
                SymKind::Sum { terms: &all[1..], constant: all[0].0 }
            }
            Node::Product(r) => SymKind::Product(self.list(r)),
            Node::FloorDiv(a, b) => SymKind::FloorDiv(a, b),
            Node::FloorMod(a, b, _) => SymKind::FloorMod(a, b),
            Node::Min(r) => SymKind::Min(self.list(r)),
            Node::Max(r) => SymKind::Max(self.list(r)),
            Node::Select(c, a, b) => SymKind::Select(c, a, b),
            Node::Cmp(op, a, b) => SymKind::Cmp(op, a, b),
            Node::And(r) => SymKind::And(self.list(r)),
            Node::Or(r) => SymKind::Or(self.list(r)),
            Node::Not(a) => SymKind::Not(a),
            Node::BigAdd(a, b) => SymKind::BigAdd(a, b),
            Node::BigMul(a, b) => SymKind::BigMul(a, b),
        }
    }

    /// The value of a constant term; `None` for any other term.
    pub fn as_int(&self, sym: Sym) -> Option<i64> {
        match self.nodes[sym.index()] {
            Node::Int(v) => Some(v),
            _ => None,
        }
    }

    /// The variable that a term consists of; `None` for any other term.
    pub fn as_var(&self, sym: Sym) -> Option<SymVar> {
        match self.nodes[sym.index()] {
            Node::Var(v) => Some(v),
            _ => None,
        }
    }

    /// Whether a term is syntactically a predicate: a comparison, `And`, `Or` or `Not`.
    pub fn is_predicate(&self, sym: Sym) -> bool {
        self.flags(sym) & IS_BOOL != 0
    }

    pub(crate) fn node(&self, sym: Sym) -> Node {
        self.nodes[sym.index()]
    }

    pub(crate) fn flags(&self, sym: Sym) -> u8 {
        self.flags[sym.index()]
    }

    /// The number of nodes of the term written as a tree, in which a shared subterm counts at every occurrence. Saturates at
    /// `u32::MAX`.
    pub(crate) fn weight(&self, sym: Sym) -> u32 {
        self.weights[sym.index()]
    }

    fn list(&self, r: Range) -> &[Sym] {
        &self.lists[r.start as usize..(r.start + r.len) as usize]
    }

    /// Returns the id of the term `draft`, and creates the term if it does not exist yet. The draft must be in normal form.
    pub(crate) fn intern(&mut self, draft: TermDraft<'_>) -> Sym {
        if self.table.len() < (self.nodes.len() + 1) * 2 {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut slot = hash_draft(draft) as usize & mask;
        loop {
            match self.table[slot] {
                0 => break,
                id if self.equals(Sym::from_u32(id - 1), draft) => return Sym::from_u32(id - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
        let sym = Sym::new(self.nodes.len());
        self.flags.push(self.draft_flags(draft));
        self.weights.push(self.draft_weight(draft));
        let node = self.store(draft);
        self.nodes.push(node);
        self.table[slot] = sym.as_u32() + 1;
        sym
    }

    fn draft(&self, sym: Sym) -> TermDraft<'_> {
        match self.kind(sym) {
            SymKind::Sum { terms, constant } => TermDraft::Sum(terms, constant),
            SymKind::Product(l) => TermDraft::Product(l),
            SymKind::Min(l) => TermDraft::Min(l),
            SymKind::Max(l) => TermDraft::Max(l),
            SymKind::And(l) => TermDraft::And(l),
            SymKind::Or(l) => TermDraft::Or(l),
            _ => TermDraft::Leaf(self.nodes[sym.index()]),
        }
    }

    fn equals(&self, sym: Sym, draft: TermDraft<'_>) -> bool {
        match (self.draft(sym), draft) {
            (TermDraft::Leaf(a), TermDraft::Leaf(b)) => a == b,
            (TermDraft::Sum(a, j), TermDraft::Sum(b, k)) => j == k && a == b,
            (TermDraft::Product(a), TermDraft::Product(b))
            | (TermDraft::Min(a), TermDraft::Min(b))
            | (TermDraft::Max(a), TermDraft::Max(b))
            | (TermDraft::And(a), TermDraft::And(b))
            | (TermDraft::Or(a), TermDraft::Or(b)) => a == b,
            _ => false,
        }
    }

    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(64);
        let mut table = vec![0u32; size];
        for id in 0..self.nodes.len() {
            let mut slot = hash_draft(self.draft(Sym::new(id))) as usize & (size - 1);
            while table[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            table[slot] = id as u32 + 1;
        }
        self.table = table;
    }

    fn draft_flags(&self, draft: TermDraft<'_>) -> u8 {
        let arith = HAS_MOD | HAS_DIV;
        let by_const = |b: Sym| self.as_int(b).is_some_and(|c| c != 0);
        match draft {
            TermDraft::Leaf(Node::FloorDiv(_, b)) if by_const(b) => HAS_DIV,
            TermDraft::Leaf(Node::FloorMod(_, b, _)) if by_const(b) => HAS_MOD,
            TermDraft::Leaf(Node::Cmp(..) | Node::Not(_))
            | TermDraft::And(_)
            | TermDraft::Or(_) => IS_BOOL,
            TermDraft::Sum(terms, _) => terms.iter().fold(0, |f, t| f | self.flags(t.1)) & arith,
            TermDraft::Product(list) => list.iter().fold(0, |f, &s| f | self.flags(s)) & arith,
            _ => 0,
        }
    }

    fn draft_weight(&self, draft: TermDraft<'_>) -> u32 {
        let all = |list: &[Sym]| list.iter().fold(1, |w: u32, &s| w.saturating_add(self.weight(s)));
        match draft {
            TermDraft::Leaf(node) => match node {
                Node::FloorDiv(a, b)
                | Node::FloorMod(a, b, _)
                | Node::Cmp(_, a, b)
                | Node::BigAdd(a, b)
                | Node::BigMul(a, b) => all(&[a, b]),
                Node::Select(c, a, b) => all(&[c, a, b]),
                Node::Not(a) => all(&[a]),
                // Terms with lists have their own `TermDraft` variants, so they never reach this arm.
                _ => 1,
            },
            TermDraft::Sum(terms, _) => {
                terms.iter().fold(1, |w: u32, t| w.saturating_add(self.weight(t.1)))
            }
            TermDraft::Product(l)
            | TermDraft::Min(l)
            | TermDraft::Max(l)
            | TermDraft::And(l)
            | TermDraft::Or(l) => all(l),
        }
    }

    fn store(&mut self, draft: TermDraft<'_>) -> Node {
        match draft {
            TermDraft::Leaf(node) => node,
            TermDraft::Sum(terms, constant) => {
                let start = pool_index(self.terms.len());
                self.terms.push((constant, Sym::from_u32(0)));
                self.terms.extend_from_slice(terms);
                Node::Sum(Range { start, len: pool_index(terms.len() + 1) })
            }
            TermDraft::Product(l) => Node::Product(self.push_list(l)),
            TermDraft::Min(l) => Node::Min(self.push_list(l)),
            TermDraft::Max(l) => Node::Max(self.push_list(l)),
            TermDraft::And(l) => Node::And(self.push_list(l)),
            TermDraft::Or(l) => Node::Or(self.push_list(l)),
        }
    }

    fn push_list(&mut self, list: &[Sym]) -> Range {
        let start = pool_index(self.lists.len());
        self.lists.extend_from_slice(list);
        Range { start, len: pool_index(list.len()) }
    }
}

fn pool_index(len: usize) -> u32 {
    u32::try_from(len)
        .expect("an arena cannot contain 2**32 or more entries, because they do not fit in memory")
}

fn hash_draft(draft: TermDraft<'_>) -> u64 {
    let mut h = FxHasher::default();
    let list = |tag: u8, list: &[Sym], h: &mut FxHasher| {
        h.write_u8(tag);
        for s in list {
            h.write_u32(s.as_u32());
        }
    };
    match draft {
        TermDraft::Leaf(node) => hash_leaf(node, &mut h),
        TermDraft::Sum(terms, constant) => {
            h.write_u8(32);
            constant.hash(&mut h);
            for &(coef, sym) in terms {
                h.write_u64(coef as u64);
                h.write_u32(sym.as_u32());
            }
        }
        TermDraft::Product(l) => list(33, l, &mut h),
        TermDraft::Min(l) => list(34, l, &mut h),
        TermDraft::Max(l) => list(35, l, &mut h),
        TermDraft::And(l) => list(36, l, &mut h),
        TermDraft::Or(l) => list(37, l, &mut h),
    }
    h.finish()
}

fn hash_leaf(node: Node, h: &mut FxHasher) {
    let mut put = |tag: u64, a: Sym, b: Sym| {
        h.write_u64(tag);
        h.write_u64(u64::from(a.as_u32()) << 32 | u64::from(b.as_u32()));
    };
    match node {
        Node::Int(v) => h.write_i64(v),
        Node::Var(v) => put(1, Sym::from_u32(v.as_u32()), Sym::from_u32(0)),
        Node::FloorDiv(a, b) => put(2, a, b),
        Node::FloorMod(a, b, _) => put(3, a, b),
        Node::Select(c, a, b) => {
            put(4, c, a);
            h.write_u32(b.as_u32());
        }
        Node::Cmp(op, a, b) => put(8 + op as u64, a, b),
        Node::Not(a) => put(5, a, a),
        Node::BigAdd(a, b) => put(6, a, b),
        Node::BigMul(a, b) => put(7, a, b),
        // Terms with lists have their own `TermDraft` variants, so they never reach this arm.
        Node::Sum(r)
        | Node::Product(r)
        | Node::Min(r)
        | Node::Max(r)
        | Node::And(r)
        | Node::Or(r) => {
            h.write_u32(r.start);
        }
    }
}

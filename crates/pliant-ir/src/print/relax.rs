//! Prints graph functions: signatures, bindings, blocks.

use std::rc::Rc;

use pliant_sym::{Sym, SymKind, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::literals::func_attrs;
use super::symbol_names::SymTable;
use super::unique_names::Names;
use super::{DISCARDED, ModulePrinter};
use crate::relax::visit::called_globals;
use crate::relax::{
    Binding, Block, Callee, Expr, ExprData, FuncId, Function, Seq, TensorShape, Type, TypeData, Var,
};

/// The printer of one graph function.
pub(super) struct FuncPrinter<'a, 'm> {
    pub f: &'a Function,
    pub cx: &'a mut ModulePrinter<'m>,
    pub ty_memo: FxHashMap<Type, Rc<str>>,
    names: Names,
    vars: FxHashMap<Var, String>,
    /// The variables that have the name [`DISCARDED`] although their values are used. They are
    /// printed with other names.
    used_discards: FxHashSet<Var>,
    syms: SymTable,
    /// For each symbol, the function whose signature or body introduces it.
    owners: FxHashMap<SymVar, FuncId>,
    /// The function expression whose signature is currently being printed; `None` while no signature is printed.
    signature_of: Option<FuncId>,
}

/// Prints a graph function with its decorator at the given indentation level.
pub(super) fn print(
    cx: &mut ModulePrinter<'_>,
    out: &mut String,
    name: &str,
    f: &Function,
    indent: usize,
) {
    let mut printer = FuncPrinter::new(cx, f);
    printer.assign_symbol_names();
    printer.function(out, name, f.root(), indent);
}

/// An element of the printer's explicit stack: output that remains to be printed.
enum Pending {
    /// The bindings of a block from this index on, to be printed at this indentation level.
    Bindings(Block, usize, usize),
    Block(Block, usize),
    Output(Block, usize),
    Seq(Seq, usize, SeqEnd),
    End(Seq, usize, SeqEnd),
    Line(usize, String),
    Func(String, FuncId, usize),
}

/// The statement that ends a printed sequence: `return result`, or an assignment of the result.
#[derive(Clone, Copy)]
enum SeqEnd {
    Return,
    Assign(Var),
}

impl<'a, 'm> FuncPrinter<'a, 'm> {
    fn new(cx: &'a mut ModulePrinter<'m>, f: &'a Function) -> Self {
        FuncPrinter {
            f,
            cx,
            ty_memo: FxHashMap::default(),
            names: Names::new(),
            vars: FxHashMap::default(),
            used_discards: FxHashSet::default(),
            syms: SymTable::default(),
            owners: FxHashMap::default(),
            signature_of: None,
        }
    }

    /// Creates a printer for error messages. It names variables and symbols at their first occurrence.
    pub(super) fn for_messages(cx: &'a mut ModulePrinter<'m>, f: &'a Function) -> Self {
        Self::new(cx, f)
    }

    // ---- symbols and names ----

    /// Names the symbols in the order in which the text introduces them, and determines which function introduces each of them.
    fn assign_symbol_names(&mut self) {
        let mut visited = Visited::default();
        let mut funcs = vec![self.f.root()];
        // Breadth first, so that a symbol is introduced by the outermost function that uses it.
        let mut next = 0;
        while next < funcs.len() {
            let id = funcs[next];
            next += 1;
            self.collect_func(id, &mut visited, &mut funcs);
        }
    }

    fn collect_func(&mut self, id: FuncId, visited: &mut Visited, nested: &mut Vec<FuncId>) {
        let f = self.f;
        let func = f.func(id);
        for &p in &func.params {
            self.collect_ty(f.var(p).ty, id, visited);
        }
        self.collect_ty(func.ret_ty, id, visited);
        let mut seqs = vec![(func.body, 0, 0)];
        while let Some((seq, mut block, mut index)) = seqs.pop() {
            let data = f.seq(seq);
            while block < data.blocks.len() {
                let bindings = &f.block(data.blocks[block]).bindings;
                let Some(b) = bindings.get(index) else {
                    (block, index) = (block + 1, 0);
                    continue;
                };
                index += 1;
                match f.expr(b.value) {
                    ExprData::Func(id) => nested.push(*id),
                    ExprData::If { cond, then_seq, else_seq } => {
                        self.collect_ty(f.var(b.var).ty, id, visited);
                        self.collect_expr(*cond, id, visited);
                        seqs.push((seq, block, index));
                        seqs.push((*else_seq, 0, 0));
                        seqs.push((*then_seq, 0, 0));
                        break;
                    }
                    _ => {
                        self.collect_ty(f.var(b.var).ty, id, visited);
                        self.collect_expr(b.value, id, visited);
                        if let Some(cast) = b.cast.expand() {
                            self.collect_ty(cast, id, visited);
                        }
                    }
                }
            }
            if block >= data.blocks.len() {
                self.collect_expr(data.result, id, visited);
            }
        }
    }

    fn collect_expr(&mut self, e: Expr, owner: FuncId, visited: &mut Visited) {
        let f = self.f;
        let mut stack = vec![e];
        while let Some(e) = stack.pop() {
            match f.expr(e) {
                ExprData::Var(v) if &*f.var(*v).name == DISCARDED => {
                    self.used_discards.insert(*v);
                }
                ExprData::Shape(dims) => {
                    dims.iter().for_each(|&d| self.introduce(d, owner, visited))
                }
                ExprData::Int(v, _) => self.introduce(*v, owner, visited),
                ExprData::Tuple(list) => stack.extend(f.list(*list).iter().rev()),
                ExprData::TupleGetItem(t, _) => stack.push(*t),
                ExprData::Call { callee, args, ty_args, .. } => {
                    if let Callee::Expr(c) = callee {
                        stack.push(*c);
                    }
                    for &t in f.type_list(*ty_args) {
                        self.collect_ty(t, owner, visited);
                    }
                    stack.extend(f.list(*args).iter().rev());
                }
                _ => {}
            }
        }
    }

    fn collect_ty(&mut self, ty: Type, owner: FuncId, visited: &mut Visited) {
        if !visited.types.insert(ty) {
            return;
        }
        let f = self.f;
        let mut stack = vec![ty];
        while let Some(ty) = stack.pop() {
            match f.types.get(ty) {
                TypeData::Prim { value: Some(v), .. } => self.introduce(*v, owner, visited),
                TypeData::Shape { dims: Some(dims), .. }
                | TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => {
                    dims.iter().for_each(|&d| self.introduce(d, owner, visited));
                }
                TypeData::Tuple(fields) => stack.extend(fields.iter().rev()),
                TypeData::Callable { params, ret, .. } => {
                    stack.push(*ret);
                    stack.extend(params.iter().flatten().rev());
                }
                _ => {}
            }
        }
    }

    fn introduce(&mut self, sym: Sym, owner: FuncId, visited: &mut Visited) {
        if matches!(self.f.syms.kind(sym), SymKind::Int(_)) || !visited.syms.insert(sym) {
            return;
        }
        for var in self.syms.unknown(&self.f.syms, sym) {
            let name = self.names.take(self.f.syms.name(var));
            self.syms.introduce(var, name);
            self.owners.insert(var, owner);
        }
    }

    /// Prints a symbolic integer.
    pub(super) fn sym(&mut self, sym: Sym) -> String {
        for var in self.syms.unknown(&self.f.syms, sym) {
            let name = self.names.take(self.f.syms.name(var));
            self.syms.introduce(var, name);
        }
        self.syms.text(&self.f.syms, sym).to_string()
    }

    /// Whether a term contains a symbol that the signature being printed introduces.
    pub(super) fn introduces(&self, sym: Sym) -> bool {
        let syms = self.f.syms.free_vars(sym);
        syms.iter().any(|v| self.owners.get(v).copied() == self.signature_of)
    }

    /// The printed name of a variable, chosen at its first occurrence.
    pub(super) fn var_name(&mut self, var: Var) -> String {
        if let Some(name) = self.vars.get(&var) {
            return name.clone();
        }
        let hint = &self.f.var(var).name;
        let name = match self.used_discards.contains(&var) {
            true => self.names.take("lv"),
            false => self.names.take(hint),
        };
        self.vars.insert(var, name.clone());
        name
    }

    // ---- functions and statements ----

    fn function(&mut self, out: &mut String, name: &str, id: FuncId, indent: usize) {
        let mut stack = vec![Pending::Func(name.to_string(), id, indent)];
        while let Some(pending) = stack.pop() {
            match pending {
                Pending::Line(indent, text) => line(out, indent, &text),
                Pending::Func(name, id, indent) => self.header(out, &name, id, indent, &mut stack),
                Pending::Seq(seq, indent, end) => {
                    stack.push(Pending::End(seq, indent, end));
                    let blocks = &self.f.seq(seq).blocks;
                    stack.extend(blocks.iter().rev().map(|&b| Pending::Block(b, indent)));
                }
                Pending::End(seq, indent, end) => {
                    let result = self.expr(self.f.seq(seq).result);
                    let text = match end {
                        SeqEnd::Return => format!("return {result}"),
                        SeqEnd::Assign(v) => format!("{} = {result}", self.target(v)),
                    };
                    line(out, indent, &text);
                }
                Pending::Block(b, indent) if self.f.block(b).dataflow => {
                    line(out, indent, "with R.dataflow():");
                    stack.push(Pending::Output(b, indent + 1));
                    stack.push(Pending::Bindings(b, 0, indent + 1));
                }
                Pending::Block(b, indent) => stack.push(Pending::Bindings(b, 0, indent)),
                Pending::Output(b, indent) => self.output(out, b, indent),
                Pending::Bindings(b, start, indent) => {
                    self.bindings(out, b, start, indent, &mut stack)
                }
            }
        }
    }

    fn header(
        &mut self,
        out: &mut String,
        name: &str,
        id: FuncId,
        indent: usize,
        stack: &mut Vec<Pending>,
    ) {
        let f = self.f;
        let func = f.func(id);
        let is_root = id == f.root();
        let mut flags = Vec::new();
        if is_root && f.private {
            flags.push("private=True");
        }
        if !func.pure {
            flags.push("pure=False");
        }
        let flags =
            if flags.is_empty() { String::new() } else { format!("({})", flags.join(", ")) };
        line(out, indent, &format!("@R.function{flags}"));
        let outer = self.signature_of.replace(id);
        let mut params = Vec::with_capacity(func.params.len());
        for &p in &func.params {
            // The type is printed before the name: it may refer to earlier parameters, but not to this one.
            let ty = self.sig_ty(f.var(p).ty);
            params.push(format!("{}: {ty}", self.var_name(p)));
        }
        let ret = self.sig_ty(func.ret_ty);
        self.signature_of = outer;
        line(out, indent, &format!("def {name}({}) -> {ret}:", params.join(", ")));
        for &var in self.syms.order() {
            if self.owners.get(&var) == Some(&id) {
                line(out, indent + 1, &format!("{} = T.int64()", self.syms.name(var)));
            }
        }
        let attrs = if is_root { &f.attrs } else { &func.attrs };
        if !attrs.is_empty() {
            line(out, indent + 1, &format!("R.func_attr({})", func_attrs(attrs)));
        }
        if is_root && uses_globals(f) {
            line(out, indent + 1, &format!("cls = {}", self.cx.options.module_name));
        }
        stack.push(Pending::Seq(func.body, indent + 1, SeqEnd::Return));
    }

    fn output(&mut self, out: &mut String, b: Block, indent: usize) {
        let f = self.f;
        let vars = f.block(b).bindings.iter().map(|b| b.var).filter(|&v| !f.var(v).dataflow);
        let names: Vec<String> = vars.map(|v| self.var_name(v)).collect();
        line(out, indent, &format!("R.output({})", names.join(", ")));
    }

    fn bindings(
        &mut self,
        out: &mut String,
        b: Block,
        start: usize,
        indent: usize,
        stack: &mut Vec<Pending>,
    ) {
        let f = self.f;
        let bindings = &f.block(b).bindings;
        for (i, binding) in bindings.iter().enumerate().skip(start) {
            match f.expr(binding.value) {
                ExprData::If { cond, then_seq, else_seq } => {
                    let cond = self.expr(*cond);
                    line(out, indent, &format!("if {cond}:"));
                    stack.push(Pending::Bindings(b, i + 1, indent));
                    stack.push(Pending::Seq(*else_seq, indent + 1, SeqEnd::Assign(binding.var)));
                    stack.push(Pending::Line(indent, "else:".into()));
                    stack.push(Pending::Seq(*then_seq, indent + 1, SeqEnd::Assign(binding.var)));
                    return;
                }
                ExprData::Func(id) => {
                    let name = self.var_name(binding.var);
                    stack.push(Pending::Bindings(b, i + 1, indent));
                    stack.push(Pending::Func(name, *id, indent));
                    return;
                }
                _ => {
                    let text = self.binding(*binding);
                    line(out, indent, &text);
                }
            }
        }
    }

    fn target(&mut self, var: Var) -> String {
        let ty = self.ty(self.f.var(var).ty);
        format!("{}: {ty}", self.var_name(var))
    }

    fn binding(&mut self, b: Binding) -> String {
        // The value is printed before the variable is named, because it cannot refer to this variable.
        let value = self.expr(b.value);
        let value = match b.cast.expand() {
            Some(ty) => format!("R.match_cast({value}, {})", self.ty(ty)),
            None => value,
        };
        format!("{} = {value}", self.target(b.var))
    }
}

/// The types and terms that [`FuncPrinter::assign_symbol_names`] has visited.
#[derive(Default)]
struct Visited {
    types: FxHashSet<Type>,
    syms: FxHashSet<Sym>,
}

fn line(out: &mut String, indent: usize, text: &str) {
    for _ in 0..indent {
        out.push_str("    ");
    }
    out.push_str(text);
    out.push('\n');
}

/// Whether a function refers to a global function.
fn uses_globals(f: &Function) -> bool {
    !called_globals(f).is_empty()
}

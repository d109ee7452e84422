//! The loop functions that a pass makes: equal ones once, each under a name of its own; their calls, and what becomes of the
//! bindings that these replace.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::print::{PrintOptions, print_prim_func};
use pliant_ir::relax::{Expr, Function};
use pliant_ir::tir::PrimFunc;
use pliant_ops::legalize::TirCall;
use rustc_hash::FxHashMap;

/// The loop functions made so far.
pub struct Kernels {
    made: Vec<(Arc<str>, PrimFunc)>,
    /// How often each name was handed out; names of the module count as handed out.
    names: FxHashMap<Arc<str>, u32>,
    /// The loop functions by their text, which tells whether two are equal.
    by_text: FxHashMap<String, Arc<str>>,
}

impl Kernels {
    /// None yet; no name of the module is given again.
    pub fn new(module: &IRModule) -> Self {
        let names = module.functions.keys().map(|n| (n.clone(), 0)).collect();
        Kernels { made: Vec::new(), names, by_text: FxHashMap::default() }
    }

    /// Adds a loop function under `hint` or a name made from it, unless there is an equal one.
    pub fn add(&mut self, hint: &str, func: PrimFunc) -> Arc<str> {
        let text = print_prim_func("f", &func, &PrintOptions::complete());
        if let Some(name) = self.by_text.get(&text) {
            return name.clone();
        }
        let mut name: Arc<str> = hint.into();
        while self.names.contains_key(&name) {
            let count = self.names.entry(hint.into()).or_insert(0);
            *count += 1;
            name = format!("{hint}{count}").into();
        }
        self.names.insert(name.clone(), 0);
        self.by_text.insert(text, name.clone());
        self.made.push((name.clone(), func));
        name
    }

    /// The call of a loop function, which is added.
    pub fn call(&mut self, func: &mut Function, call: TirCall) -> Expr {
        let name = self.add(&call.name, call.func);
        let (inputs, vars, tys) = (&call.inputs, &call.tir_vars, &call.out_tys);
        pliant_ops::call_tir(func, &name, inputs, vars, tys, call.tuple)
    }

    /// Makes the loop functions a part of the module.
    pub fn insert_into(self, module: &mut IRModule) {
        for (name, func) in self.made {
            module.insert(name, func);
        }
    }
}

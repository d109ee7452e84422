//! Collects the loop functions that a pass adds to the module. Equal functions are added once, and all get unique names.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::print::{PrintOptions, print_prim_func};
use pliant_ir::relax::{Expr, Function};
use pliant_ir::tir::PrimFunc;
use pliant_ops::legalize::TirCall;
use rustc_hash::FxHashMap;

/// The loop functions that a pass has created so far.
pub struct LoopFunctions {
    funcs: Vec<(Arc<str>, PrimFunc)>,
    /// Maps each name, including all names of the module, to the number of names that were derived from it.
    name_counts: FxHashMap<Arc<str>, u32>,
    /// Maps the printed text of each loop function to its name, to find equal functions.
    by_text: FxHashMap<String, Arc<str>>,
}

impl LoopFunctions {
    /// Creates an empty collection. New functions get names that the module does not use.
    pub fn new(module: &IRModule) -> Self {
        let name_counts = module.functions.keys().map(|n| (n.clone(), 0)).collect();
        LoopFunctions { funcs: Vec::new(), name_counts, by_text: FxHashMap::default() }
    }

    /// Adds a loop function with a name derived from `hint`, and returns the name. If an equal function exists, returns its name.
    pub fn add(&mut self, hint: &str, func: PrimFunc) -> Arc<str> {
        let text = print_prim_func("f", &func, &PrintOptions::complete());
        if let Some(name) = self.by_text.get(&text) {
            return name.clone();
        }
        let mut name: Arc<str> = hint.into();
        while self.name_counts.contains_key(&name) {
            let count = self.name_counts.entry(hint.into()).or_insert(0);
            *count += 1;
            name = format!("{hint}{count}").into();
        }
        self.name_counts.insert(name.clone(), 0);
        self.by_text.insert(text, name.clone());
        self.funcs.push((name.clone(), func));
        name
    }

    /// Adds the loop function that a call needs, and returns the `R.call_tir` of it.
    pub fn call(&mut self, func: &mut Function, call: TirCall) -> Expr {
        let name = self.add(&call.name, call.func);
        let (inputs, vars, tys) = (&call.inputs, &call.tir_vars, &call.out_tys);
        pliant_ops::call_tir(func, &name, inputs, vars, tys, call.tuple)
    }

    /// Adds all collected loop functions to the module.
    pub fn insert_into(self, module: &mut IRModule) {
        for (name, func) in self.funcs {
            module.insert(name, func);
        }
    }
}

//! [`StageRecorder`]: an instrument that records the text of a module after each pass.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pliant_ir::print::{PrintOptions, print_function, print_prim_func};
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::{Instrument, PassContext, PassError, PassInfo};
use serde_json::{Value as Json, json};

/// The texts of all stages. Most passes change few functions, so each text is stored once.
#[derive(Default)]
pub struct StageRecorder(Mutex<Stages>);

#[derive(Default)]
struct Stages {
    texts: Vec<String>,
    index_of: HashMap<String, usize>,
    /// For each stage its name, and for each function the name and the index of its text.
    stages: Vec<(String, Vec<(String, usize)>)>,
}

impl Stages {
    fn text(&mut self, text: String) -> usize {
        if let Some(&index) = self.index_of.get(&text) {
            return index;
        }
        let index = self.texts.len();
        self.texts.push(text.clone());
        self.index_of.insert(text, index);
        index
    }

    fn add(&mut self, stage: &str, functions: Vec<(String, String)>) {
        let functions = functions.into_iter().map(|(name, text)| (name, self.text(text))).collect();
        self.stages.push((stage.to_string(), functions));
    }
}

impl StageRecorder {
    /// Adds a stage that consists of one text.
    pub fn add_text(&self, stage: &str, text: String) {
        self.lock().add(stage, vec![(stage.to_lowercase(), text)]);
    }

    /// Returns the stages and the texts.
    pub fn to_json(&self) -> Json {
        let stages = self.lock();
        json!({"texts": stages.texts, "stages": stages.stages})
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Stages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Instrument for StageRecorder {
    fn before(
        &self,
        _: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        let mut stages = self.lock();
        if stages.stages.is_empty() {
            stages.add("input", function_texts(module, ctx));
        }
        Ok(())
    }

    fn after(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        self.lock().add(pass.name, function_texts(module, ctx));
        Ok(())
    }
}

/// Returns the name and the text of each function, without large constants.
fn function_texts(module: &IRModule, ctx: &PassContext) -> Vec<(String, String)> {
    let options = PrintOptions { header: false, ..PrintOptions::default() };
    let text = |name: &str, function: &BaseFunc| match function {
        BaseFunc::Relax(function) => print_function(name, function, ctx.ops, &options),
        BaseFunc::Prim(function) => print_prim_func(name, function, &options),
    };
    module.functions.iter().map(|(name, f)| (name.to_string(), text(name, f))).collect()
}

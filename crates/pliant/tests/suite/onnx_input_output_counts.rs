//! Tests every ONNX operator with missing, extra and empty inputs and outputs, with and without the import of its
//! domain. Each model must be imported, compiled and run, or be rejected with an error.

use prost::Message;

use crate::onnx_grammar::newest_version;
use crate::onnx_grammar::operator_schemas::{Schema, schemas};
use crate::onnx_grammar::run_model::{LastStage, run};
use crate::onnx_grammar::single_node::{Case, usual_inputs};

/// Returns the newest version of each ONNX operator.
fn operators() -> Vec<&'static Schema> {
    let mut newest: Vec<&Schema> = Vec::new();
    for schema in schemas() {
        match newest.iter_mut().find(|s| (s.domain, s.name) == (schema.domain, schema.name)) {
            Some(known) if known.since < schema.since => *known = schema,
            Some(_) => {}
            None => newest.push(schema),
        }
    }
    newest
}

/// Creates a case with the usual number of operands and all outputs of an operator.
fn default_case(schema: &Schema) -> Case<'_> {
    Case {
        schema,
        opset: Some(newest_version(schema.domain)),
        inputs: vec![true; usual_inputs(schema)],
        outputs: vec![true; schema.outputs.0.max(1)],
        constant: false,
    }
}

/// Returns variants of the case: each number of inputs, each single input empty, all inputs empty,
/// and an extra empty input.
fn input_variants<'s>(case: &Case<'s>) -> Vec<Case<'s>> {
    let max_count = case.schema.inputs.1.min(case.inputs.len() + 3);
    let counts = (0..=max_count + 1).map(|count| vec![true; count]);
    let with_gap = (0..case.inputs.len()).map(|gap| {
        let mut inputs = case.inputs.clone();
        inputs[gap] = false;
        inputs
    });
    let ends = [vec![false; case.inputs.len()], [&case.inputs[..], &[false]].concat()];
    counts.chain(with_gap).chain(ends).map(|inputs| Case { inputs, ..case.clone() }).collect()
}

/// Returns variants of the case: each number of outputs, each single output empty, and each output
/// alone.
fn output_variants<'s>(case: &Case<'s>) -> Vec<Case<'s>> {
    let max_count = case.schema.outputs.1.min(case.outputs.len() + 3);
    let counts = (0..=max_count + 1).map(|count| vec![true; count]);
    let with_gap = (0..max_count).map(|gap| (0..max_count).map(|i| i != gap).collect());
    let only = (0..max_count).map(|one| (0..max_count).map(|i| i == one).collect());
    counts.chain(with_gap).chain(only).map(|outputs| Case { outputs, ..case.clone() }).collect()
}

/// Runs each case. Adds the failures to `bugs`, and returns the stage that each case without a failure reached.
fn run_cases(cases: &[Case<'_>], bugs: &mut Vec<String>) -> Vec<LastStage> {
    let mut stages = Vec::new();
    for case in cases {
        let bytes = case.model().encode_to_vec();
        match std::panic::catch_unwind(|| run(&bytes)) {
            Ok(Ok(reached)) => stages.push(reached),
            Ok(Err(bug)) => bugs.push(format!("{case:?}: {bug}")),
            Err(_) => bugs.push(format!("{case:?}: a panic")),
        }
    }
    stages
}

fn assert_no_bugs(bugs: &[String]) {
    assert!(bugs.is_empty(), "{} bugs:\n{}", bugs.len(), bugs.join("\n"));
}

#[test]
fn any_number_of_inputs_runs_or_is_rejected() {
    let (mut bugs, mut ran) = (Vec::new(), Vec::new());
    for schema in operators() {
        let case = default_case(schema);
        let mut cases = vec![case.clone()];
        cases.extend(input_variants(&case));
        let reached = run_cases(&cases, &mut bugs);
        ran.extend((reached.first() == Some(&LastStage::Ran)).then(|| schema.full_name()));
        let constant = Case { constant: true, ..case };
        run_cases(&input_variants(&constant), &mut bugs);
    }
    assert_no_bugs(&bugs);
    assert!(ran.len() >= 180, "only {} operators run: {ran:?}", ran.len());
}

#[test]
fn any_number_of_outputs_runs_or_is_rejected() {
    let mut bugs = Vec::new();
    for schema in operators() {
        run_cases(&output_variants(&default_case(schema)), &mut bugs);
    }
    assert_no_bugs(&bugs);
}

#[test]
fn operators_of_onnx_without_an_opset_import_are_rejected() {
    let mut bugs = Vec::new();
    for schema in operators() {
        let case = Case { opset: None, ..default_case(schema) };
        let mut cases = input_variants(&case);
        cases.extend(output_variants(&case));
        let reached = run_cases(&cases, &mut bugs);
        // A missing import of another domain is tolerated.
        let rejected = reached.iter().all(|r| *r == LastStage::Rejected);
        assert!(rejected || !schema.domain.is_empty(), "{}", schema.full_name());
    }
    assert_no_bugs(&bugs);
}

//! Every operator with missing, extra and empty inputs and outputs, with and without the import of its domain: the
//! model is imported, compiled and run, or rejected with an error.

use prost::Message;

use crate::onnx_grammar::newest;
use crate::onnx_grammar::run::{Reached, run};
use crate::onnx_grammar::schemas::{Schema, schemas};
use crate::onnx_grammar::single_node::{Case, usual_inputs};

/// The newest version of each operator.
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

/// The usual operands of an operator.
fn usual(schema: &Schema) -> Case<'_> {
    Case {
        schema,
        opset: Some(newest(schema.domain)),
        inputs: vec![true; usual_inputs(schema)],
        outputs: vec![true; schema.outputs.0.max(1)],
        constant: false,
    }
}

/// The case with each number of inputs, and with each of them empty.
fn inputs<'s>(case: &Case<'s>) -> Vec<Case<'s>> {
    let most = case.schema.inputs.1.min(case.inputs.len() + 3);
    let counts = (0..=most + 1).map(|count| vec![true; count]);
    let gaps = (0..case.inputs.len()).map(|gap| {
        let mut given = case.inputs.clone();
        given[gap] = false;
        given
    });
    let ends = [vec![false; case.inputs.len()], [&case.inputs[..], &[false]].concat()];
    counts.chain(gaps).chain(ends).map(|inputs| Case { inputs, ..case.clone() }).collect()
}

/// The case with each number of outputs, and with each of them empty.
fn outputs<'s>(case: &Case<'s>) -> Vec<Case<'s>> {
    let most = case.schema.outputs.1.min(case.outputs.len() + 3);
    let counts = (0..=most + 1).map(|count| vec![true; count]);
    let gaps = (0..most).map(|gap| (0..most).map(|i| i != gap).collect());
    let only = (0..most).map(|one| (0..most).map(|i| i == one).collect());
    counts.chain(gaps).chain(only).map(|outputs| Case { outputs, ..case.clone() }).collect()
}

/// Runs each case. Collects bugs, and returns the stage that each other case reached.
fn survive(cases: &[Case<'_>], bugs: &mut Vec<String>) -> Vec<Reached> {
    let mut all = Vec::new();
    for case in cases {
        let made = case.model().encode_to_vec();
        match std::panic::catch_unwind(|| run(&made)) {
            Ok(Ok(reached)) => all.push(reached),
            Ok(Err(bug)) => bugs.push(format!("{case:?}: {bug}")),
            Err(_) => bugs.push(format!("{case:?}: a panic")),
        }
    }
    all
}

fn told(bugs: &[String]) {
    assert!(bugs.is_empty(), "{} bugs:\n{}", bugs.len(), bugs.join("\n"));
}

#[test]
fn any_number_of_inputs_runs_or_is_rejected() {
    let (mut bugs, mut ran) = (Vec::new(), Vec::new());
    for schema in operators() {
        let case = usual(schema);
        let mut cases = vec![case.clone()];
        cases.extend(inputs(&case));
        let reached = survive(&cases, &mut bugs);
        ran.extend((reached.first() == Some(&Reached::Ran)).then(|| schema.full_name()));
        let constant = Case { constant: true, ..case };
        survive(&inputs(&constant), &mut bugs);
    }
    told(&bugs);
    assert!(ran.len() >= 180, "only {} operators run: {ran:?}", ran.len());
}

#[test]
fn any_number_of_outputs_runs_or_is_rejected() {
    let mut bugs = Vec::new();
    for schema in operators() {
        survive(&outputs(&usual(schema)), &mut bugs);
    }
    told(&bugs);
}

#[test]
fn operators_of_domains_that_are_not_imported_are_rejected() {
    let mut bugs = Vec::new();
    for schema in operators() {
        let case = Case { opset: None, ..usual(schema) };
        let mut cases = inputs(&case);
        cases.extend(outputs(&case));
        let reached = survive(&cases, &mut bugs);
        assert!(reached.iter().all(|r| *r == Reached::Refused), "{}", schema.full_name());
    }
    told(&bugs);
}

//! The operator schemas of all opset versions. `tests/python/onnx/make_schemas.py` generates `generated/schemas.txt` from ONNX's
//! operator definitions.

use std::sync::OnceLock;

use pliant_diag::spelling_suggestions::did_you_mean;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph_import::normalized_domain;
use crate::import_error::Problem;
use crate::model_file::Model;
use crate::proto::tensor_proto::DataType;
use crate::proto::{FunctionProto, ModelProto, NodeProto};

/// The oldest version of ONNX's own opset for which models are tested.
const OLDEST_TESTED: i64 = 7;

/// The schema of an operator from opset version `since` on, until a newer schema replaces it.
struct Schema {
    since: i64,
    /// The signature of the operator; `None` if the operator was removed in this version.
    signature: Option<Signature>,
}

/// The inputs, outputs and attributes of an operator in one version.
struct Signature {
    /// Minimum number of inputs that a node of the operator lists, up to the last required input. Optional inputs before it are
    /// counted.
    min_inputs: usize,
    /// Maximum number of inputs of a node of the operator; `None` if there is no limit.
    max_inputs: Option<usize>,
    max_outputs: Option<usize>,
    types: Vec<InputTypes>,
    /// The names of the attributes, and whether each one is required.
    attributes: Vec<(&'static str, bool)>,
}

/// The element types that an input accepts.
struct InputTypes {
    /// The name of the type variable. Inputs with the same type variable must have the same type.
    name: &'static str,
    /// The accepted types, with one letter per type in the order of [`DataType`]; empty if all types are accepted.
    letters: &'static str,
    /// Whether the accepted types of this input also apply to all following inputs.
    many: bool,
    /// Whether nodes may omit the input.
    optional: bool,
}

impl InputTypes {
    fn parse(word: &'static str) -> InputTypes {
        let (word, many) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
        let (word, optional) = word.strip_suffix('?').map_or((word, false), |word| (word, true));
        let (name, letters) = word.split_once('=').unwrap_or(("", word));
        InputTypes { name, letters, many, optional }
    }

    fn accepts(&self, ty: DataType) -> bool {
        self.letters.is_empty() || self.all().any(|accepted| accepted == ty)
    }

    fn all(&self) -> impl Iterator<Item = DataType> {
        let code = |letter: u8| match letter {
            b'a'..=b'z' => i32::from(letter - b'a') + 1,
            _ => i32::from(letter - b'A') + 27,
        };
        self.letters.bytes().filter_map(move |letter| DataType::try_from(code(letter)).ok())
    }
}

struct Table {
    newest: FxHashMap<&'static str, i64>,
    schemas: FxHashMap<(&'static str, &'static str), Vec<Schema>>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table { newest: FxHashMap::default(), schemas: FxHashMap::default() };
        for line in include_str!("generated/schemas.txt").lines() {
            let mut words = line.split(' ');
            let domain = words.next().map_or("", |d| if d == "-" { "" } else { d });
            let second = words.next().unwrap_or("");
            if let Ok(newest) = second.parse() {
                table.newest.insert(domain, newest);
                continue;
            }
            let since = words.next().and_then(|w| w.parse().ok()).unwrap_or(1);
            let signature = match words.next() {
                Some("gone") | None => None,
                Some(inputs) => Some(Signature {
                    min_inputs: min_count(inputs),
                    max_inputs: max_count(inputs),
                    max_outputs: words.next().and_then(max_count),
                    types: match words.next() {
                        None | Some("-") => Vec::new(),
                        Some(types) => types.split(',').map(InputTypes::parse).collect(),
                    },
                    attributes: words
                        .map(|w| w.strip_suffix('!').map_or((w, false), |name| (name, true)))
                        .collect(),
                }),
            };
            table.schemas.entry((domain, second)).or_default().push(Schema { since, signature });
        }
        table
    })
}

/// The lower bound of a number of inputs or outputs that is written as a range, such as `1-3`.
fn min_count(range: &str) -> usize {
    range.split_once('-').and_then(|(min, _)| min.parse().ok()).unwrap_or(0)
}

/// The upper bound of a number of inputs or outputs that is written as a range, such as `1-3`; `None` if there is none.
fn max_count(range: &str) -> Option<usize> {
    range.split_once('-').and_then(|(_, max)| max.parse().ok())
}

/// The newest known opset version of a domain.
pub(crate) fn newest_opset(domain: &str) -> i64 {
    table().newest.get(domain).copied().unwrap_or(1)
}

/// The schemas of a node's operator, from the oldest to the newest.
fn schemas_of(node: &NodeProto) -> Option<&[Schema]> {
    table().schemas.get(&(normalized_domain(node.domain()), node.op_type())).map(Vec::as_slice)
}

/// The schema that is valid in the given opset version; `None` if there is none.
fn schema_at(all: &[Schema], version: i64) -> Option<&Schema> {
    all.iter().rev().find(|s| s.since <= version)
}

/// Checks the element types of a node's inputs against the schema of its operator. A type is `None` if the input is absent, not a
/// tensor, or of unknown type.
///
/// # Errors
/// If an input has a type that the operator does not accept, or if inputs that must have the same type do not.
pub(crate) fn check_types(
    node: &NodeProto,
    version: i64,
    actual: &[Option<DataType>],
) -> Result<(), Problem> {
    let all = schemas_of(node).unwrap_or_default();
    let Some(Signature { types, .. }) = schema_at(all, version).and_then(|s| s.signature.as_ref())
    else {
        return Ok(());
    };
    let mut first: FxHashMap<&str, (usize, DataType)> = FxHashMap::default();
    for (i, &ty) in actual.iter().enumerate() {
        let (Some(types), Some(ty)) = (input_types(types, i), ty) else { continue };
        if !types.accepts(ty) {
            let accepted: Vec<String> = types.all().map(type_name).collect();
            let (actual, accepted) = (type_name(ty), accepted.join(", "));
            let message =
                format!("input {i} is of {actual}, but opset {version} accepts {accepted}");
            let later = |s: &&Schema| {
                let types =
                    s.signature.as_ref().and_then(|signature| input_types(&signature.types, i));
                s.since > version && types.is_some_and(|types| types.accepts(ty))
            };
            let help = match all.iter().find(later) {
                Some(s) => format!("opset {} accepts it: {CONVERT_HELP}", s.since),
                None => format!("insert a Cast node that converts input {i} to an accepted type"),
            };
            return Err(Problem::invalid(message).with_help(help));
        }
        if types.name.is_empty() {
            continue;
        }
        let (first_input, other) = *first.entry(types.name).or_insert((i, ty));
        if other != ty {
            let (ty, other) = (type_name(ty), type_name(other));
            let message = format!(
                "inputs {first_input} and {i} must be of one type, but are of {other} and {ty}"
            );
            let help = format!("insert a Cast node that converts input {i} to {other}");
            return Err(Problem::invalid(message).with_help(help));
        }
    }
    Ok(())
}

/// The element types that input `i` accepts.
fn input_types(types: &[InputTypes], i: usize) -> Option<&InputTypes> {
    types.get(i).or_else(|| types.last().filter(|last| last.many))
}

/// The name of an element type, for messages.
fn type_name(ty: DataType) -> String {
    match crate::initializer_tensors::program_dtype(ty as i32) {
        Ok(dtype) if crate::subbyte_types::narrow_type(ty as i64).is_none() => dtype.to_string(),
        _ => ty.as_str_name().to_lowercase(),
    }
}

/// Checks a node's operator, inputs, outputs and attributes against the schema of the given opset version.
///
/// # Errors
/// If the version does not contain the operator, the node has too many inputs or outputs, an input is missing, or an attribute is
/// unknown or missing.
pub(crate) fn check(node: &NodeProto, version: i64) -> Result<(), Problem> {
    let domain = normalized_domain(node.domain());
    let Some(all) = schemas_of(node) else { return Ok(()) };
    let domain_text = if domain.is_empty() { String::new() } else { format!(" of {domain}") };
    let Some(schema) = schema_at(all, version) else {
        let first = all.first().map_or(1, |s| s.since);
        let message = format!(
            "the model uses opset {version}{domain_text}, but the operator exists since opset {first}"
        );
        return Err(Problem::invalid(message).with_help(CONVERT_HELP));
    };
    let Some(signature) = &schema.signature else {
        let message = format!(
            "the model uses opset {version}{domain_text}, but the operator was removed in opset {}",
            schema.since
        );
        return Err(Problem::invalid(message).with_help(CONVERT_HELP));
    };
    for (names, max, what) in [
        (&node.input, signature.max_inputs, "inputs"),
        (&node.output, signature.max_outputs, "outputs"),
    ] {
        // Trailing empty names mean absent inputs.
        let actual = names.iter().rposition(|n| !n.is_empty()).map_or(0, |last| last + 1);
        if let Some(max) = max.filter(|&max| actual > max) {
            let message =
                format!("the node has {actual} {what}, but opset {version} allows at most {max}");
            return Err(Problem::invalid(message));
        }
    }
    let known = || signature.attributes.iter().map(|a| a.0);
    if let Some(attr) = node.attribute.iter().find(|a| !known().any(|k| k == a.name())) {
        let (name, all) = (attr.name(), known().collect::<Vec<_>>().join(", "));
        let problem = Problem::invalid(format!(
            "the operator has no attribute '{name}' in opset {version}{domain_text}"
        ));
        let has = if all.is_empty() {
            "the operator has no attributes".into()
        } else {
            format!("the attributes are {all}")
        };
        return Err(problem.with_help(did_you_mean(name, known()).unwrap_or(has)));
    }
    let is_missing = |name: &str| !node.attribute.iter().any(|a| a.name() == name);
    if let Some((name, _)) =
        signature.attributes.iter().find(|(name, required)| *required && is_missing(name))
    {
        return Err(Problem::attribute(format!("attribute '{name}' is missing")));
    }
    match missing_input(signature, &node.input) {
        Some(i) => {
            Err(Problem::invalid(format!("input {i} is missing, but the operator requires it")))
        }
        None => Ok(()),
    }
}

/// The index of the first required input that is absent.
fn missing_input(signature: &Signature, inputs: &[String]) -> Option<usize> {
    let is_optional =
        |i: usize| input_types(&signature.types, i).is_some_and(|types| types.optional);
    let is_given = |i: usize| inputs.get(i).is_some_and(|name| !name.is_empty());
    (0..signature.min_inputs).find(|&i| !is_given(i) && !is_optional(i))
}

const CONVERT_HELP: &str = "onnx.version_converter converts a model to another opset";

/// Checks that the opset versions that a model imports are known.
pub(crate) fn check_opset_versions(model: &ModelProto) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut declared = FxHashSet::default();
    for import in &model.opset_import {
        let domain = normalized_domain(import.domain());
        if !declared.insert(domain) {
            let domain_text = if domain.is_empty() { "ONNX's own operators" } else { domain };
            problems.push(Problem::invalid(format!(
                "the model imports two opset versions of {domain_text}"
            )));
        }
        let Some(&newest) = table().newest.get(domain) else { continue };
        let version = import.version();
        if (1..=newest).contains(&version) {
            continue;
        }
        let domain_text = if domain.is_empty() { "" } else { " of " };
        let message = format!(
            "opset {version}{domain_text}{domain} is not known; the newest known version is {newest}"
        );
        problems.push(Problem::unsupported(message).with_help(CONVERT_HELP));
    }
    problems
}

/// A known domain whose operators a model or a function uses without an opset import.
pub(crate) struct MissingOpset<'m> {
    /// The domain; empty for ONNX's own.
    pub domain: &'m str,
    /// The model or the function, as the subject of a sentence.
    owner: String,
}

impl MissingOpset<'_> {
    /// The problem that describes the missing opset import.
    pub fn problem(&self) -> Problem {
        let MissingOpset { domain, owner } = self;
        let operators = if domain.is_empty() { "ONNX's own operators" } else { domain };
        let message =
            format!("{owner} uses {operators}, but does not import an opset of it (opset_import)");
        Problem::invalid(message).with_help(format!(
            "add onnx.helper.make_opsetid(\"{domain}\", VERSION) to opset_import"
        ))
    }
}

/// Returns the known domains that nodes use without an opset import. Domains of user-registered operators have no versions.
pub(crate) fn unimported_domains(model: &ModelProto) -> impl Iterator<Item = MissingOpset<'_>> {
    let graph =
        model.graph.iter().map(|graph| ("the model".to_owned(), &graph.node, &model.opset_import));
    let functions = model.functions.iter();
    let functions = functions.map(|f| (function_label(f), &f.node, &f.opset_import));
    graph.chain(functions).flat_map(|(owner, nodes, imports)| {
        let declared: FxHashSet<&str> =
            imports.iter().map(|opset| normalized_domain(opset.domain())).collect();
        let mut used = Vec::new();
        domains_of(nodes, &mut used);
        used.retain(|domain| !declared.contains(domain) && table().newest.contains_key(*domain));
        used.into_iter().map(move |domain| MissingOpset { domain, owner: owner.clone() })
    })
}

/// Creates a note about a model whose opset is older than [`OLDEST_TESTED`].
pub(crate) fn old_opset_note(model: &Model) -> Option<Problem> {
    let version = model.opset().filter(|version| (1..OLDEST_TESTED).contains(version))?;
    let message = format!(
        "opset {version} is older than {OLDEST_TESTED}: few models of this opset are tested"
    );
    Some(Problem::unsupported(message).with_help(CONVERT_HELP))
}

fn function_label(function: &FunctionProto) -> String {
    format!("function '{}'", function.name())
}

/// Adds the domains of nodes, including those of their subgraphs, to `used`, without duplicates.
pub(crate) fn domains_of<'m>(nodes: &'m [NodeProto], used: &mut Vec<&'m str>) {
    let mut pending = vec![nodes];
    while let Some(nodes) = pending.pop() {
        for node in nodes {
            let domain = normalized_domain(node.domain());
            if !used.contains(&domain) {
                used.push(domain);
            }
            let graphs = node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs));
            pending.extend(graphs.map(|g| g.node.as_slice()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::AttributeProto;

    fn node(op: &str, inputs: usize, attributes: &[&str]) -> NodeProto {
        let attribute = attributes
            .iter()
            .map(|&name| AttributeProto { name: Some(name.into()), ..AttributeProto::default() });
        NodeProto {
            op_type: Some(op.into()),
            input: (0..inputs).map(|i| format!("x{i}")).collect(),
            output: vec!["y".into()],
            attribute: attribute.collect(),
            ..NodeProto::default()
        }
    }

    #[test]
    fn checks_element_types_against_the_opset_version() {
        let error = |op: &str, version, types: &[DataType]| {
            let actual: Vec<_> = types.iter().map(|&ty| Some(ty)).collect();
            let error = check_types(&node(op, types.len(), &[]), version, &actual);
            error.map_err(|p| p.to_string()).err().unwrap_or_default()
        };
        use DataType::{Bool, Float, Int8, Int64};
        assert_eq!(error("Not", 17, &[Bool]), "");
        assert!(error("Not", 17, &[Float]).contains("input 0 is of float32"));
        assert_eq!(error("Add", 14, &[Int8, Int8]), "");
        assert!(error("Add", 13, &[Int8, Int8]).contains("opset 14 accepts it"));
        assert!(error("Add", 14, &[Float, Int64]).contains("must be of one type"));
        assert!(error("Concat", 13, &[Float, Float, Int64]).contains("inputs 0 and 2"));
        assert_eq!(error("Loop", 13, &[Int64, Bool, Float, Int64]), "");
        assert!(error("Gather", 13, &[Float, Float]).contains("input 1 is of float32"));
    }

    #[test]
    fn checks_nodes_against_the_opset_version() {
        let error = |node: &NodeProto, version| {
            check(node, version).map_err(|p| p.to_string()).err().unwrap_or_default()
        };
        assert_eq!(error(&node("Softmax", 1, &["axis"]), 18), "");
        assert!(error(&node("Softmax", 1, &["axiss"]), 18).contains("did you mean 'axis'"));
        assert!(
            error(&node("Relu", 3, &[]), 18).contains("3 inputs, but opset 18 allows at most 1")
        );
        assert!(error(&node("Gelu", 1, &[]), 18).contains("exists since opset 20"));
        assert!(error(&node("Upsample", 2, &[]), 18).contains("removed in opset 10"));
        assert!(error(&node("Concat", 2, &[]), 18).contains("'axis' is missing"));
        assert_eq!(error(&node("Concat", 200, &["axis"]), 18), "");
        let mut gaps = node("Clip", 3, &[]);
        gaps.input.extend([String::new(), String::new()]);
        assert_eq!(error(&gaps, 13), "");
        gaps.input[0].clear();
        assert_eq!(error(&gaps, 13), "input 0 is missing, but the operator requires it");
        assert_eq!(
            error(&node("Add", 1, &[]), 14),
            "input 1 is missing, but the operator requires it"
        );
        assert_eq!(
            error(&node("Concat", 0, &["axis"]), 13),
            "input 0 is missing, but the operator requires it"
        );
        let mut sums = node("QLinearAdd", 7, &[]);
        sums.domain = Some("com.microsoft".into());
        sums.input[2].clear();
        assert_eq!(error(&sums, 1), "");
        sums.input[3].clear();
        assert_eq!(error(&sums, 1), "input 3 is missing, but the operator requires it");
        assert!(
            error(&node("Slice", 1, &["starts", "ends"]), 13).contains("no attribute 'starts'")
        );
        assert_eq!(error(&node("Slice", 1, &["starts", "ends"]), 9), "");
    }
}

//! [`AttrReader`] reads the attributes of a node by name and checks their types.

use pliant_diag::spelling_suggestions::did_you_mean;

use crate::import_error::Problem;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};

/// A reader of the attributes of the given node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttrReader<'a>(pub &'a NodeProto);

type AttrResult<T> = Result<T, Problem>;

impl<'a> AttrReader<'a> {
    /// Finds an attribute and checks that its type is one of `kinds`.
    fn find(&self, name: &str, kinds: &[AttributeType]) -> AttrResult<Option<&'a AttributeProto>> {
        let Some(attr) = self.0.attribute.iter().find(|a| a.name() == name) else {
            return Ok(None);
        };
        // Files of the first ONNX IR versions do not store the attribute type.
        let kind = attr.r#type();
        if kind != AttributeType::Undefined && !kinds.contains(&kind) {
            let wanted: Vec<&str> = kinds.iter().map(|k| k.as_str_name()).collect();
            return Err(Problem::attribute(format!(
                "attribute '{name}' is {}, but must be {}",
                kind.as_str_name(),
                wanted.join(" or ")
            )));
        }
        Ok(Some(attr))
    }

    /// Whether the node has the attribute.
    pub fn has(&self, name: &str) -> bool {
        self.0.attribute.iter().any(|a| a.name() == name)
    }

    /// Reads an integer attribute; `None` if it is absent.
    pub fn int(&self, name: &str) -> AttrResult<Option<i64>> {
        Ok(self.find(name, &[AttributeType::Int])?.map(AttributeProto::i))
    }

    /// Reads an integer attribute that must be at least 1; `None` if it is absent.
    pub fn positive_int(&self, name: &str) -> AttrResult<Option<i64>> {
        match self.int(name)? {
            Some(value) if value < 1 => Err(Problem::attribute(format!(
                "attribute '{name}' must be positive, but is {value}"
            ))),
            value => Ok(value),
        }
    }

    /// Reads a float attribute; `None` if it is absent.
    pub fn float(&self, name: &str) -> AttrResult<Option<f64>> {
        Ok(self.find(name, &[AttributeType::Float])?.map(|a| f64::from(a.f())))
    }

    /// Reads a string attribute; `None` if it is absent.
    pub fn str(&self, name: &str) -> AttrResult<Option<&'a str>> {
        let Some(attr) = self.find(name, &[AttributeType::String])? else { return Ok(None) };
        utf8(name, attr.s.as_deref().unwrap_or_default()).map(Some)
    }

    /// Reads a string attribute that must be one of `choices`. An absent attribute has the first choice as value.
    pub fn choice<'c>(&self, name: &str, choices: &[&'c str]) -> AttrResult<&'c str> {
        let Some(value) = self.str(name)? else { return Ok(choices[0]) };
        choices.iter().find(|c| **c == value).copied().ok_or_else(|| {
            let problem = Problem::attribute(format!("attribute '{name}' cannot be '{value}'"));
            let one_of = format!("the possible values are {}", choices.join(", "));
            problem.with_help(did_you_mean(value, choices.iter().copied()).unwrap_or(one_of))
        })
    }

    /// Reads an attribute that is a list of integers; `None` if it is absent.
    pub fn ints(&self, name: &str) -> AttrResult<Option<&'a [i64]>> {
        Ok(self.find(name, &[AttributeType::Ints])?.map(|a| a.ints.as_slice()))
    }

    /// Reads an attribute that is a list of floats; `None` if it is absent.
    pub fn floats(&self, name: &str) -> AttrResult<Option<&'a [f32]>> {
        Ok(self.find(name, &[AttributeType::Floats])?.map(|a| a.floats.as_slice()))
    }

    /// Reads an attribute that is a list of strings; `None` if it is absent.
    pub fn strings(&self, name: &str) -> AttrResult<Option<Vec<&'a str>>> {
        let Some(attr) = self.find(name, &[AttributeType::Strings])? else { return Ok(None) };
        attr.strings.iter().map(|s| utf8(name, s)).collect::<AttrResult<Vec<_>>>().map(Some)
    }

    /// Reads a tensor attribute; `None` if it is absent.
    pub fn tensor(&self, name: &str) -> AttrResult<Option<&'a TensorProto>> {
        Ok(self.find(name, &[AttributeType::Tensor])?.and_then(|a| a.t.as_ref()))
    }

    /// Reads a graph attribute, which must be present.
    pub fn graph(&self, name: &str) -> AttrResult<&'a GraphProto> {
        let attr = self.find(name, &[AttributeType::Graph])?;
        attr.and_then(|a| a.g.as_ref()).ok_or_else(|| {
            Problem::invalid(format!("attribute '{name}', which must be a graph, is missing"))
        })
    }
}

fn utf8<'a>(name: &str, bytes: &'a [u8]) -> AttrResult<&'a str> {
    std::str::from_utf8(bytes)
        .map_err(|_| Problem::attribute(format!("attribute '{name}' is not UTF-8 text")))
}

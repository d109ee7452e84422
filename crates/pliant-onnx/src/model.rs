//! [`Model`]: a decoded file and the folder that its external data lies in.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;
use prost::Message;
use rustc_hash::FxHashSet;

use crate::dims::is_name;
use crate::error::{ImportError, Problem};
use crate::limits::Limits;
use crate::node::label;
use crate::proto::tensor_proto::DataLocation;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::Value as TypeValue;
use crate::proto::{ModelProto, TensorProto, ValueInfoProto};
use crate::scan::decoded_size;

/// A model file, decoded. Its weights are slices of the file's mapping.
#[derive(Debug)]
pub struct Model {
    pub(crate) proto: ModelProto,
    /// Where external data may lie; none for a model that came as bytes.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) limits: Limits,
}

impl Model {
    /// Maps and decodes a file. External data is read from its folder, and from nowhere else. The file must not be
    /// changed while the model or anything made of it lives.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than allowed, or is no ONNX model.
    pub fn open(path: &Path, limits: Limits) -> Result<Model, ImportError> {
        let told = |what: String| Problem::invalid(format!("'{}' {what}", path.display()));
        let meta = std::fs::metadata(path).map_err(|e| told(format!("cannot be opened: {e}")))?;
        // Asked before it is opened: to open a pipe waits for who writes to it.
        if !meta.is_file() {
            return Err(told("is not a file".into()).into());
        }
        let file = File::open(path).map_err(|e| told(format!("cannot be opened: {e}")))?;
        let meta = file.metadata().map_err(|e| told(format!("cannot be read: {e}")))?;
        check_size(meta.len(), &limits)?;
        if meta.len() == 0 {
            return Err(told("is empty".into()).into());
        }
        // SAFETY: the documentation asks that the file stays as it is while it is mapped.
        let map =
            unsafe { Mmap::map(&file) }.map_err(|e| told(format!("cannot be mapped: {e}")))?;
        let mut model = Model::decode(Bytes::from_owner(map), limits)?;
        model.folder = Some(path.parent().map_or_else(PathBuf::new, Path::to_path_buf));
        Ok(model)
    }

    /// Decodes a model that is in memory. It cannot refer to external data.
    ///
    /// # Errors
    /// When the bytes are more than allowed, or no ONNX model.
    pub fn from_bytes(bytes: impl Into<Bytes>, limits: Limits) -> Result<Model, ImportError> {
        let bytes = bytes.into();
        check_size(bytes.len() as u64, &limits)?;
        Model::decode(bytes, limits)
    }

    fn decode(bytes: Bytes, limits: Limits) -> Result<Model, ImportError> {
        let told = |e: String| {
            Problem::invalid(format!("this is not an ONNX model: {e}")).with_help(
                "it is a file of another kind, or it was cut off while it was written or copied",
            )
        };
        let size = decoded_size(&bytes, limits.decoded_bytes).map_err(told)?;
        if size > limits.decoded_bytes {
            let most = limits.decoded_bytes;
            let message = format!("the model takes more than {most} bytes once it is decoded");
            return Err(Problem::invalid(message).into());
        }
        let proto = ModelProto::decode(bytes).map_err(|e| told(e.to_string()))?;
        if proto.graph.is_none() {
            return Err(told("it holds no graph".into()).into());
        }
        Ok(Model { proto, folder: None, limits })
    }

    /// What the file says made it, with its version.
    pub fn producer(&self) -> String {
        format!("{} {}", self.proto.producer_name(), self.proto.producer_version()).trim().into()
    }

    /// The nodes of the graph in order: how messages call them, and the names of their outputs.
    pub fn nodes(&self) -> impl Iterator<Item = (String, Vec<String>)> + '_ {
        let nodes = self.proto.graph.iter().flat_map(|g| &g.node);
        nodes.map(|n| (label(n), n.output.iter().filter(|o| !o.is_empty()).cloned().collect()))
    }

    /// The tensors that the graph is fed, with the text of each dim: a number, a name or arithmetic, empty where the file
    /// says nothing.
    pub fn inputs(&self) -> Vec<(String, Vec<String>)> {
        let Some(graph) = &self.proto.graph else { return Vec::new() };
        let initial: FxHashSet<&str> = graph.initializer.iter().map(|t| t.name()).collect();
        let text = |dim: &Dimension| match &dim.value {
            Some(dimension::Value::DimValue(size)) => size.to_string(),
            Some(dimension::Value::DimParam(text)) if is_name(text) => text.trim().to_owned(),
            _ => String::new(),
        };
        let fed = graph.input.iter().filter(|i| !initial.contains(i.name()));
        fed.map(|input| {
            let dims = match input.r#type.as_ref().and_then(|t| t.value.as_ref()) {
                Some(TypeValue::TensorType(tensor)) => {
                    tensor.shape.iter().flat_map(|s| &s.dim).map(text).collect()
                }
                _ => Vec::new(),
            };
            (input.name().to_owned(), dims)
        })
        .collect()
    }

    /// Whether weights lie in other files.
    pub fn has_external_data(&self) -> bool {
        let external = |t: &TensorProto| t.data_location() == DataLocation::External;
        self.proto.graph.iter().flat_map(|g| &g.initializer).any(external)
    }

    /// The file with the output of every node among the graph's, for runtimes that are to be compared node by node.
    pub fn with_all_outputs(&self) -> Vec<u8> {
        let mut proto = self.proto.clone();
        if let Some(graph) = &mut proto.graph {
            let mut given: FxHashSet<String> =
                graph.output.iter().map(|o| o.name().to_owned()).collect();
            for name in graph.node.iter().flat_map(|n| &n.output).filter(|o| !o.is_empty()) {
                if given.insert(name.clone()) {
                    let name = Some(name.clone());
                    graph.output.push(ValueInfoProto { name, ..ValueInfoProto::default() });
                }
            }
        }
        proto.encode_to_vec()
    }

    /// The version of ONNX's own operators that the model uses.
    pub fn opset(&self) -> Option<i64> {
        let own = |d: &str| d.is_empty() || d == "ai.onnx";
        self.proto.opset_import.iter().find(|o| own(o.domain())).map(|o| o.version())
    }
}

fn check_size(len: u64, limits: &Limits) -> Result<(), ImportError> {
    if len <= limits.file_bytes {
        return Ok(());
    }
    let help = "large weights belong into external data";
    let message = format!("the model has {len} bytes; at most {} are taken", limits.file_bytes);
    Err(Problem::invalid(message).with_help(help).into())
}

/// Shared bytes of a mapping: several tensors view one external file.
pub(crate) type SharedMap = Arc<Mmap>;

//! [`Model`]: a decoded model file, and [`ModelMetadata`], what it states about itself.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;
use memmap2::Mmap;
use prost::Message;
use rustc_hash::FxHashSet;

use crate::declared_values::DeclaredValue;
use crate::decoded_model_size::decoded_size;
use crate::import_error::{ImportError, Problem};
use crate::import_limits::Limits;
use crate::node::label;
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{ModelProto, TensorProto, ValueInfoProto};

/// A decoded model file, whose weights are borrowed from the mapped file.
///
/// # Examples
/// ```
/// use pliant_onnx::{Limits, Model};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
/// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
/// // `RELU` contains a model with the node y = Relu(x), where x has the shape [n].
/// let model = Model::from_bytes(RELU, Limits::default())?;
/// assert_eq!(model.opset(), Some(18));
/// assert_eq!(model.required_inputs()[0].ty, "tensor(float)");
/// assert!(Model::from_bytes(&b"not a model"[..], Limits::default()).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Model {
    pub(crate) proto: ModelProto,
    /// The folder in which external data files are searched; `None` for a model that was decoded from memory.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) limits: Limits,
}

/// The metadata of a model file: versions, producer, names and documentation. Texts are empty if the file does not
/// contain them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelMetadata {
    /// The version of the file format.
    pub ir_version: i64,
    /// The imported versions of operator sets, by domain. ONNX's own domain is the empty string.
    pub opset_imports: IndexMap<String, i64>,
    /// The name of the exporter.
    pub producer_name: String,
    /// The version of the exporter.
    pub producer_version: String,
    /// The namespace of the model, in the form of a reversed domain name.
    pub domain: String,
    /// The version of the model; `None` if the file does not state it.
    pub model_version: Option<i64>,
    /// The documentation of the model.
    pub doc_string: String,
    /// The name of the main graph.
    pub graph_name: String,
    /// The documentation of the main graph.
    pub graph_doc_string: String,
    /// The custom properties of the model. If the file contains a key twice, the later value is used.
    pub properties: IndexMap<String, String>,
}

impl Model {
    /// Maps and decodes a model file. External data is only read from the file's folder. The file must not be modified while the
    /// model, or anything created from it, exists.
    ///
    /// # Errors
    /// If the file cannot be read, exceeds the limits, or is not an ONNX model.
    pub fn open(path: &Path, limits: Limits) -> Result<Model, ImportError> {
        let file_name = path.display();
        let meta = std::fs::metadata(path)
            .map_err(|e| Problem::invalid(format!("'{file_name}' cannot be opened: {e}")))?;
        // Checked before opening, because opening a pipe blocks until it has a writer.
        if !meta.is_file() {
            return Err(Problem::invalid(format!("'{file_name}' is not a regular file")).into());
        }
        let file = File::open(path)
            .map_err(|e| Problem::invalid(format!("'{file_name}' cannot be opened: {e}")))?;
        let meta = file
            .metadata()
            .map_err(|e| Problem::invalid(format!("'{file_name}' cannot be read: {e}")))?;
        check_size(meta.len(), &limits)?;
        if meta.len() == 0 {
            return Err(Problem::invalid(format!("'{file_name}' is empty")).into());
        }
        // SAFETY: the documentation requires that the file does not change while it is mapped.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| {
            Problem::invalid(format!("'{file_name}' cannot be mapped to memory: {e}"))
        })?;
        let mut model = Model::decode(Bytes::from_owner(map), limits)?;
        model.folder = Some(path.parent().map_or_else(PathBuf::new, Path::to_path_buf));
        Ok(model)
    }

    /// Decodes a model in memory. Such a model has no external data.
    ///
    /// # Errors
    /// If the bytes exceed the limits or are not an ONNX model.
    pub fn from_bytes(bytes: impl Into<Bytes>, limits: Limits) -> Result<Model, ImportError> {
        let bytes = bytes.into();
        check_size(bytes.len() as u64, &limits)?;
        Model::decode(bytes, limits)
    }

    fn decode(bytes: Bytes, limits: Limits) -> Result<Model, ImportError> {
        let describe = |e: String| {
            Problem::invalid(format!("the data is not an ONNX model: {e}")).with_help(
                "pass the content of an ONNX file; if you did, the file is damaged or truncated, so export or copy it again",
            )
        };
        let size = decoded_size(&bytes, limits.decoded_bytes).map_err(describe)?;
        if size > limits.decoded_bytes {
            let max = limits.decoded_bytes;
            let message = format!(
                "the model takes more than {max} bytes once it is decoded (Limits.decoded_bytes)"
            );
            return Err(Problem::invalid(message).into());
        }
        let proto = ModelProto::decode(bytes).map_err(|e| describe(e.to_string()))?;
        if proto.graph.is_none() {
            return Err(describe("the file contains no graph".into()).into());
        }
        Ok(Model { proto, folder: None, limits })
    }

    /// The name and version of the exporter that produced the file, as the file states them.
    pub fn producer(&self) -> String {
        format!("{} {}", self.proto.producer_name(), self.proto.producer_version()).trim().into()
    }

    /// The nodes of the main graph in order. Each item is the label of the node and the names of its outputs.
    pub fn nodes(&self) -> impl Iterator<Item = (String, Vec<String>)> + '_ {
        let nodes = self.proto.graph.iter().flat_map(|g| &g.node);
        nodes.map(|n| (label(n), n.output.iter().filter(|o| !o.is_empty()).cloned().collect()))
    }

    /// The inputs of the graph that have no initializer, in the order of the file. A run must provide these.
    pub fn required_inputs(&self) -> Vec<DeclaredValue> {
        self.graph_inputs(false)
    }

    /// The inputs of the graph with an initializer, which is the default of the input, in the order of the file.
    pub fn overridable_initializers(&self) -> Vec<DeclaredValue> {
        self.graph_inputs(true)
    }

    fn graph_inputs(&self, initialized: bool) -> Vec<DeclaredValue> {
        let initializers: FxHashSet<&str> = self.initializer_names().collect();
        let inputs = self.proto.graph.iter().flat_map(|graph| &graph.input);
        let inputs = inputs.filter(|input| initializers.contains(input.name()) == initialized);
        inputs.map(DeclaredValue::of).collect()
    }

    /// The outputs of the graph, in the order of the file.
    pub fn outputs(&self) -> Vec<DeclaredValue> {
        let outputs = self.proto.graph.iter().flat_map(|graph| &graph.output);
        outputs.map(DeclaredValue::of).collect()
    }

    /// The names of the initializers of the graph, dense and sparse.
    pub fn initializer_names(&self) -> impl Iterator<Item = &str> {
        let graphs = self.proto.graph.iter();
        graphs.flat_map(|graph| {
            let sparse =
                graph.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_ref());
            graph.initializer.iter().chain(sparse).map(TensorProto::name)
        })
    }

    /// The metadata of the file: versions, producer, names and documentation.
    pub fn metadata(&self) -> ModelMetadata {
        let proto = &self.proto;
        let graph = proto.graph.as_ref();
        let entries = proto.metadata_props.iter();
        let domains = proto.opset_import.iter();
        ModelMetadata {
            ir_version: proto.ir_version(),
            opset_imports: domains
                .map(|opset| (opset.domain().to_owned(), opset.version()))
                .collect(),
            producer_name: proto.producer_name().to_owned(),
            producer_version: proto.producer_version().to_owned(),
            domain: proto.domain().to_owned(),
            model_version: proto.model_version,
            doc_string: proto.doc_string().to_owned(),
            graph_name: graph.map(|graph| graph.name().to_owned()).unwrap_or_default(),
            graph_doc_string: graph.map(|graph| graph.doc_string().to_owned()).unwrap_or_default(),
            properties: entries
                .map(|entry| (entry.key().to_owned(), entry.value().to_owned()))
                .collect(),
        }
    }

    /// Whether some weights are stored in other files.
    pub fn has_external_data(&self) -> bool {
        let external = |t: &TensorProto| t.data_location() == DataLocation::External;
        self.proto.graph.iter().flat_map(|g| &g.initializer).any(external)
    }

    /// Encodes a variant of the model in which the outputs of all nodes are also graph outputs, to compare runtimes node by node.
    pub fn with_all_outputs(&self) -> Vec<u8> {
        let mut proto = self.proto.clone();
        if let Some(graph) = &mut proto.graph {
            let mut names: FxHashSet<String> =
                graph.output.iter().map(|o| o.name().to_owned()).collect();
            for name in graph.node.iter().flat_map(|n| &n.output).filter(|o| !o.is_empty()) {
                if names.insert(name.clone()) {
                    let name = Some(name.clone());
                    graph.output.push(ValueInfoProto { name, ..ValueInfoProto::default() });
                }
            }
        }
        proto.encode_to_vec()
    }

    /// The version of ONNX's own opset that the model imports.
    pub fn opset(&self) -> Option<i64> {
        let is_onnx_domain = |d: &str| d.is_empty() || d == "ai.onnx";
        self.proto.opset_import.iter().find(|o| is_onnx_domain(o.domain())).map(|o| o.version())
    }
}

fn check_size(len: u64, limits: &Limits) -> Result<(), ImportError> {
    if len <= limits.file_bytes {
        return Ok(());
    }
    let help = "store large weights as external data";
    let message = format!(
        "the model has {len} bytes, but the limit is {} (Limits.file_bytes)",
        limits.file_bytes
    );
    Err(Problem::invalid(message).with_help(help).into())
}

/// A mapped external file, which several tensors may share.
pub(crate) type SharedMap = Arc<Mmap>;

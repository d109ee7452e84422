//! Reads initializers and attribute tensors, which are views of the file if possible. Also converts between ONNX element types and
//! dtypes.

use bytes::Bytes;
use half::{bf16, f16};
use pliant_ir::DType;
use pliant_tensor::{Storage, Tensor, TensorError, checked_nbytes, checked_numel};

use crate::external_data::ExternalData;
use crate::import_error::Problem;
use crate::import_limits::Limits;
use crate::proto::TensorProto;
use crate::proto::tensor_proto::{DataLocation, DataType};

/// The dtype that represents an ONNX element type in the program. For a narrow type, it is the dtype of the storage.
///
/// # Errors
/// If the type is unknown or not supported.
pub(crate) fn program_dtype(code: i32) -> Result<DType, String> {
    let known = DataType::try_from(code)
        .map_err(|_| format!("{code} is not the code of an ONNX element type"))?;
    Ok(match known {
        DataType::Bool => DType::Bool,
        DataType::Int8 | DataType::Int4 | DataType::Int2 => DType::Int8,
        DataType::Int16 => DType::Int16,
        DataType::Int32 => DType::Int32,
        DataType::Int64 => DType::Int64,
        DataType::Uint8 | DataType::Uint4 | DataType::Uint2 => DType::UInt8,
        // Stored as bit patterns.
        ty if crate::subbyte_types::is_narrow_float(ty) => DType::UInt8,
        DataType::Uint16 => DType::UInt16,
        DataType::Uint32 => DType::UInt32,
        DataType::Uint64 => DType::UInt64,
        DataType::Float16 => DType::Float16,
        DataType::Bfloat16 => DType::BFloat16,
        DataType::Float => DType::Float32,
        DataType::Double => DType::Float64,
        DataType::Undefined => {
            return Err("the element type of the tensor is undefined (data_type 0)".into());
        }
        other => return Err(format!("element type {} is not supported", other.as_str_name())),
    })
}

/// Returns the dtype for the code of an ONNX element type that an attribute or a declaration contains. Unlike the error of
/// [`program_dtype`], the problem includes a help text.
///
/// # Errors
/// If the code is invalid, or the type is not supported.
pub(crate) fn checked_dtype(code: i64) -> Result<DType, Problem> {
    let code = i32::try_from(code).unwrap_or(i32::MAX);
    let problem = |e| match DataType::try_from(code) {
        Ok(DataType::String) => Problem::unsupported(e)
            .with_help("convert strings to numbers before they are passed to the model"),
        Ok(DataType::Complex64 | DataType::Complex128) => Problem::unsupported(e).with_help(
            "use float tensors with an additional last axis of size 2 for \
                 the real and imaginary parts, as the operator DFT does",
        ),
        Ok(DataType::Undefined) | Err(_) => Problem::invalid(e),
        Ok(_) => Problem::unsupported(e),
    };
    program_dtype(code).map_err(|e| Problem { in_attribute: true, ..problem(e) })
}

/// The ONNX element type that corresponds to a dtype.
pub(crate) fn data_type(dtype: DType) -> DataType {
    match dtype {
        DType::Bool => DataType::Bool,
        DType::Int8 => DataType::Int8,
        DType::Int16 => DataType::Int16,
        DType::Int32 => DataType::Int32,
        DType::Int64 => DataType::Int64,
        DType::UInt8 => DataType::Uint8,
        DType::UInt16 => DataType::Uint16,
        DType::UInt32 => DataType::Uint32,
        DType::UInt64 => DataType::Uint64,
        DType::Float16 => DataType::Float16,
        DType::BFloat16 => DataType::Bfloat16,
        DType::Float32 => DataType::Float,
        DType::Float64 => DataType::Double,
    }
}

/// Checks that the rank of a tensor is within the limits.
///
/// # Errors
/// Describes the problem. The text starts with `subject`, which names the tensor.
pub(crate) fn check_rank(subject: &str, rank: usize, limits: &Limits) -> Result<(), String> {
    if rank <= limits.rank {
        return Ok(());
    }
    Err(format!("{subject} has {rank} dims, but the limit is {} (Limits.rank)", limits.rank))
}

/// Reads a tensor from the file or from its external data.
///
/// # Errors
/// Describes the problem, without the tensor's name.
pub(crate) fn read_tensor(
    proto: &TensorProto,
    external: &mut ExternalData,
    limits: &Limits,
) -> Result<Tensor, Problem> {
    let dtype = checked_dtype(proto.data_type().into())?;
    let nbytes = checked_byte_size(&proto.dims, dtype, limits).map_err(Problem::invalid)?;
    read_elements(proto, dtype, nbytes, external).map_err(|e| e.problem(proto.data_location()))
}

/// The reason why the elements of a tensor cannot be read.
enum ReadError {
    /// The data does not match the tensor's type, or the file contains the elements more than once. Contains the message.
    Damaged(String),
    /// The file with the external data of the tensor cannot be opened. Contains the message.
    ExternalFile(String),
    /// The memory of the tensor cannot be allocated.
    Memory(TensorError),
}

impl ReadError {
    /// Converts the error to a problem with a help text that fits the reason.
    fn problem(self, location: DataLocation) -> Problem {
        match self {
            ReadError::Damaged(text) => Problem::invalid(text).with_help(match location {
                DataLocation::External => {
                    "the external data does not belong to this model file, or one of them is damaged: export the model again"
                }
                DataLocation::Default => "the file is damaged: export the model again",
            }),
            ReadError::ExternalFile(text) => Problem::invalid(text).with_help(
                "external data must be next to the model file: \
                 onnx.save_model(model, path, save_as_external_data=True) writes it there",
            ),
            ReadError::Memory(error @ TensorError::WrongLimit { .. }) => {
                let help = "correct the value of the environment variable, or unset it";
                Problem::invalid(error.to_string()).with_help(help)
            }
            // The message says which limit applies and how to change it.
            ReadError::Memory(error) => Problem::invalid(error.to_string()),
        }
    }
}

impl From<String> for ReadError {
    fn from(message: String) -> Self {
        ReadError::Damaged(message)
    }
}

impl From<&str> for ReadError {
    fn from(message: &str) -> Self {
        ReadError::Damaged(message.into())
    }
}

impl From<TensorError> for ReadError {
    fn from(error: TensorError) -> Self {
        match error {
            TensorError::OutOfMemory { .. }
            | TensorError::MemoryLimit { .. }
            | TensorError::WrongLimit { .. } => ReadError::Memory(error),
            other => ReadError::Damaged(other.to_string()),
        }
    }
}

/// The size of a tensor's elements in bytes. Also checks the shape against the limits.
fn checked_byte_size(shape: &[i64], dtype: DType, limits: &Limits) -> Result<usize, String> {
    if let Some(&d) = shape.iter().find(|&&d| d < 0) {
        return Err(format!("the shape {shape:?} has the negative dim {d}"));
    }
    check_rank("the tensor", shape.len(), limits)?;
    let nbytes = checked_nbytes(shape, dtype).map_err(|e| e.to_string())?;
    if nbytes as u64 > limits.tensor_bytes {
        return Err(format!(
            "the tensor has {nbytes} bytes, but the limit is {} (Limits.tensor_bytes)",
            limits.tensor_bytes
        ));
    }
    Ok(nbytes)
}

/// Reads the elements of a tensor from the field of the message or the external file that contains
/// them.
fn read_elements(
    proto: &TensorProto,
    dtype: DType,
    nbytes: usize,
    external: &mut ExternalData,
) -> Result<Tensor, ReadError> {
    let shape = &proto.dims;
    if let Some(duplicate) = duplicate_data(proto) {
        return Err(duplicate.into());
    }
    let packed = match DataType::try_from(proto.data_type()) {
        Ok(DataType::Int4 | DataType::Uint4 | DataType::Float4e2m1) => Some(4),
        Ok(DataType::Int2 | DataType::Uint2) => Some(2),
        _ => None,
    };
    if proto.data_location() == DataLocation::External {
        let Some(bits) = packed else {
            let raw = external_bytes(proto, external, dtype, nbytes)?;
            return if nbytes == 0 {
                Ok(Tensor::zeros(shape, dtype)?)
            } else {
                view_bytes(raw, shape, dtype)
            };
        };
        // Several elements of a narrow type share a byte.
        let raw = external_bytes(proto, external, dtype, nbytes.div_ceil(8 / bits))?;
        return unpack(&raw, shape, dtype, bits);
    }
    if let Some(raw) = &proto.raw_data {
        if let Some(bits) = packed {
            return unpack(raw, shape, dtype, bits);
        }
        if raw.len() != nbytes {
            return Err(format!(
                "the data of the tensor has {} bytes, but a tensor of shape {shape:?} and type {dtype} needs {nbytes} bytes",
                raw.len()
            )
            .into());
        }
        return view_bytes(raw.clone(), shape, dtype);
    }
    read_fields(proto, shape, dtype, packed)
}

/// The error message for a tensor with elements in more than one field, because ONNX does not define which field is valid; `None`
/// for other tensors.
fn duplicate_data(proto: &TensorProto) -> Option<String> {
    let fields = [
        ("raw_data", proto.raw_data.as_ref().is_some_and(|raw| !raw.is_empty())),
        ("float_data", !proto.float_data.is_empty()),
        ("double_data", !proto.double_data.is_empty()),
        ("int32_data", !proto.int32_data.is_empty()),
        ("int64_data", !proto.int64_data.is_empty()),
        ("uint64_data", !proto.uint64_data.is_empty()),
        ("external_data", proto.data_location() == DataLocation::External),
    ];
    let present: Vec<&str> = fields.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    (present.len() > 1).then(|| {
        format!(
            "the tensor must store its elements in one field, but stores them in {}",
            present.join(" and in ")
        )
    })
}

/// Creates a tensor that borrows bytes of the file. The bytes are copied if they are not aligned for the dtype.
fn view_bytes(raw: Bytes, shape: &[i64], dtype: DType) -> Result<Tensor, ReadError> {
    let misaligned = !(raw.as_ptr() as usize).is_multiple_of(dtype.size());
    if misaligned || cfg!(target_endian = "big") || dtype == DType::Bool {
        return copy_bytes(&raw, shape, dtype);
    }
    let (ptr, len) = (raw.as_ptr().cast_mut(), raw.len());
    // SAFETY: `raw` keeps the bytes alive until the storage drops it, and nothing writes to them.
    let storage = unsafe { Storage::from_foreign(ptr, len, true, move || drop(raw)) };
    Ok(Tensor::from_storage(storage, 0, shape, dtype)?)
}

/// Creates a tensor with a copy of little-endian bytes. For bool, every nonzero byte is true.
fn copy_bytes(raw: &[u8], shape: &[i64], dtype: DType) -> Result<Tensor, ReadError> {
    if dtype == DType::Bool {
        let ones: Vec<u8> = raw.iter().map(|&b| u8::from(b != 0)).collect();
        return Ok(Tensor::from_bytes(shape, dtype, &ones)?);
    }
    if cfg!(target_endian = "big") {
        let mut swapped = raw.to_vec();
        swapped.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        return Ok(Tensor::from_bytes(shape, dtype, &swapped)?);
    }
    Ok(Tensor::from_bytes(shape, dtype, raw)?)
}

/// Maps the bytes of a tensor's external data, whose length must be `nbytes`.
fn external_bytes(
    proto: &TensorProto,
    external: &mut ExternalData,
    dtype: DType,
    nbytes: usize,
) -> Result<Bytes, ReadError> {
    let entry = |key: &str| proto.external_data.iter().find(|e| e.key() == key).map(|e| e.value());
    let location = entry("location").ok_or("the external data has no location")?;
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| {
            format!("the {key} of the external data, '{text}', is not a number of bytes")
        }),
    };
    let offset = number("offset")?.unwrap_or(0);
    if let Some(length) = number("length")?
        && length != nbytes as u64
    {
        let shape = &proto.dims;
        return Err(format!(
            "the external data has {length} bytes, but a tensor of shape {shape:?} and type {dtype} needs {nbytes} bytes"
        )
        .into());
    }
    if nbytes == 0 {
        return Ok(Bytes::new());
    }
    let map = external.map(location).map_err(ReadError::ExternalFile)?;
    let end = offset.checked_add(nbytes as u64).filter(|&end| end <= map.len() as u64);
    let (Ok(start), Some(end)) = (usize::try_from(offset), end) else {
        return Err(format!(
            "the external data '{location}' has {} bytes, but the tensor needs {nbytes} bytes from byte {offset} on",
            map.len()
        )
        .into());
    };
    Ok(Bytes::from_owner(MappedBytes(map)).slice(start..end as usize))
}

/// A mapped file that owns the bytes from which tensors borrow their elements.
struct MappedBytes(crate::model_file::SharedMap);

impl AsRef<[u8]> for MappedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Unpacks elements of 2 or 4 bits to one element of the dtype each, lowest bits first.
fn unpack(raw: &[u8], shape: &[i64], dtype: DType, bits: usize) -> Result<Tensor, ReadError> {
    let numel = checked_numel(shape, dtype)?;
    let each = 8 / bits;
    if raw.len() != numel.div_ceil(each) {
        return Err(format!(
            "the data has {} bytes, but a tensor of shape {shape:?} with {bits}-bit elements needs {} bytes",
            raw.len(),
            numel.div_ceil(each)
        )
        .into());
    }
    let shift = 8 - bits;
    let element = |i: usize| (raw[i / each] >> (bits * (i % each))) << shift;
    let bytes: Vec<u8> = match dtype {
        // The arithmetic shift extends the sign of the element.
        DType::Int8 => (0..numel).map(|i| ((element(i) as i8) >> shift) as u8).collect(),
        _ => (0..numel).map(|i| element(i) >> shift).collect(),
    };
    Ok(Tensor::from_bytes(shape, dtype, &bytes)?)
}

/// Reads a tensor whose elements are in the typed fields of the message, such as `float_data`.
fn read_fields(
    proto: &TensorProto,
    shape: &[i64],
    dtype: DType,
    packed: Option<usize>,
) -> Result<Tensor, ReadError> {
    let numel = checked_numel(shape, dtype)?;
    if let Some(bits) = packed {
        let bytes: Vec<u8> = proto.int32_data.iter().map(|&v| v as u8).collect();
        return unpack(&bytes, shape, dtype, bits);
    }
    let count = match dtype {
        DType::Float32 => proto.float_data.len(),
        DType::Float64 => proto.double_data.len(),
        DType::Int64 => proto.int64_data.len(),
        DType::UInt32 | DType::UInt64 => proto.uint64_data.len(),
        _ => proto.int32_data.len(),
    };
    if count != numel {
        let text = format!("the tensor has {count} elements, but shape {shape:?} needs {numel}");
        return Err(text.into());
    }
    let ints = &proto.int32_data;
    let tensor = match dtype {
        DType::Float32 => Tensor::from_slice(shape, &proto.float_data),
        DType::Float64 => Tensor::from_slice(shape, &proto.double_data),
        DType::Int64 => Tensor::from_slice(shape, &proto.int64_data),
        DType::UInt64 => Tensor::from_slice(shape, &proto.uint64_data),
        DType::UInt32 => Tensor::from_slice(shape, &map_elements(&proto.uint64_data, |v| v as u32)),
        DType::Int32 => Tensor::from_slice(shape, ints),
        DType::Int16 => Tensor::from_slice(shape, &map_elements(ints, |v| v as i16)),
        DType::Int8 => Tensor::from_slice(shape, &map_elements(ints, |v| v as i8)),
        DType::UInt16 => Tensor::from_slice(shape, &map_elements(ints, |v| v as u16)),
        DType::UInt8 => Tensor::from_slice(shape, &map_elements(ints, |v| v as u8)),
        DType::Bool => Tensor::from_bytes(shape, dtype, &map_elements(ints, |v| u8::from(v != 0))),
        DType::Float16 => {
            Tensor::from_slice(shape, &map_elements(ints, |v| f16::from_bits(v as u16)))
        }
        DType::BFloat16 => {
            Tensor::from_slice(shape, &map_elements(ints, |v| bf16::from_bits(v as u16)))
        }
    };
    Ok(tensor?)
}

fn map_elements<T: Copy, U>(values: &[T], f: impl Fn(T) -> U) -> Vec<U> {
    values.iter().map(|&v| f(v)).collect()
}

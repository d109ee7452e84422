//! [`View`]: a buffer at run time. Only this module accesses memory.
//!
//! A *position* is the offset of an element from the base of the buffer, in elements. An *address*
//! is the offset that the program computes from the declaration of the buffer. It differs from the
//! position if a buffer that is declared compact receives a strided tensor; see [`View::address`].

use pliant_ir::DType;
use pliant_tensor::{Tensor, bf16, f16, round_to_bf16, round_to_f16};

use super::scalar_arithmetic::{Val, malformed};
use crate::InterpError;
use crate::interp_error::{ErrorKind, Result};

/// How the linear index of an element is converted to its position in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The tensor is row-major without gaps, so the linear index is the position.
    Compact,
    /// The buffer declares strides, so the linear index that the program computes is the position.
    Declared,
    /// The buffer is declared compact, but the tensor has strides. The linear index is the number
    /// of the element in row-major order.
    Strided,
}

/// A buffer at run time: memory, element type, shape and strides.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<i64>,
    strides: Vec<i64>,
    layout: Layout,
    /// The address of the element at position 0.
    base: *mut u8,
    /// The lowest position that an access may reach. The next field, `end`, is the position after
    /// the highest one.
    first: i64,
    end: i64,
    read_only: bool,
    tensor: Tensor,
}

impl View {
    /// Creates a view of a tensor whose buffer is declared compact.
    pub fn of_tensor(name: &str, tensor: &Tensor) -> View {
        let layout = if tensor.is_contiguous() { Layout::Compact } else { Layout::Strided };
        Self::new(name, tensor, tensor.shape().to_vec(), tensor.strides().to_vec(), layout)
    }

    /// Creates a view of a tensor whose buffer declares strides.
    pub fn with_declared_strides(name: &str, tensor: &Tensor) -> View {
        let (shape, strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
        Self::new(name, tensor, shape, strides, Layout::Declared)
    }

    /// Creates a view of newly allocated memory with the given shape and strides. Without strides, the view is row-major.
    pub fn over(name: &str, memory: &Tensor, shape: Vec<i64>, strides: Option<Vec<i64>>) -> View {
        match strides {
            Some(strides) => {
                let mut view = Self::new(name, memory, shape, strides, Layout::Declared);
                (view.first, view.end) = (0, memory.numel() as i64);
                view
            }
            None => {
                let mut strides = vec![0; shape.len()];
                pliant_tensor::contiguous_strides(&shape, &mut strides);
                Self::new(name, memory, shape, strides, Layout::Compact)
            }
        }
    }

    /// Creates a view of the same memory that starts at position `offset` and has the given shape and strides.
    pub fn subview(&self, offset: i64, shape: Vec<i64>, strides: Vec<i64>) -> View {
        let size = self.dtype.size() as isize;
        View {
            shape,
            strides,
            layout: Layout::Declared,
            base: self.base.wrapping_offset(offset as isize * size),
            first: self.first - offset,
            end: self.end - offset,
            ..self.clone()
        }
    }

    fn new(
        name: &str,
        tensor: &Tensor,
        shape: Vec<i64>,
        strides: Vec<i64>,
        layout: Layout,
    ) -> View {
        let empty = shape.contains(&0);
        let extents = || shape.iter().zip(&strides).map(|(d, s)| (d - 1).saturating_mul(*s));
        let first = if empty { 0 } else { extents().map(|r| r.min(0)).sum() };
        let end = if empty { 0 } else { extents().map(|r| r.max(0)).sum::<i64>() + 1 };
        View {
            name: name.to_string(),
            dtype: tensor.dtype(),
            shape,
            strides,
            layout,
            base: tensor.data_ptr(),
            first,
            end,
            read_only: tensor.is_read_only(),
            tensor: tensor.clone(),
        }
    }

    /// Returns the address of the element at position 0.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Returns the strides in elements.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Returns the tensor that owns the memory.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Returns the position of an element: its offset from the base of the buffer, in elements. `indices` contains one index per
    /// dim or, in lowered functions, one linear index. Fails if the element is out of bounds.
    pub fn position(&self, indices: &[i64]) -> Result<i64> {
        if indices.len() == self.shape.len() {
            let mut position = 0i64;
            for (dim, (&i, &size)) in indices.iter().zip(&self.shape).enumerate() {
                if i < 0 || i >= size {
                    return Err(self.index_error(i, dim, size));
                }
                position += i * self.strides[dim];
            }
            return Ok(position);
        }
        let [linear] = *indices else {
            let (name, rank, count) = (&self.name, self.shape.len(), indices.len());
            return Err(malformed(&format!(
                "buffer '{name}' has {rank} dims, but is accessed with {count} indices"
            )));
        };
        self.linear_position(linear)
    }

    /// Converts the linear index of an element to its position: its offset from the base of the buffer, in elements. Fails if the
    /// index is out of bounds.
    fn linear_position(&self, index: i64) -> Result<i64> {
        if self.layout == Layout::Declared {
            if index < self.first || index >= self.end {
                return Err(self.linear_index_error(index));
            }
            return Ok(index);
        }
        let count = self.shape.iter().product::<i64>();
        if index < 0 || index >= count {
            return Err(self.linear_index_error(index));
        }
        if self.layout == Layout::Compact {
            return Ok(index);
        }
        let (mut rest, mut position) = (index, 0);
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            position += rest % size * stride;
            rest /= size;
        }
        Ok(position)
    }

    /// Returns the address of an element: its position or, for a strided tensor whose buffer is declared compact, its number in
    /// row-major order. The element may be out of bounds.
    pub fn address(&self, indices: &[i64]) -> i64 {
        match *indices {
            [linear] if self.shape.len() != 1 => linear,
            _ if self.layout == Layout::Strided => indices
                .iter()
                .zip(&self.shape)
                .fold(0i64, |p, (i, size)| p.saturating_mul(*size).saturating_add(*i)),
            _ => indices
                .iter()
                .zip(&self.strides)
                .fold(0i64, |p, (i, s)| p.saturating_add(i.saturating_mul(*s))),
        }
    }

    #[cold]
    fn index_error(&self, index: i64, dim: usize, size: i64) -> InterpError {
        let text = format!(
            "index {index} is outside dim {dim} of buffer '{}', which has {size}",
            self.name
        );
        InterpError::new(ErrorKind::Bounds, text)
    }

    #[cold]
    fn linear_index_error(&self, index: i64) -> InterpError {
        let (name, shape) = (&self.name, &self.shape);
        let text = format!("linear index {index} is outside buffer '{name}' of shape {shape:?}");
        InterpError::new(ErrorKind::Bounds, text)
    }

    /// Returns the pointer to the element at a position (an offset from the base of the buffer, in elements). Fails if the
    /// position is out of bounds.
    fn pointer(&self, position: i64) -> Result<*mut u8> {
        if position < self.first || position >= self.end {
            let (name, first, end) = (&self.name, self.first, self.end);
            let text = format!(
                "element offset {position} is outside buffer '{name}', whose elements are at {first}..{end}"
            );
            return Err(InterpError::new(ErrorKind::Bounds, text));
        }
        Ok(self.base.wrapping_offset(position as isize * self.dtype.size() as isize))
    }

    /// Reads the element at a position (an offset from the base of the buffer, in elements).
    pub fn read(&self, position: i64) -> Result<Val> {
        let p = self.pointer(position)?;
        let mut bytes = [0u8; 8];
        // SAFETY: the position is in the span of the tensor's elements, which are in the storage that the view keeps alive; no
        // other code accesses it during the run.
        unsafe { std::ptr::copy_nonoverlapping(p, bytes.as_mut_ptr(), self.dtype.size()) };
        Ok(decode(bytes, self.dtype))
    }

    /// Reads the element at an address that [`View::address`] has returned.
    pub fn read_at(&self, address: i64) -> Result<Val> {
        self.read(self.address_position(address)?)
    }

    /// Writes the element at an address that [`View::address`] has returned.
    pub fn write_at(&self, address: i64, value: &Val) -> Result<()> {
        self.write(self.address_position(address)?, value)
    }

    /// Converts an address that [`View::address`] has returned to a position (an offset from the base of the buffer, in
    /// elements).
    fn address_position(&self, address: i64) -> Result<i64> {
        if self.layout == Layout::Strided { self.linear_position(address) } else { Ok(address) }
    }

    /// Writes the element at a position (an offset from the base of the buffer, in elements).
    pub fn write(&self, position: i64, value: &Val) -> Result<()> {
        let p = self.pointer(position)?;
        if self.read_only {
            let text = format!("buffer '{}' is read-only", self.name);
            return Err(InterpError::type_error(text));
        }
        let bytes = encode(value, self.dtype)?;
        // SAFETY: as for `read`, and the tensor is not read-only.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), p, self.dtype.size()) };
        Ok(())
    }
}

/// Returns the first `N` bytes of an encoded element.
fn prefix<const N: usize>(bytes: [u8; 8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[..N]);
    out
}

/// Decodes the value of an element from its native-endian bytes.
pub(crate) fn decode(b: [u8; 8], dtype: DType) -> Val {
    match dtype {
        DType::Bool => Val::Int(i64::from(b[0] != 0)),
        DType::Int8 => Val::Int((b[0] as i8).into()),
        DType::Int16 => Val::Int(i16::from_ne_bytes(prefix(b)).into()),
        DType::Int32 => Val::Int(i32::from_ne_bytes(prefix(b)).into()),
        DType::Int64 | DType::UInt64 => Val::Int(i64::from_ne_bytes(b)),
        DType::UInt8 => Val::Int(b[0].into()),
        DType::UInt16 => Val::Int(u16::from_ne_bytes(prefix(b)).into()),
        DType::UInt32 => Val::Int(u32::from_ne_bytes(prefix(b)).into()),
        DType::Float16 => Val::Float(f16::from_ne_bytes(prefix(b)).to_f64()),
        DType::BFloat16 => Val::Float(bf16::from_ne_bytes(prefix(b)).to_f64()),
        DType::Float32 => Val::Float(f32::from_ne_bytes(prefix(b)).into()),
        DType::Float64 => Val::Float(f64::from_ne_bytes(b)),
    }
}

/// Encodes the value of an element as native-endian bytes, padded with zeros.
pub(crate) fn encode(value: &Val, dtype: DType) -> Result<[u8; 8]> {
    let mut out = [0; 8];
    let mut put = |bytes: &[u8]| out[..bytes.len()].copy_from_slice(bytes);
    match dtype {
        DType::Float16 => put(&round_to_f16(value.float()?).to_ne_bytes()),
        DType::BFloat16 => put(&round_to_bf16(value.float()?).to_ne_bytes()),
        DType::Float32 => put(&(value.float()? as f32).to_ne_bytes()),
        DType::Float64 => put(&value.float()?.to_ne_bytes()),
        DType::Bool => put(&[u8::from(value.int()? != 0)]),
        _ => match dtype.size() {
            1 => put(&(value.int()? as u8).to_ne_bytes()),
            2 => put(&(value.int()? as u16).to_ne_bytes()),
            4 => put(&(value.int()? as u32).to_ne_bytes()),
            _ => put(&value.int()?.to_ne_bytes()),
        },
    }
    Ok(out)
}

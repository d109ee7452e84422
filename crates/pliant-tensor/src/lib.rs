//! Tensors: element types, aligned storage, strided views and DLPack exchange.
//!
//! A [`Tensor`] is a cheap, shared handle (`Send + Sync`) to a view of a [`Storage`]. The object
//! behind it contains a [`DLTensor`], so compiled code and foreign libraries access the tensor
//! through one stable pointer.

mod budget;
mod dlpack;
mod dtype;
mod element;
mod error;
mod failed;
pub mod gates;
mod layout;
mod narrow;
mod panels;
mod poison;
mod quads;
mod shared;
pub mod shortage;
mod storage;
mod stored;
mod tensor;
mod text;
mod winograd;

pub use budget::{Reserved, held_bytes, memory_limit, on_shortage, set_memory_limit};
pub use dlpack::{
    DL_CPU, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_COPIED,
    DLPACK_FLAG_READ_ONLY, DLPackVersion, DLTensor,
};
pub use dtype::{DType, DTypeKind, ParseDTypeError};
pub use element::Element;
pub use error::TensorError;
pub use failed::Failed;
pub use half::{bf16, f16};
pub use layout::{checked_nbytes, checked_numel, contiguous_strides};
pub use narrow::{bf16_of, f16_of, odd_f64, odd_f64_unsigned};
pub use panels::{is_panel_width, pack_panels, panel_width};
pub use poison::{POISON_WORD, POISONS, poison};
pub use quads::{Quads, pack_quads, quad_panel_width};
pub use shared::{SHARED_FILTERS, may_share_panels, shared_place};
pub use storage::{ALIGNMENT, AlignedBuf, Recycle, Storage};
pub use stored::{pack_bfloat16, pack_bytes, pack_nibbles};
pub use tensor::Tensor;
pub use text::{elements_text, fill_format, shape_text};
pub use winograd::Winograd;

//! Tensors: element types, aligned storage, strided views and DLPack exchange.
//!
//! A [`Tensor`] is a cheap, shared handle (`Send + Sync`) to a view of a [`Storage`]. The object behind the handle contains a
//! [`DLTensor`], so compiled code and foreign libraries access a tensor through one stable pointer.

mod check_failure;
mod dlpack;
mod dtype;
mod element_types;
mod error;
mod float_rounding;
mod grouped_filter_panels;
mod int8_vnni_panels;
mod matmul_panels;
mod memory_limit;
mod memory_poison;
pub mod memory_reserve;
mod quantized_weights;
pub mod rnn_weight_layout;
mod shape_and_strides;
mod storage;
mod tensor;
mod tensor_formatting;
mod winograd_filters;

pub use check_failure::CheckFailure;
pub use dlpack::{
    DL_CPU, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_COPIED,
    DLPACK_FLAG_READ_ONLY, DLPackVersion, DLTensor,
};
pub use dtype::{DType, DTypeKind, ParseDTypeError};
pub use element_types::Element;
pub use error::TensorError;
pub use float_rounding::{
    round_to_bf16, round_to_f16, round_to_odd_f64, round_to_odd_f64_unsigned,
};
pub use grouped_filter_panels::{SHARED_FILTERS, may_share_panels, shared_panel_offset};
pub use half::{bf16, f16};
pub use int8_vnni_panels::{VnniMatrix, pack_vnni, vnni_panel_width};
pub use matmul_panels::{is_panel_width, pack_panels, panel_width};
pub use memory_limit::{Reserved, held_bytes, memory_limit, on_low_memory, set_memory_limit};
pub use memory_poison::{POISON_WORD, POISONS, poison};
pub use quantized_weights::{pack_bfloat16, pack_bytes, pack_nibbles};
pub use shape_and_strides::{checked_nbytes, checked_numel, contiguous_strides};
pub use storage::{ALIGNMENT, AlignedBuf, Recycle, Storage};
pub use tensor::Tensor;
pub use tensor_formatting::{fill_format, format_elements, format_shape};
pub use winograd_filters::Winograd;

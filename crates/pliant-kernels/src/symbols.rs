//! The names of kernels that take a structure, and of epilogues, in one table.
//!
//! They trust the contents of the structure, and no bounds check knows them: code generators can
//! link them, but scripts cannot call them.

/// [`crate::fused::pliant_gemm_fused_f32`].
pub const GEMM_FUSED_F32: &str = "pliant_gemm_fused_f32";
/// [`crate::fused::pliant_gemm_fused_f64`].
pub const GEMM_FUSED_F64: &str = "pliant_gemm_fused_f64";
/// [`crate::epilogue::pliant_epilogue_f32`].
pub const EPILOGUE_F32: &str = "pliant_epilogue_f32";
/// [`crate::attention::pliant_attention_f32`].
pub const ATTENTION_F32: &str = "pliant_attention_f32";
/// [`crate::convolution::pliant_convolution_f32`].
pub const CONVOLUTION_F32: &str = "pliant_convolution_f32";
/// [`crate::quantized::pliant_gemm_int8`].
pub const GEMM_INT8: &str = "pliant_gemm_int8";
/// [`crate::quantized::pliant_epilogue_int32`].
pub const EPILOGUE_INT32: &str = "pliant_epilogue_int32";

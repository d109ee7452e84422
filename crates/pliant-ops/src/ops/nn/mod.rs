//! Operators of neural networks, one file per family.

pub mod activation;
pub mod attention;
mod attention_gradient;
pub mod batch_norm;
pub mod conv;
mod conv_gradients;
pub mod conv_transpose;
pub mod group_norm;
pub mod layer_norm;
pub mod loss;
mod norm_gradients;
pub mod pad;
pub mod pixel_shuffle;
pub mod pool;
pub(crate) mod sliding_window;
pub mod softmax;
pub mod tensor_layouts;

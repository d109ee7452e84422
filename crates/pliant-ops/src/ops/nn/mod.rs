//! Operators of neural networks, one file per family.

pub mod activation;
pub mod attention;
pub mod batch_norm;
pub mod conv;
pub mod conv_transpose;
pub mod group_norm;
pub mod layout;
pub mod loss;
pub mod norm;
pub mod pad;
pub mod pool;
pub mod shuffle;
pub mod softmax;
pub(crate) mod window;

//! Operators for object detection: box decoding, overlaps of boxes, and pooling of image regions.

pub mod box_decoding;
mod kept_boxes;
pub mod nms;
pub mod roi_pooling;

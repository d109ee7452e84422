//! Operators for object detection: box decoding, overlaps of boxes, and pooling of image regions.

pub mod box_decoding;
pub mod nms;
pub mod roi_pooling;

use crate::te::{self, Expr};

/// The overlap (IoU) of two boxes: the area of their intersection divided by the area of their union. The two corners of a box may
/// be in any order.
fn overlap(a: &[Expr; 4], b: &[Expr; 4]) -> Expr {
    let zero = te::const_of(0.0, a[0].ty().dtype);
    let side =
        |s: &[Expr; 4], k: usize| (te::minimum(&s[k], &s[k + 2]), te::maximum(&s[k], &s[k + 2]));
    let (mut intersection, mut area_a, mut area_b) = (None, None, None);
    let multiply_into = |acc: &mut Option<Expr>, e: Expr| {
        *acc = Some(match acc.take() {
            Some(a) => a * e,
            None => e,
        });
    };
    for k in 0..2 {
        let ((a0, a1), (b0, b1)) = (side(a, k), side(b, k));
        let shared = te::minimum(&a1, &b1) - te::maximum(&a0, &b0);
        multiply_into(&mut intersection, te::maximum(&shared, &zero));
        multiply_into(&mut area_a, a1 - a0);
        multiply_into(&mut area_b, b1 - b0);
    }
    let [intersection, area_a, area_b] =
        [intersection, area_a, area_b].map(|e| e.unwrap_or_else(|| zero.clone()));
    let union = area_a + area_b - &intersection;
    te::select(&te::gt(&union, &zero), &(intersection / &union), &zero)
}

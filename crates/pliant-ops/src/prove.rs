//! What can be proved about sizes while types are inferred. All symbols of shapes are at least 0.

use pliant_ir::relax::Function;
use pliant_sym::{Sym, SymKind};

/// Whether two sizes are equal: yes, no, or unknown (`None`).
pub fn equal(func: &mut Function, a: Sym, b: Sym) -> Option<bool> {
    if a == b {
        return Some(true);
    }
    let diff = func.syms.sub(a, b);
    match sign(func, diff)? {
        Sign::Zero => Some(true),
        Sign::Positive | Sign::Negative => Some(false),
    }
}

/// Whether `a <= b`: yes, no, or unknown.
pub fn at_most(func: &mut Function, a: Sym, b: Sym) -> Option<bool> {
    let diff = func.syms.sub(a, b);
    match sign(func, diff)? {
        Sign::Zero | Sign::Negative => Some(true),
        Sign::Positive => Some(false),
    }
}

/// Whether `a % b == 0`: yes, no, or unknown.
pub fn divides(func: &mut Function, b: Sym, a: Sym) -> Option<bool> {
    let rest = func.syms.floormod(a, b);
    func.syms.as_int(rest).map(|r| r == 0)
}

enum Sign {
    Zero,
    Positive,
    Negative,
}

/// The sign of a linear term whose variables are sizes.
fn sign(func: &Function, sym: Sym) -> Option<Sign> {
    match func.syms.kind(sym) {
        SymKind::Int(0) => Some(Sign::Zero),
        SymKind::Int(v) => Some(if v > 0 { Sign::Positive } else { Sign::Negative }),
        SymKind::Sum { terms, constant } => {
            let size = |s: Sym| match func.syms.kind(s) {
                SymKind::Var(_) => true,
                SymKind::Product(list) => list.iter().all(|&f| func.syms.as_var(f).is_some()),
                _ => false,
            };
            if !terms.iter().all(|t| size(t.1)) {
                return None;
            }
            if constant > 0 && terms.iter().all(|t| t.0 > 0) {
                Some(Sign::Positive)
            } else if constant < 0 && terms.iter().all(|t| t.0 < 0) {
                Some(Sign::Negative)
            } else {
                None
            }
        }
        _ => None,
    }
}

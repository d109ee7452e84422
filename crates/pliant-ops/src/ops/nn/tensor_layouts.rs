//! Layouts: the meaning of a tensor's dims, as letters (`NCHW`, `OIHW`), and blocked layouts (`NCHW16c`).

use pliant_ir::op::InferError;
use pliant_ir::{Sym, SymArena};

use crate::te::{self, Expr};
use crate::type_inference::{InferCtx, TensorTy};

/// The unsupported features of all operators that have a layout attribute, for their documentation.
pub const LAYOUT_LIMITS: &str = "layouts that block spatial dims, such as `NCHW4h`";

/// The letters of the spatial dims of `n`-dimensional images.
pub fn spatial(n: usize) -> &'static str {
    &"DHW"[3 - n..]
}

/// One dim of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dim {
    /// The upper-case letter.
    letter: char,
    /// The size of an inner dim (16 in `16c`); `None` for an outer dim.
    block: Option<usize>,
}

/// The order of a tensor's dims. A dim is one letter. It may be blocked into an outer dim, the upper-case letter, and an inner dim,
/// a size and the lower-case letter: in `NCHW16c`, element `i` of `C` is element `i % 16` of block `i // 16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    dims: Vec<Dim>,
    /// The number of spatial dims.
    num_spatial: usize,
}

impl Layout {
    /// Reads a layout from an attribute. The layout consists of the letters in `first` (such as `NC`) and the spatial letters, in
    /// any order. The dims in `first` may be blocked.
    ///
    /// # Errors
    /// If the layout does not consist of these letters.
    pub fn read(
        ctx: &InferCtx<'_>,
        key: &str,
        first: &str,
        n: usize,
    ) -> Result<Layout, InferError> {
        let value = ctx.attr(key);
        let actual = value.as_str().unwrap_or_default();
        let wanted = format!("{first}{}", spatial(n));
        parse_dims(actual)
            .map(|dims| Layout { dims, num_spatial: n })
            .filter(|layout| layout.has_letters(&wanted, first))
            .ok_or_else(|| {
                ctx.error(format!(
                    "{key} {actual:?} is not supported: it must have the letters of {wanted:?}, each once; {} may be blocked, \
                     such as {wanted}8{}",
                    first.chars().map(String::from).collect::<Vec<_>>().join(" and "),
                    first.to_lowercase().chars().last().unwrap_or_default()
                ))
            })
    }

    /// Whether the outer dims have each of the letters `wanted` once, and the inner dims have different letters of `blocked`.
    fn has_letters(&self, wanted: &str, blocked: &str) -> bool {
        let count = |letter: char, inner: bool| {
            let dims = self.dims.iter();
            dims.filter(|d| d.letter == letter && d.block.is_some() == inner).count()
        };
        self.dims.iter().all(|d| wanted.contains(d.letter))
            && wanted
                .chars()
                .all(|c| count(c, false) == 1 && count(c, true) <= usize::from(blocked.contains(c)))
    }

    /// The layout of the result: the attribute `out_layout`, or the layout of the data by default.
    ///
    /// # Errors
    /// The same errors as [`read`](Self::read).
    pub fn of_output(
        ctx: &InferCtx<'_>,
        data: &Layout,
        first: &str,
        n: usize,
    ) -> Result<Layout, InferError> {
        let value = ctx.attr("out_layout");
        if value.is_none() || value.as_str() == Some("") {
            return Ok(data.clone());
        }
        Layout::read(ctx, "out_layout", first, n)
    }

    /// The number of dims.
    pub fn ndim(&self) -> usize {
        self.dims.len()
    }

    /// Whether a dim is blocked.
    pub fn is_blocked(&self) -> bool {
        self.dims.iter().any(|d| d.block.is_some())
    }

    /// The index of the dim with this letter; of the outer dim if it is blocked.
    pub fn axis(&self, letter: char) -> usize {
        self.dims.iter().position(|d| d.letter == letter && d.block.is_none()).unwrap_or(0)
    }

    /// The index and the size of the inner dim with this letter, if the dim is blocked.
    fn inner(&self, letter: char) -> Option<(usize, usize)> {
        let mut dims = self.dims.iter().enumerate();
        dims.find_map(|(i, d)| d.block.filter(|_| d.letter == letter).map(|size| (i, size)))
    }

    /// The indices of the spatial dims: depth, height, width.
    pub fn spatial_axes(&self) -> Vec<usize> {
        spatial(self.num_spatial).chars().map(|c| self.axis(c)).collect()
    }

    /// The letter of the dim that is neither spatial nor `first`.
    fn second(&self, first: char) -> char {
        let spatial = spatial(self.num_spatial);
        let mut letters = self.dims.iter().map(|d| d.letter);
        letters.find(|&c| c != first && !spatial.contains(c)).unwrap_or(first)
    }

    /// The size of the dim with this letter, of a tensor with the dims `dims`.
    pub fn size_of(&self, syms: &mut SymArena, dims: &[Sym], letter: char) -> Sym {
        let outer = dims[self.axis(letter)];
        match self.inner(letter) {
            Some((_, block)) => {
                let block = syms.int(block as i64);
                syms.mul(outer, block)
            }
            None => outer,
        }
    }

    /// Sets the size of the dim with this letter. A blocked dim has the whole blocks of the size.
    pub fn set_size(&self, syms: &mut SymArena, dims: &mut [Sym], letter: char, size: Sym) {
        dims[self.axis(letter)] = match self.inner(letter) {
            Some((inner, block)) => {
                dims[inner] = syms.int(block as i64);
                syms.floordiv(size, dims[inner])
            }
            None => size,
        };
    }

    /// The dims of a tensor: `first` is the size of the dim with the letter `a`, `spatial` are those of the spatial dims, and
    /// `second` is that of the remaining dim.
    pub fn dims(
        &self,
        syms: &mut SymArena,
        (a, first): (char, Sym),
        second: Sym,
        spatial: &[Sym],
    ) -> Vec<Sym> {
        let mut dims = vec![second; self.ndim()];
        for (&axis, &size) in self.spatial_axes().iter().zip(spatial) {
            dims[axis] = size;
        }
        self.set_size(syms, &mut dims, a, first);
        self.set_size(syms, &mut dims, self.second(a), second);
        dims
    }

    /// The index along the dim with this letter of the element with the indices `indices`.
    pub fn index_of(&self, indices: &[Expr], letter: char) -> Expr {
        let outer = indices[self.axis(letter)].clone();
        match self.inner(letter) {
            Some((inner, block)) => outer * te::int(block as i64) + &indices[inner],
            None => outer,
        }
    }

    /// The indices of an element: `first` is the index along the dim with the letter `a`, `spatial` are those along the spatial
    /// dims, and `second` is that along the remaining dim.
    pub fn indices(
        &self,
        (a, first): (char, Expr),
        second: Expr,
        spatial_indices: &[Expr],
    ) -> Vec<Expr> {
        let letters = spatial(self.num_spatial);
        let index = |d: &Dim| match letters.find(d.letter) {
            Some(k) => spatial_indices[k].clone(),
            None => {
                let index = if d.letter == a { &first } else { &second };
                match (d.block, self.inner(d.letter)) {
                    (Some(block), _) => te::floormod(index, &te::int(block as i64)),
                    (None, Some((_, block))) => te::floordiv(index, &te::int(block as i64)),
                    (None, None) => index.clone(),
                }
            }
        };
        self.dims.iter().map(index).collect()
    }

    /// Checks that operand `i` has the rank of the layout, and that the sizes of its inner dims may be those of the layout.
    ///
    /// # Errors
    /// If the rank is known to be different, or the size of an inner dim is.
    pub fn check(&self, ctx: &InferCtx<'_>, i: usize, t: &TensorTy) -> Result<(), InferError> {
        let name = ctx.operand_name(i);
        if t.ndim.is_some_and(|ndim| ndim != self.ndim()) {
            return Err(ctx.error(format!(
                "{name} must have {} dims ({self}), but is {ty}",
                self.ndim(),
                ty = ctx.operand_type_text(i)
            )));
        }
        for (d, &size) in self.dims.iter().zip(t.dims.iter().flatten()) {
            let Some(block) = d.block else { continue };
            if ctx.func.syms.as_int(size).is_some_and(|size| size != block as i64) {
                return Err(ctx.error(format!(
                    "the dim {block}{} of {name} ({self}) must have size {block}: {name} is {ty}",
                    d.letter.to_lowercase(),
                    ty = ctx.operand_type_text(i)
                )));
            }
        }
        Ok(())
    }

    /// The spatial dims among `dims`, which are in the order of the layout.
    pub fn spatial_of(&self, dims: &[Sym]) -> Vec<Sym> {
        self.spatial_axes().iter().map(|&a| dims[a]).collect()
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.dims.iter().try_for_each(|d| match d.block {
            Some(block) => write!(f, "{block}{}", d.letter.to_lowercase()),
            None => write!(f, "{}", d.letter),
        })
    }
}

/// The dims of a layout; `None` if the text is not a layout.
fn parse_dims(text: &str) -> Option<Vec<Dim>> {
    let (mut dims, mut digits) = (Vec::new(), String::new());
    for c in text.chars() {
        match c {
            '0'..='9' => digits.push(c),
            'A'..='Z' if digits.is_empty() => dims.push(Dim { letter: c, block: None }),
            'a'..='z' => {
                let block = std::mem::take(&mut digits).parse::<u16>().ok().filter(|&b| b > 0)?;
                dims.push(Dim { letter: c.to_ascii_uppercase(), block: Some(block.into()) });
            }
            _ => return None,
        }
    }
    digits.is_empty().then_some(dims)
}

//! The fuzz target for kernel declarations (`pliant_kernel_api`): calls kernels with valid and invalid operands and attributes.
//! Each operand has an allocation of exactly its size, so that AddressSanitizer or the allocator detects accesses outside.
//!
//! An input is a line of two integers: a random seed, which determines a valid call, and the number of changes to it.

use std::sync::atomic::AtomicBool;

use pliant_exec::abi::{
    KernelRuntime, PACKED_ABSENT, PACKED_INT, PACKED_STRIDED, PACKED_VIEW, PackedWord, STATUS_OK,
};
use pliant_kernel_api::{
    AttrType, Call, KERNELS, Kernel, MAX_RANK, Operand, Order, Role, Slot, View,
};
use pliant_kernels::entry_of;
use pliant_tensor::DType;

use super::random_numbers::Rng;

/// Maximum size of an operand in bytes.
const MAX_BYTES: i64 = 1 << 20;
/// The value of the bytes of outputs before a call. Since no element of a valid result consists of
/// such bytes, remaining ones are unwritten elements.
const UNWRITTEN_BYTE: u8 = 0xf5;

/// A tensor operand of a call under construction.
#[derive(Clone, Debug)]
struct Tensor {
    dtype: DType,
    dims: Vec<i64>,
    strides: Vec<i64>,
    /// If the tensor is a view, the number of elements of its buffer and the offset of the view;
    /// `None` if the tensor is a whole buffer.
    view: Option<(i64, i64)>,
}

impl Tensor {
    fn row_major(dtype: DType, dims: Vec<i64>) -> Tensor {
        let mut strides = vec![0; dims.len()];
        let mut step = 1i64;
        for (stride, &dim) in strides.iter_mut().zip(&dims).rev() {
            *stride = step;
            step = step.saturating_mul(dim.max(1));
        }
        Tensor { dtype, dims, strides, view: None }
    }

    /// Returns the number of buffer elements from the first to the last element of the tensor;
    /// `None` for negative sizes and on overflow.
    fn span(&self) -> Option<i64> {
        if self.dims.contains(&0) {
            return Some(0);
        }
        let mut last = 0i64;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides) {
            if dim < 0 || stride < 0 {
                return None;
            }
            last = last.checked_add((dim - 1).checked_mul(stride)?)?;
        }
        last.checked_add(1)
    }

    /// Returns the size in bytes of the tensor's buffer; `None` if it exceeds [`MAX_BYTES`] or a
    /// dim is negative.
    fn bytes(&self) -> Option<usize> {
        let elements = self.view.map(|view| view.0).or_else(|| self.span())?;
        let bytes = elements.checked_mul(self.dtype.size() as i64)?;
        usize::try_from(bytes).ok().filter(|_| bytes <= MAX_BYTES)
    }

    /// Turns the tensor into a view of a larger buffer, with the same dims and random strides that the order allows.
    fn into_view(mut self, order: Order, rng: &mut Rng) -> Tensor {
        if order != Order::RowMajor && rng.one_in(2) {
            // Rows have gaps between them, and the order of the leading dims is reversed.
            let mut step = self.dims.last().copied().unwrap_or(1) + rng.between(0, 2);
            let rows = self.dims.len().saturating_sub(1);
            for (stride, &dim) in self.strides[..rows].iter_mut().zip(&self.dims) {
                *stride = step;
                step = step.saturating_mul(dim.max(1));
            }
        }
        if order == Order::Strided && !self.strides.is_empty() {
            let index = rng.below(self.strides.len());
            self.strides[index] = 0;
        }
        let offset = rng.between(0, 3);
        self.view = self.span().map(|span| (span + offset + rng.between(0, 1), offset));
        self
    }

    /// Returns the view that the kernel receives if the buffer is at the address `data`; `None` if
    /// the kernel must reject the tensor.
    fn view_at(&self, data: *mut u8) -> Option<View> {
        match self.view {
            Some((elements, offset)) => {
                let buffer = (data, self.dtype, elements);
                View::within("x", buffer, offset, &self.dims, &self.strides).ok()
            }
            None => View::new(data, self.dtype, &self.dims, Some(&self.strides)),
        }
    }

    /// Returns the kind and the words that describe the tensor in a call, in the form of
    /// [`PACKED_STRIDED`] or [`PACKED_VIEW`].
    fn packed_words(&self, data: *mut u8) -> (u64, Vec<i64>) {
        let (code, bits) = self.dtype.to_dlpack();
        let mut words = vec![data as i64, i64::from(u16::from_le_bytes([code, bits]))];
        let kind = match self.view {
            Some((elements, offset)) => {
                words.extend([elements, offset]);
                PACKED_VIEW
            }
            None => PACKED_STRIDED,
        };
        words.extend(self.dims.iter().chain(&self.strides));
        (kind, words)
    }
}

/// The arguments of a kernel call: operands and attribute values in the order of the declaration.
#[derive(Debug)]
struct Arguments {
    kernel: &'static Kernel,
    operands: Vec<Option<Tensor>>,
    numbers: Vec<i64>,
    /// The indices of two operands that share their memory; `None` if no operands share memory.
    alias: Option<(usize, usize)>,
}

/// Maximum number of attempts to generate a valid call.
const ATTEMPTS: usize = 200;

/// Generates a valid call; `None` if all attempts fail.
fn valid_call(rng: &mut Rng) -> Option<Arguments> {
    let kernel = KERNELS[rng.below(KERNELS.len())];
    (0..ATTEMPTS).map(|_| random_arguments(kernel, rng)).find(Arguments::is_accepted)
}

/// Generates random arguments with attributes in range and consistent sizes. They may violate other constraints of the declaration.
fn random_arguments(kernel: &'static Kernel, rng: &mut Rng) -> Arguments {
    let mut numbers = Vec::new();
    for slot in kernel.slots() {
        let Slot::Number(attr, _) = slot else { continue };
        numbers.push(match attr.ty {
            AttrType::Int(low, high) | AttrType::Ints { range: (low, high), .. } => {
                rng.between(low, high.min(low.saturating_add(4)))
            }
            AttrType::Bool => rng.between(0, 1),
            AttrType::Choice(list) => rng.between(0, list.len() as i64 - 1),
            AttrType::Float => rng.pick(&[0.0f64, 1.0, 0.5, -2.0]).to_bits() as i64,
        });
    }
    let mut call = Call::new(kernel);
    numbers.iter().enumerate().for_each(|(i, &n)| call.set_number(i, n));
    let mut sizes: Vec<(&str, i64)> = Vec::new();
    let mut size = |name: &'static str, rng: &mut Rng| match sizes.iter().find(|s| s.0 == name) {
        Some(&(_, size)) => size,
        None => {
            let size = *rng.pick(&[0, 1, 1, 2, 2, 3, 5, 16, 17, 32]);
            sizes.push((name, size));
            size
        }
    };
    let mut operands = Vec::new();
    // Operands with the same list of data types get the same one.
    let choice = rng.below(16);
    for operand in kernel.operands {
        let dtypes: Vec<DType> = operand.dtypes().collect();
        let dtype = dtypes[choice % dtypes.len()];
        let names = call.dims(operand).iter().map(|name| name.trim_start_matches('*'));
        let dims = names.map(|name| size(name, rng)).collect();
        let present = !operand.optional || !rng.one_in(3);
        operands.push(present.then(|| Tensor::row_major(dtype, dims)));
    }
    let mut arguments = Arguments { kernel, operands, numbers, alias: None };
    arguments.set_derived_dims();
    for (tensor, operand) in arguments.operands.iter_mut().zip(kernel.operands) {
        if rng.one_in(3) {
            *tensor = tensor.take().map(|t| t.into_view(operand.order, rng));
        }
    }
    arguments
}

impl Arguments {
    fn is_accepted(&self) -> bool {
        let mut call = Call::new(self.kernel);
        let mut address = 0u64;
        self.set_arguments(&mut call, &mut |t| {
            address += 1 << 32;
            t.view_at(address as *mut u8)
        });
        call.check().is_ok()
    }

    /// Computes the dims that the declaration derives from other sizes.
    fn set_derived_dims(&mut self) {
        let mut call = Call::new(self.kernel);
        self.set_arguments(&mut call, &mut |t| {
            View::new(std::ptr::null_mut(), t.dtype, &t.dims, None)
        });
        let sizes = call.named_sizes();
        for (tensor, operand) in self.operands.iter_mut().zip(self.kernel.operands) {
            let Some(tensor) = tensor else { continue };
            let names = call.dims(operand);
            let derived = |name: &str| {
                let name = name.trim_start_matches('*');
                self.kernel.derived.iter().find(|d| d.0 == name)
            };
            let mut dims = tensor.dims.clone();
            for (dim, name) in dims.iter_mut().zip(names) {
                if let Some(size) = derived(name).and_then(|d| (d.1)(&call, &sizes)) {
                    *dim = size;
                }
            }
            *tensor = Tensor::row_major(tensor.dtype, dims);
        }
    }

    fn set_arguments(&self, call: &mut Call, view: &mut dyn FnMut(&Tensor) -> Option<View>) {
        for (i, operand) in self.operands.iter().enumerate() {
            call.set_operand(i, operand.as_ref().and_then(&mut *view));
        }
        self.numbers.iter().enumerate().for_each(|(i, &n)| call.set_number(i, n));
    }

    /// Changes one random argument, which usually makes the call invalid.
    fn corrupt(&mut self, rng: &mut Rng) {
        let count = self.operands.len();
        let index = rng.below(count + self.numbers.len());
        if index >= count {
            let number = &mut self.numbers[index - count];
            *number = rng.boundary_value(*number);
            return;
        }
        let Some(tensor) = &mut self.operands[index] else {
            let operand: &Operand = &self.kernel.operands[index];
            self.operands[index] = Some(Tensor::row_major(operand.dtype, vec![1, 2]));
            return;
        };
        let dim = rng.below(tensor.dims.len().max(1));
        match rng.below(8) {
            0 => self.operands[index] = None,
            1 => {
                tensor.dtype = *rng.pick(&[DType::Float64, DType::Int8, DType::Bool, DType::Int64])
            }
            2 if tensor.dims.len() < MAX_RANK + 1 => {
                tensor.dims.insert(dim, 1);
                tensor.strides.insert(dim, 1);
            }
            3 if !tensor.dims.is_empty() => {
                tensor.dims.remove(dim);
                tensor.strides.remove(dim);
            }
            4 if !tensor.dims.is_empty() => tensor.dims[dim] = rng.boundary_value(tensor.dims[dim]),
            5 if !tensor.dims.is_empty() => {
                tensor.strides[dim] = rng.boundary_value(tensor.strides[dim])
            }
            6 if tensor.view.is_some() => {
                tensor.view =
                    tensor.view.map(|(elements, offset)| (elements, rng.boundary_value(offset)));
            }
            _ => self.alias = Some((index, rng.below(count))),
        }
    }

    /// Allocates the memory of each operand, and fills the memory of outputs with [`UNWRITTEN_BYTE`]. Returns `None` for operands
    /// that are too large, since the call must fail before it accesses them.
    fn allocate(&self) -> Vec<Option<Vec<u8>>> {
        let operands = self.kernel.operands.iter().zip(&self.operands);
        operands
            .map(|(operand, tensor)| {
                let fill = if operand.role == Role::Output { UNWRITTEN_BYTE } else { 0 };
                Some(vec![fill; tensor.as_ref()?.bytes()?])
            })
            .collect()
    }

    /// Whether the checks of the declaration accept the call.
    fn passes_checks(&self, addresses: &[*mut u8]) -> bool {
        let mut call = Call::new(self.kernel);
        for (i, tensor) in self.operands.iter().enumerate() {
            let Some(tensor) = tensor else { continue };
            match tensor.view_at(addresses[i]) {
                Some(view) => call.set_operand(i, Some(view)),
                None => return false,
            }
        }
        self.numbers.iter().enumerate().for_each(|(i, &n)| call.set_number(i, n));
        call.check().is_ok()
    }

    /// Calls the kernel. Returns whether it succeeds.
    ///
    /// # Panics
    /// If the kernel accepts arguments that the declaration rejects, or leaves an element of an output unwritten.
    fn run(&self) -> bool {
        let entry = entry_of(self.kernel.name).expect("every declared kernel has an entry");
        let mut buffers = self.allocate();
        let address =
            |bytes: &mut Option<Vec<u8>>| bytes.as_mut().map_or(64 as *mut u8, |b| b.as_mut_ptr());
        let mut addresses: Vec<*mut u8> = buffers.iter_mut().map(address).collect();
        if let Some((a, b)) = self.alias {
            addresses[a] = addresses[b];
        }
        let accepted = self.passes_checks(&addresses);
        let is_allocated = |i: usize| self.operands[i].is_none() || buffers[i].is_some();
        let is_aliased = self.alias.is_some_and(|(a, b)| a != b);
        if accepted && (is_aliased || !(0..buffers.len()).all(is_allocated)) {
            return false;
        }
        let packed_words: Vec<Option<(u64, Vec<i64>)>> = {
            let operands = self.operands.iter().zip(&addresses);
            operands.map(|(t, &data)| t.as_ref().map(|t| t.packed_words(data))).collect()
        };
        let ranks = self.operands.iter().map(|t| t.as_ref().map_or(0, |t| t.dims.len() as u64));
        let operand = |(words, len): (&Option<(u64, Vec<i64>)>, u64)| match words {
            Some((kind, words)) => PackedWord { kind: *kind, word: words.as_ptr() as u64, len },
            None => PackedWord { kind: PACKED_ABSENT, word: 0, len: 0 },
        };
        let number = |&n: &i64| PackedWord { kind: PACKED_INT, word: n as u64, len: 0 };
        let operands = packed_words.iter().zip(ranks).map(operand);
        let words: Vec<PackedWord> = operands.chain(self.numbers.iter().map(number)).collect();
        static NEVER: AtomicBool = AtomicBool::new(false);
        let runtime = KernelRuntime { interrupt: &raw const NEVER, ..KernelRuntime::serial() };
        // SAFETY: the words describe memory of these sizes, or the kernel's checks must reject them.
        let status = unsafe { entry(&raw const runtime, words.as_ptr(), words.len() as u64) };
        assert!(accepted || status != STATUS_OK, "accepted: {self:?}");
        if status == STATUS_OK {
            self.check_written(&buffers);
        }
        status == STATUS_OK
    }

    fn check_written(&self, buffers: &[Option<Vec<u8>>]) {
        for ((operand, tensor), bytes) in
            self.kernel.operands.iter().zip(&self.operands).zip(buffers)
        {
            let (Some(t), Some(bytes)) = (tensor, bytes) else { continue };
            let row_major = t.strides == Tensor::row_major(t.dtype, t.dims.clone()).strides;
            if operand.role == Role::Output && row_major {
                let first = t.view.map_or(0, |(_, offset)| offset as usize);
                let count = t.span().unwrap_or(0) as usize;
                let mut elements = bytes.chunks_exact(t.dtype.size()).skip(first).take(count);
                let unwritten = elements.any(|e| e.iter().all(|&b| b == UNWRITTEN_BYTE));
                assert!(!unwritten, "operand {} is not written: {self:?}", operand.name);
            }
        }
    }
}

/// Makes the kernel call that an input line describes. Returns whether the call succeeds.
pub fn run(input: &[u8]) -> bool {
    let text = std::str::from_utf8(input).unwrap_or_default();
    let mut words = text.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(seed)), Some(Ok(changes))) = (words.next(), words.next()) else { return false };
    let mut rng = Rng::new(seed);
    let Some(mut arguments) = valid_call(&mut rng) else { return false };
    (0..changes.min(6)).for_each(|_| arguments.corrupt(&mut rng));
    arguments.run()
}

/// Generates an input line with another random call; the old input is ignored.
pub fn mutate(_: &[u8], _: &[u8], rng: &mut Rng) -> Vec<u8> {
    let changes = if rng.one_in(3) { 0 } else { 1 + rng.below(4) };
    format!("{} {changes}", rng.next()).into_bytes()
}

/// Generates input lines with valid and changed calls.
pub fn seeds() -> Vec<Vec<u8>> {
    (0..64).map(|seed| format!("{seed} {}", seed % 4).into_bytes()).collect()
}

//! Convolution as the library's kernel does it, in plain form (`pliant_kernels::convolution`).

use pliant_ir::DType;
use pliant_tensor::{Winograd, is_panel_width, may_share_panels, shared_place};

use super::Loops;
use super::attend::Operand;
use super::scalar::{Val, malformed, round};
use crate::error::Result;

/// Three numbers, one for each dim.
pub(super) fn three(args: &[Val], at: usize) -> Result<[i64; 3]> {
    Ok([args[at].int()?, args[at + 1].int()?, args[at + 2].int()?])
}

/// All places of a size.
pub(super) fn places(size: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    (0..size[0])
        .flat_map(move |z| (0..size[1]).flat_map(move |y| (0..size[2]).map(move |x| [z, y, x])))
}

/// What is computed of each sum, by its number (`pliant_kernels::epilogue::Activation`).
pub(super) fn activated(number: i64, x: f64, (low, high): (f64, f64)) -> Result<f64> {
    match number {
        0 => Ok(x),
        _ if x.is_nan() => Ok(x),
        1 => Ok(x.max(0.0)),
        2 => Ok(x.max(low).min(high)),
        _ => Err(malformed("an activation that kernels are not followed by")),
    }
}

/// How kernels were turned, by the number that the kernel takes (`pliant_kernels::convolution`).
fn turned(number: i64) -> Result<Option<Winograd>> {
    let mut forms = [Winograd::Two, Winograd::Four].into_iter();
    match forms.find(|form| form.side() as i64 - 3 == number) {
        None if number != 0 => {
            Err(malformed("a convolution whose kernels were turned in a way that is none"))
        }
        form => Ok(form),
    }
}

/// A convolution's numbers.
struct Shape {
    batch: i64,
    channels: i64,
    filters: i64,
    groups: i64,
    input: [i64; 3],
    output: [i64; 3],
    kernel: [i64; 3],
    stride: [i64; 3],
    dilation: [i64; 3],
    before: [i64; 3],
    width: i64,
    /// How kernels of 3 x 3 were turned for Winograd's algorithm, where they were.
    turned: Option<Winograd>,
}

impl Shape {
    fn of(args: &[Val]) -> Result<Shape> {
        let s = Shape {
            batch: args[0].int()?,
            channels: args[1].int()?,
            filters: args[2].int()?,
            groups: args[3].int()?,
            input: three(args, 4)?,
            output: three(args, 7)?,
            kernel: three(args, 10)?,
            stride: three(args, 13)?,
            dilation: three(args, 16)?,
            before: three(args, 19)?,
            width: args[29].int()?,
            turned: turned(args[45].int()?)?,
        };
        let all = [s.channels, s.filters, s.width].iter().all(|&n| n >= 0);
        let even = all && s.groups > 0 && s.channels % s.groups == 0 && s.filters % s.groups == 0;
        let packed = |s: &Shape| {
            s.is_depthwise()
                || s.shares_panels()
                || is_panel_width(s.width as usize, DType::Float32)
        };
        let sound = even && s.kernel.iter().all(|&k| k > 0) && packed(&s);
        if !sound || s.turned.is_some() && !s.may_be_turned() {
            return Err(malformed("a convolution whose sizes make no sense"));
        }
        Ok(s)
    }

    /// Whether the kernel takes kernels that were turned.
    fn may_be_turned(&self) -> bool {
        let ones = self.stride == [1; 3] && self.dilation == [1; 3];
        ones && self.kernel == [1, 3, 3] && self.groups == 1 && self.input[0] == 1
    }

    /// The rows of a panel and the factors whose sum of products is the weight of a tap: of kernels that were turned, the first and
    /// the last number of a line are those of the kernel, and the second and the third differ by what is between, but for factors.
    fn rows(&self, tap: i64) -> Vec<(i64, f64)> {
        let Some(form) = self.turned else { return vec![(tap, 1.0)] };
        let side = form.side() as i64;
        let (first, between) = match form {
            Winograd::Two => (1.0, 1.0),
            Winograd::Four => (4.0, -3.0),
        };
        let line = |at: i64| match at {
            0 => vec![(0, first)],
            1 => vec![(1, between), (2, -between)],
            _ => vec![(side - 1, 1.0)],
        };
        let columns = line(tap % 3);
        let pairs = line(tap / 3).into_iter().flat_map(|(y, a)| {
            columns.iter().map(move |&(x, b)| (side * y + x, a * b)).collect::<Vec<_>>()
        });
        pairs.collect()
    }

    /// Whether each channel has one filter of its own.
    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }

    /// Whether groups share panels of weights, which the columns of a panel say.
    fn shares_panels(&self) -> bool {
        let (channels, filters) = (self.channels / self.groups, self.filters / self.groups);
        let few = may_share_panels(self.groups as usize, channels as usize, filters as usize);
        few && self.width == filters
    }

    /// Where the weight of a tap, a channel of a group and a filter lies.
    fn weight(&self, tap: i64, channel: i64, filter: i64) -> i64 {
        if self.is_depthwise() {
            return tap * self.channels + filter;
        }
        let (channels, filters) = (self.channels / self.groups, self.filters / self.groups);
        if self.shares_panels() {
            let rows = self.kernel.iter().product::<i64>() * channels;
            let (size, row) = ((rows as usize, self.filters as usize), tap * channels + channel);
            return shared_place(size, row as usize, filter as usize) as i64;
        }
        let panels = (filters + self.width - 1) / self.width;
        let numbers = self.turned.map(|form| form.numbers() as i64);
        let taps = numbers.unwrap_or_else(|| self.kernel.iter().product());
        let rows = taps * channels;
        let (group, own) = (filter / filters, filter % filters);
        let panel = group * panels + own / self.width;
        (panel * rows + tap * channels + channel) * self.width + own % self.width
    }
}

impl Loops<'_, '_, '_> {
    /// `pliant_convolve_f32`: sizes, input, weights, results, bias, residual, activation.
    pub(super) fn convolve(&mut self, args: &[Val]) -> Result<Val> {
        if args.len() != 46 {
            return Err(malformed("a convolution takes 46 arguments"));
        }
        let s = Shape::of(args)?;
        let (x, out) = (Operand::new(&args[22..28])?, Operand::new(&args[30..36])?);
        let weights = Operand::new(&args[28..29])?;
        let bias = if args[36].is_true()? { Some(Operand::new(&args[37..38])?) } else { None };
        let residual = if args[38].is_true()? { Some(Operand::new(&args[39..42])?) } else { None };
        let (activation, limits) = (args[42].int()?, (args[43].float()?, args[44].float()?));
        let channels = s.channels / s.groups;
        for b in 0..s.batch {
            for filter in 0..s.filters {
                let first = filter / (s.filters / s.groups).max(1) * channels;
                for (row, at) in (0..).zip(places(s.output)) {
                    let mut sum = 0.0;
                    for (tap, k) in (0..).zip(places(s.kernel)) {
                        self.m.step(channels as u64 + 1)?;
                        let p = [0, 1, 2]
                            .map(|d| at[d] * s.stride[d] + k[d] * s.dilation[d] - s.before[d]);
                        if (0..3).any(|d| p[d] < 0 || p[d] >= s.input[d]) {
                            continue;
                        }
                        let rows = s.rows(tap);
                        for c in 0..channels {
                            let mut w = 0.0;
                            for &(row, sign) in &rows {
                                w += sign * weights.get(&[s.weight(row, c, filter)])?;
                            }
                            sum += x.get(&[b, first + c, p[0], p[1], p[2]])? * w;
                        }
                    }
                    if let Some(bias) = &bias {
                        sum += bias.get(&[filter])?;
                    }
                    if let Some(residual) = &residual {
                        sum += residual.get(&[b, row, filter])?;
                    }
                    let result = round(activated(activation, sum, limits)?, DType::Float32);
                    let to = out.position(&[b, filter, at[0], at[1], at[2]])?;
                    out.view.write_at(to, &Val::Float(result))?;
                }
            }
        }
        Ok(Val::Int(0))
    }
}

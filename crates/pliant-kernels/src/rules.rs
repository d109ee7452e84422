//! The rules by which kernels choose their form from a shape when they run, each with what was measured.
//!
//! A kernel file says how a form works; which of its forms runs, into what blocks it goes and how many pieces threads get stands
//! here. Rows, columns and elements of registers (six rows by 64 columns, 32 rows of a tile register) belong to micro-kernels and
//! stay with them. Two rules say in what form a constant is stored, for all shapes of later runs: `pliant_tensor` has them, whom
//! the compiler asks too, and [`convolution`] names them. Not here, since generated code has them: blocks whose results are
//! finished one by one (`pliant-tir/src/schedule/blocks.rs`).
//!
//! Tables are those of `docs/performance.md`; all was measured on its machine: AVX-512 and AMX, 48 KB of first-level
//! and 2 MB of second-level cache, two threads. Ratios "with one thread" are of builds that differ in the rule, in turns beside
//! other programs, and move by up to a tenth. "Not measured" says that the value stands for the reason beside it alone.
//!
//! | module | owns |
//! |---|---|
//! | [`share`] | pieces of any work for the worker team, and of products by panels |
//! | [`gemm`] | pieces of a batch of products of any strides |
//! | [`packed`] | blocks of products by packed operands |
//! | [`near`] | which rows of A are copied |
//! | [`varying`] | what is packed where both operands vary |
//! | [`tiles`] | tile registers or vectors |
//! | [`quantized`] | products of 8-bit integers |
//! | [`narrow`] | products by constants of fewer bits |
//! | [`attention`] | blocks of rows and keys |
//! | [`convolution`] | tiles, lines, groups and Winograd's blocks |
//! | [`recurrent`] | stretches of steps |
//! | [`transpose`] | tiles and pieces of copies |

/// Pieces for the worker team.
pub mod share {
    /// Multiply-adds of about a microsecond, by which work is told to the team. One thread reaches 78 to 124 thousand where it
    /// comes near the peak ("Products with packed weights") and about this with AVX2; a loop of 1 us gains 1.05 from a second
    /// thread, one of 2 us 1.33, one of 0.5 us loses ("The worker team").
    pub const UNIT: usize = 64 * 1024;
    /// Pieces that work is cut into where there is enough of it: four for each of two threads, so that threads of unlike speed end
    /// together. Not measured for more threads.
    pub const PIECES: usize = 8;
    /// Microseconds of a piece at least, where more pieces than that are made for more threads. Not measured: handing a share over
    /// takes 0.4 us ("The worker team"), which is nothing beside it.
    pub const LONG: usize = 64;
    /// Pieces at most. Not measured: it bounds what many threads may get.
    pub const MAX_PIECES: usize = 256;
    /// Rows of a block at least where rows are cut first: so many share what is read of B. Pieces of 48 rows cost 10 to 15 %.
    pub const LEAST_ROWS: usize = 96;
    /// Rows whose products take the time of reading B, so that fewer count as so many. One to four rows of 1024 x 1024 take 133 to
    /// 135 us with one thread, seven 141 ("Products with packed weights").
    pub const READ_ROWS: usize = 4;

    /// Whether a product is cut by rows first, not by panels: where two blocks have [`LEAST_ROWS`]. Even blocks of rows reach 96
    /// and 97 % with two threads at 256 rows, panels first 95 and 96 at 64 rows ("Products with packed weights").
    pub const fn by_rows(m: usize) -> bool {
        m >= 2 * LEAST_ROWS
    }

    /// Whether panels give two threads as many each, so that rows need not be cut beside them. Not measured apart from few rows of
    /// six panels, which two threads share at 53 to 76 % ("Products with packed weights").
    pub const fn panels_suffice(panels: usize) -> bool {
        panels >= PIECES / 2 && panels.is_multiple_of(2)
    }
}

/// Batches of products of any strides.
pub mod gemm {
    /// Pieces that one product is cut into at most, so that packing B again for each stays cheap: four for each of two threads,
    /// which reach 85 % at 512 cubed, one thread 83 ("Products of two operands that vary"). Not measured for more threads.
    pub const MAX_BLOCKS: usize = 8;
    /// Multiplications between two polls of the interrupt flag: 0.1 seconds at 20 GFLOP/s. Not measured.
    pub const POLL_WORK: usize = 1 << 30;
    /// Products with more work and a larger k than this are split along k first, so that parts keep hundreds of rows and
    /// columns. Not measured.
    pub const DEEP_PART: usize = 8192;

    /// Whether each product of a batch stays whole, since there are enough for all threads: 12 of 128 x 64 x 128, which are cut
    /// too, reach 93 % with two threads ("Products of two operands that vary"); the limit itself was not measured.
    pub const fn stays_whole(batch: usize) -> bool {
        batch >= 2 * MAX_BLOCKS
    }

    /// Whether a product is cut by rows, and not by panels, of which each is then read and packed by one thread: below two panels,
    /// and below four where rows make eight blocks of 96. Not measured.
    pub const fn by_rows(m: usize, n: usize) -> bool {
        n < 128 || (m >= 8 * 96 && n < 256)
    }
}

/// Products by packed operands.
pub mod packed {
    use crate::product::tile::ROWS;

    /// Bytes of a slice of a panel, which all slivers of a block of rows read: two thirds of a first-level cache, 128 rows of k of
    /// 64 columns. Slices of 160 or 192 rows are within 2 % or behind, those of 256 lose 4.
    pub const SLICE: usize = 32 * 1024;
    /// k up to which a block of rows of A stays in the second-level cache; deeper ones are passed over in even parts. Blocks of 512
    /// outside of rows and panels reached 88 % for 96 at 504 x 384 x 384 and 82 for 93 at 252 x 3072 x 768. Against parts of up to
    /// 6144, parts of this take 0.97 of the time at 264 x 384 x 3000 and the same at 1500, with one thread.
    pub const DEEP: usize = 1536;
    /// Rows of a block at most: 132 by [`DEEP`] float32 are 792 KB of 2 MB. Measured together with it, not alone.
    pub const ROW_BLOCK: usize = 22 * ROWS;
    /// Bytes of B from which memory feeds the panels, so that they are fetched ahead: the second-level cache of a core. Fetching
    /// ahead smaller ones too takes 1.23 times as long for 4 x 384 x 384 and nothing for 7 and 16, with one thread. One and two
    /// rows take the time of reading whatever is fetched.
    pub const FED: usize = 2 * 1024 * 1024;
    /// Rows of a single sliver from which it reads ahead of itself where memory feeds it: their products take as long as reading B,
    /// about. Four rows of 3072 x 768 reach 90 % of reading with one thread ("Products with packed weights").
    pub const BUSY_ROWS: usize = 4;
}

/// Copies of rows of A.
pub mod near {
    use crate::product::tile::LINE;

    /// Bytes after which addresses fall into the same set of a first-level cache: 64 sets of a line each.
    const SETS: usize = 64 * LINE;
    /// Panels that read a copy at least. Not measured alone: a copy costs about a pass over the rows.
    const PANELS: usize = 4;
    /// Rows of a copy at least: more than a set has places for, twice. Not measured.
    const FEW: usize = 24;

    /// Whether rows so many bytes apart are copied near each other for so many panels. Copied against in place, beside each other:
    /// 1.05 to 1.14 times as fast at 2048 cubed with one thread and with two, 1.01 to 1.06 at 512 and 1024 x 1024 x 1024; nothing,
    /// and no loss, at 512 x 768 x 3072 and at 24 to 96 rows of 1024 x 1024. Rows that are not a multiple of 4 KB apart are not
    /// copied.
    pub const fn pays(apart: usize, rows: usize, panels: usize) -> bool {
        panels >= PANELS && rows >= FEW && apart != 0 && apart.is_multiple_of(SETS)
    }
}

/// Products of two operands that both vary.
pub mod varying {
    /// Rows of k at once: a scratch panel of 64 columns of float32 has 128 KB then, which the second-level cache keeps beside A,
    /// and so has what slivers read in place again. 512 cubed reaches 83 % so with one thread, 1024 cubed 73 ("Products of two
    /// operands that vary"). All of k at once takes the same time where B is packed for 8 to 64 rows, and in place for 6; in place
    /// it takes 1.2 to 1.4 times as long for 12 and 24 rows and 1.5 to 1.9 for 36 to 64, by 512 columns and k of 1024 and 2048 with
    /// one thread. Other depths: not measured.
    pub const DEPTH: usize = 512;
    /// Rows up to which reading B in place is cheaper than packing it, where its rows are near each other. By 512 columns with one
    /// thread in place takes 0.5 to 0.6 of the time for 6 rows, 0.7 to 0.8 for 24 and 0.9 for 48, at k of 256 to 2048; for 96 0.9
    /// to 1.05, and 1.2 at k of 4096. By 64 columns 0.4 for 6 to 48.
    const NEAR_ROWS: usize = 48;
    /// Bytes between rows of B up to which they are near. With 3 KB between them in place takes 0.9 for 48 rows; with 4 and more,
    /// where each row is in a page of its own, 0.6 to 0.8 for 6 rows, 0.8 to 1.0 for 12, 1.0 for 18, 1.0 to 1.35 for 24 and 1.1 to
    /// 1.6 for 48.
    const NEAR: usize = 3 * 1024;
    /// Rows up to which reading in place is cheaper where they are not.
    const FAR_ROWS: usize = 12;
    /// Rows up to which dot products of rows of A and B where they lie are faster than turning B into panels, where its columns are
    /// contiguous and long. With one thread turning takes 2.1 to 3.5 times as long for four rows at k of 256 to 2048, 1.3 to 1.7
    /// for eight and 1.1 to 1.4 for 16; 0.9 to 1.0 for 24 and 0.8 to 0.9 for 48 but by 64 and 100 columns, where it still takes 1.5
    /// and 1.8.
    pub const DOT_ROWS: usize = 16;
    /// k from which columns are long.
    const LONG: usize = 256;
    /// Rows up to which they are faster where columns are not long: at k of 64 turning takes 0.9 to 1.1 times as long for three and
    /// four rows, and 0.7 for five; at 100 and 128 it takes 1.1 to 1.4 for five, 1.0 to 1.15 for eight and 0.8 for twelve.
    const MIDDLE_ROWS: usize = 4;
    /// Rows up to which they are where columns are short: turning takes 1.0 for two rows at k of 32, 0.8 for three and 0.7 for
    /// four.
    const SHORT_ROWS: usize = 2;
    /// k up to which columns are short.
    const SHORT: usize = 63;
    /// Results up to which the crate `gemm` takes dot products, a rule of its own: more go there in strips of so many. Without
    /// strips it takes 3.4 times as long as turning for three rows by 1024 x 1024, and 2 to 3 times for two by 2048 x 512 and 3072
    /// x 768.
    pub const DOTS: usize = 16 * 16;

    /// Whether whole vectors of B are read where they lie, for so many rows of A and bytes between rows of B, if its rows are
    /// contiguous.
    pub const fn is_in_place(m: usize, apart: usize) -> bool {
        m <= if apart <= NEAR { NEAR_ROWS } else { FAR_ROWS }
    }

    /// Whether B is turned into panels where its rows are not contiguous. Not measured with float64, nor with other instructions
    /// than AVX-512.
    pub const fn turns(m: usize, k: usize) -> bool {
        m > match k {
            0..=SHORT => SHORT_ROWS,
            LONG.. => DOT_ROWS,
            _ => MIDDLE_ROWS,
        }
    }
}

/// Tile registers.
pub mod tiles {
    /// Rows up to which products by fewer bits read what is stored in place, and tile registers take none by bfloat16, since they
    /// read as much of B for one row as for 16. By 1024 x 1024 with one thread, tile registers take 1.2 times as long as vectors
    /// for one row of bfloat16, 1.0 for two and 0.63 for four, for which A would be rounded too; in place takes 2.1 for five. By 8
    /// and 4 bits, slices as float32 take 1.7 and 1.9 for one row and 1.0 for four; in place takes 1.2 for five and 1.3 for eight.
    pub const FEW_ROWS: usize = 4;
    /// Rows up to which they take none of bytes. With one thread, of 384 x 384 and more, they take 1.1 to 1.7 times as long as
    /// vectors for one row, 0.9 to 1.3 for two, 0.8 to 1.2 for three, 0.64 to 0.97 for four (1.06 and 1.17 in two of three runs by
    /// 3072 x 768 and 768 x 3072, which memory feeds) and 0.55 to 0.94 for five.
    const FEW_BYTE_ROWS: usize = 3;
    /// Rows whose products take vectors as long as tile registers take to read B, about.
    const READ_ROWS: usize = 2;
    /// Products of rows beyond [`READ_ROWS`] from which tile registers save what making them ready takes, 0.13 us: they take 2.0
    /// times as long as vectors for 5 rows of 64 x 64, 1.06 for 16 and 0.88 for 24; 1.1 for 5 of 128 x 128 and 0.95 for 6; 1.14 for
    /// 4 of 256 x 128 and 1.0 for 5.
    const READY: usize = 80 * 1024;

    /// Whether a product of bytes goes to tile registers where the machine has them.
    pub const fn take_bytes(m: usize, n: usize, k: usize) -> bool {
        let saved = m.saturating_sub(READ_ROWS).saturating_mul(n).saturating_mul(k);
        m > FEW_BYTE_ROWS && saved >= READY && k <= super::quantized::MOST_DEPTH
    }

    /// Whether a product by bfloat16 does.
    pub const fn take_bfloat16(m: usize) -> bool {
        m > FEW_ROWS
    }
}

/// Products of 8-bit integers.
pub mod quantized {
    /// k up to which tile registers are used: copies of 32 rows of A take 2.1 MB then, about the second-level cache. Not measured:
    /// so deep a product is rare.
    pub const MOST_DEPTH: usize = 64 * 1024;
    /// Products that vectors add in the time of one of float32, by which pieces are cut: 2.0 to 2.5 were reached, 4 is the limit
    /// ("8-bit integers").
    pub const FAST: usize = 4;
    /// Those that tile registers add: 2.7 to 7.1 were reached, 14 to 16 is the limit ("8-bit integers").
    pub const TILES_FAST: usize = 16;
    /// Bytes of the copies of A for tile registers where 32 rows have no more: an eighth of the second-level cache. Not measured
    /// apart from the whole, 646 % at 512 cubed and 711 at 1024 cubed ("8-bit integers").
    pub const COPIED: usize = 256 * 1024;
    /// Blocks of 32 rows that are copied at once at most, however small they are. Not measured.
    pub const MOST_COPIED: usize = 8;
    /// Products in a microsecond where each channel has a filter of its own, about. Not measured.
    pub const ALONE: usize = 16 * 1024;

    /// Pieces of a convolution of so many results and panels, across and down: results first, since each part of panels copies the
    /// inputs under the kernel again. Not measured.
    pub fn cut(rows: usize, panels: usize, units: usize) -> (usize, usize) {
        use super::share::{LONG, MAX_PIECES, PIECES};
        use crate::product::rows::TILE_ROWS;
        let wanted = units.clamp(1, MAX_PIECES);
        let across = wanted.min(PIECES.max(wanted / LONG)).min(rows.div_ceil(TILE_ROWS)).max(1);
        let down = PIECES.div_ceil(across).min(wanted / across).min(panels).max(1);
        (across, if across >= PIECES { 1 } else { down })
    }
}

/// Products by constants of fewer bits.
pub mod narrow {
    use crate::product::rows::TILE_ROWS;
    use crate::product::tile::ROWS;

    /// Rows of k of a slice as float32: 32 KB of the widest panel, which the first-level cache keeps. Many rows take 0.96 to 1.02
    /// of the time of float32 ("Weights of 4, 8 and 16 bits"), for 1.25 with slices that do not fit and pieces cut by rows.
    pub const DEPTH: usize = 128;
    /// k up to which a block of rows of A stays in the second-level cache. Not measured alone.
    pub const A_DEPTH: usize = 1024;
    /// Rows at most that share a slice: with [`A_DEPTH`] of A, 1 MB. More than of packed operands, since each block widens the
    /// slices again. Not measured alone.
    pub const ROW_BLOCK: usize = 44 * ROWS;
    /// Products of bfloat16 that tile registers add in the time of one of float32, by which pieces are cut: 2.2 to 5.8 were reached
    /// ("Weights of 4, 8 and 16 bits"), 8 is half of what bytes may reach.
    pub const TILES_FAST: usize = 8;
    /// Rows of k of A that become bfloat16 at once for tile registers; as many of 32 columns of B are 32 KB, which the first-level
    /// cache keeps. Measured as a whole: 5.65 times float32 at 512 x 1024 x 1024 ("Weights of 4, 8 and 16 bits").
    pub const COPY_DEPTH: usize = 512;
    /// Rows of A that do: with [`COPY_DEPTH`], 272 KB of the second-level cache. Not measured alone.
    pub const COPY_ROWS: usize = 8 * TILE_ROWS;

    /// Pieces of panels alone, where there are enough panels for that; `rows` and `pieces` are what the product would be cut into
    /// otherwise. Blocks of rows would widen the panels again: many rows took 1.25 times as long as float32 with them, 1.05
    /// without.
    pub fn panel_pieces(rows: usize, pieces: usize, panels: usize) -> Option<usize> {
        let least = super::share::PIECES;
        (rows > 1 && panels >= least).then(|| pieces.max(least).min(panels))
    }
}

/// Attention.
pub mod attention {
    /// Rows up to which keys are read in place, by dot products, and not packed. Over 512 keys of 12 heads of 64 with one thread,
    /// packing takes 1.25 times as long for one row, 1.1 for two and 0.9 for four: a limit of three, which was not measured, may be
    /// better.
    const FEW_ROWS: usize = 4;
    /// Keys up to which a block of rows keeps all its scores and is passed over once; with more, blocks of keys follow each other
    /// with a running maximum and sum. Scores of 24 rows are 384 KB then. 128 rows by 8192 keys take 1.6 times as long with full
    /// scores. With a limit of 1024, heads of 64 reach 48 to 49 % of the peak at 1536, 2048 and 4096 keys, with this one 56 to 58,
    /// and 49 against 63 where 2048 keys are causal (one thread; two alike, but for 54 against 58 at 4096).
    pub const FULL_KEYS: usize = 4096;
    /// Keys of a block with a running sum: a multiple of the columns of every panel; 64 KB of packed keys of 32. Not measured
    /// alone.
    const KEY_BLOCK: usize = 512;
    /// Keys up to which a block is [`ROWS_SHORT`] high.
    const SHORT_KEYS: usize = 1024;
    /// Rows of a block with few keys: their scores take 192 KB at most. With one thread 96 rows take 1.02 times as long at 128
    /// keys, 1.09 at 512 and 1.14 at 1024.
    const ROWS_SHORT: usize = 48;
    /// Rows of a block with more keys: scores take 384 KB at most, and stay in the second-level cache. Not measured alone.
    const ROWS_LONG: usize = 24;
    /// Rows of a block with a running sum, and at most: scores of a block of keys take 192 KB. Not measured alone.
    pub const MOST_ROWS: usize = 96;
    /// Keys and rows from which values that are not neighbours are packed. 512 by 512 of size 64 took 6.6 ms so, 10.7 in place,
    /// where they took a page each for every sliver ("Attention"). With one thread, packing takes 1.2 to 1.3 times as long for 1 to
    /// 4 rows of 512 keys, and in place 0.92 to 0.94 for 24 rows of 128 and 512.
    const FAR_KEYS: usize = 128;
    const FAR_ROWS: usize = 24;
    /// Rows of a piece at least, where heads are cut: keys are packed again for each. Not measured alone.
    pub const PIECE_ROWS: usize = 24;
    /// Products that the exponential of a score takes as long as: a third of the time at size 32, a fifth at 64 ("Attention").
    pub const EXPONENTIAL: usize = 16;

    /// Whether keys are packed for so many rows.
    pub const fn packs_keys(rows: usize) -> bool {
        rows > FEW_ROWS
    }

    /// Whether values that are not neighbours are packed.
    pub const fn packs_values(rows: usize, keys: usize) -> bool {
        keys >= FAR_KEYS && rows >= FAR_ROWS
    }

    /// Rows of a block at most, and keys: full rows of scores or blocks of keys.
    pub const fn block(keys: usize) -> (usize, usize) {
        if keys <= SHORT_KEYS {
            (ROWS_SHORT, keys)
        } else if keys <= FULL_KEYS {
            (ROWS_LONG, keys)
        } else {
            (MOST_ROWS, KEY_BLOCK)
        }
    }
}

/// Convolution.
pub mod convolution {
    use super::share::PIECES;
    /// Which groups share panels, and which kernels of 3 x 3 are turned for Winograd's algorithm.
    pub use pliant_tensor::{may_share_panels, turning_pays};

    /// Results of a block and a filter at most, which all slivers of a run's slice serve: 24 KB of 64 filters. Slices of runs over
    /// such blocks are 1.2 times as fast at 7 x 7 x 512 as whole runs, and lose nothing elsewhere; other heights were not measured.
    pub const BLOCK_PIXELS: usize = 96;
    /// Pieces that tiles of results are cut into where there are few blocks: eight for each of two threads. Not measured.
    pub const SHORT_PIECES: usize = 2 * PIECES;
    /// Products in a microsecond where each channel is alone, about: 24 to 79 GFLOP/s are 12 to 40 thousand ("Convolution").
    pub const ALONE: usize = 32 * 1024;
    /// Elements of margins that are copied in a microsecond, about: 16 KB. Not measured.
    pub const COPIED: usize = 4096;
    /// Taps of a row that is swept.
    pub const SWEPT: usize = 3;

    /// Whether a line is swept, its inputs loaded once for all taps of a row of the kernel, and not once for each. Each channel
    /// alone: with AVX-512 and one thread 1.5 times as fast over 28 to 112 pixels and 1.05 to 1.6 over 14 and 7; with AVX2 1.2 to
    /// 1.4 and 0.9 to 1.1. With steps of 2, where less is loaded twice, it took 1.2 times as long.
    pub const fn sweeps(taps: usize, stride: usize, dilation: usize) -> bool {
        taps == SWEPT && stride == 1 && dilation == 1
    }

    /// Lines of a piece of convolution in groups, about: each piece fills a ring anew, of two lines more for 3 x 3. Not measured.
    const LINES: usize = 16;
    /// Lines of a piece at least, where there are fewer than [`SHORT_PIECES`]. Not measured: four lines of 3 x 3 read six rows of
    /// inputs.
    const LEAST_LINES: usize = 4;
    /// Columns of a panel of a group's own at most: two vectors of 512 bits, which a block has. 3 x 3 by steps of 1 over 32 groups
    /// are 12 times as fast for 4 channels in a group as by tiles of products, 5 for 8, 3 for 16 and 2 for 32.
    const MOST_WIDTH: i64 = 32;
    /// Elements of a ring at most, where results along a line are few enough: 24 KB, half of a first-level cache. Not measured.
    pub const NEAR: usize = 6 * 1024;

    /// Whether sums of a group's panel of so many columns stay in registers over all taps.
    pub const fn is_narrow(width: i64) -> bool {
        width <= MOST_WIDTH
    }

    /// Pieces of a convolution in groups along an image of so many lines, where there are so many `others` beside them.
    pub fn bands(lines: usize, others: usize) -> usize {
        let bands = lines.div_ceil(LINES).max(SHORT_PIECES.div_ceil(others));
        bands.min(lines.div_ceil(LEAST_LINES))
    }

    /// Elements of the inputs of a block of Winograd's algorithm at most, but for [`LEAST_TILES`]: 1 MB, half of a second-level
    /// cache. Measured as a whole: 1.5 to 2.1 times as fast as plain products at 56 to 14 pixels (`convolution/winograd`).
    const BLOCK_ELEMENTS: usize = 256 * 1024;
    /// Tiles of a block at most, and at least where there are as many: the rows of the products, which reach 81 % and more from 16
    /// rows on ("Products with packed weights").
    const MOST_TILES: usize = 96;
    const LEAST_TILES: usize = 24;
    /// Elements that are turned in a microsecond, about. Not measured.
    pub const TURNED: usize = 2048;

    /// Tiles of a block, for kernels of so many numbers.
    pub fn block_tiles(numbers: usize, channels: usize) -> usize {
        (BLOCK_ELEMENTS / (numbers * channels.max(1))).clamp(LEAST_TILES, MOST_TILES)
    }

    /// Whether threads take whole blocks of tiles, and not panels of each, whose inputs they turn together before: where there are
    /// enough blocks, or where the work is too little to meet twice. Not measured alone.
    pub const fn by_blocks(blocks: usize, units: usize) -> bool {
        blocks >= PIECES || units < 2 * PIECES
    }
}

/// Recurrent layers.
pub mod recurrent {
    /// Rows of input products that are computed at once: with few the weights are read too often, with many what they give leaves
    /// the caches before it is used. Not measured alone; the whole is in "Recurrent layers".
    pub const STRETCH: usize = 256;
    /// Rows of a piece at most: sums of 24 KB beside a panel in the first-level cache. Not measured alone.
    pub const ROWS: usize = 96;
}

/// Transposes.
pub mod transpose {
    /// Rows and columns of a tile: 4 KB of float32 on each side, in lines of 64 bytes that are read and written completely, in a
    /// first-level cache of 32 KB.
    pub const TILE: usize = 32;
    /// Elements that are copied in a microsecond, about: 4 GB/s of float32.
    pub const UNIT: usize = 1024;
    /// Elements of a piece, about 16 microseconds.
    pub const PIECE: usize = 16 * UNIT;
}

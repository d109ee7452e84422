//! The names of attributes that the compiler interprets. Attributes with other names are free for users.

/// Declares the constants and [`ALL`].
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*

        /// All names of this module.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

names! {
    /// Of a function of a module: its external name. A function with this attribute is public.
    GLOBAL_SYMBOL = "global_symbol";
    /// Of a graph function: its side effects, and those of its local functions, are ignored.
    FORCE_PURE = "relax.force_pure";
    /// The old name of [`FORCE_PURE`].
    FORCE_PURE_OLD = "force_pure";
    /// Of a model's function: the number of parameters that are inputs. The others are weights.
    NUM_INPUT = "num_input";
    /// Of an imported model's function: the names of its inputs.
    INPUT_NAMES = "input_names";
    /// Of an imported model's function: the model inputs that the import replaced by constants.
    DEFAULT_INPUTS = "default_inputs";
    /// Of an imported model's function: the names of its outputs.
    OUTPUT_NAMES = "output_names";
    /// Of a graph function: the upper bounds of its symbols, as in `{"n": 1024}`.
    UPPER_BOUND = "tir_var_upper_bound";
    /// Of a graph function that only contains calls of loop functions, which `FuseTIR` fuses into one.
    PRIMITIVE = "Primitive";
    /// Of a graph function that matched a pattern of a backend: the name of the pattern.
    COMPOSITE = "Composite";
    /// Of a graph function that a code generator compiles: the name of the backend.
    CODEGEN = "Codegen";
    /// Of a lifted local function: the number of trailing parameters that are captured variables.
    NUM_CAPTURED = "num_captured";
    /// Of a loop function: its fusion pattern, such as elementwise or reduction.
    OP_PATTERN = "op_pattern";
    /// Of a loop function: its buffers do not overlap.
    NOALIAS = "tir.noalias";
    /// Of a loop function: whether its matrix products and similar computations may be replaced by library kernels.
    KERNELS = "tir.kernels";
    /// Of an in-place call: for each output, the index of the input that it overwrites, or -1.
    INPLACE_INDICES = "inplace_indices";
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn names_are_unique() {
        let mut names = ALL.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}

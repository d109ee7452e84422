//! The names of function, module and call attributes that the compiler interprets. Users can use all other names freely.

/// Declares a constant for each attribute name, and the list [`ALL`] of all names.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*

        /// All attribute names that this module declares.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

names! {
    /// Attribute of a function in a module: the external name. A function with this attribute is public.
    GLOBAL_SYMBOL = "global_symbol";
    /// Attribute of a graph function: the compiler ignores the side effects of the function and of its local functions.
    FORCE_PURE = "relax.force_pure";
    /// The old name of [`FORCE_PURE`], which older scripts use.
    FORCE_PURE_OLD = "force_pure";
    /// Attribute of the main function of a model: the number of leading parameters that are inputs. The other parameters are
    /// weights.
    NUM_INPUT = "num_input";
    /// Attribute of the function of an imported model: the names of the model's inputs.
    INPUT_NAMES = "input_names";
    /// Attribute of the function of an imported model: the names of the model inputs that the import replaced by constants.
    DEFAULT_INPUTS = "default_inputs";
    /// Attribute of the function of an imported model: the names of the model's outputs.
    OUTPUT_NAMES = "output_names";
    /// Attribute of the function of an imported model that has outputs of fewer than 8 bits or of 8-bit floats: for each
    /// output, the
    /// name of this element type in the package `ml_dtypes`, or `""`. The function returns such outputs as 8-bit integers.
    NARROW_OUTPUTS = "narrow_outputs";
    /// Attribute of a graph function: upper bounds of symbolic sizes, as in `{"n": 1024}`.
    UPPER_BOUND = "tir_var_upper_bound";
    /// Attribute of a graph function that consists of calls of loop functions: `FuseTIR` fuses them into one loop function.
    PRIMITIVE = "Primitive";
    /// Attribute of a graph function that matched a pattern of a backend: the name of the pattern.
    COMPOSITE = "Composite";
    /// Attribute of a graph function that an external code generator compiles: the name of the backend.
    CODEGEN = "Codegen";
    /// Attribute of a local function that has been lifted to the module: the number of trailing parameters that are captured
    /// variables.
    NUM_CAPTURED = "num_captured";
    /// Attribute of a loop function: the fusion pattern of the computation, such as elementwise or reduction.
    OP_PATTERN = "op_pattern";
    /// Attribute of a loop function: its buffer parameters do not overlap in memory.
    NOALIAS = "tir.noalias";
    /// Attribute of a loop function: whether library kernels may replace its loops, such as those of a matmul. Default: true.
    KERNELS = "tir.kernels";
    /// Attribute of a loop function: whether a user has scheduled its loops, so that no default schedule changes them. Default:
    /// false.
    IS_SCHEDULED = "tir.is_scheduled";
    /// Attribute of an in-place call: for each output, the index of the input that the output overwrites, or -1.
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

//! The names of the attributes that have a meaning to the compiler. Attributes of other names belong to whoever writes them.

/// Declares the names and a table of all.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*

        /// All of them.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

names! {
    /// Of a function of a module: its name to the outside. A function that has it is public.
    GLOBAL_SYMBOL = "global_symbol";
    /// Of a graph function: its effects do not count, nor do those of its local functions.
    FORCE_PURE = "relax.force_pure";
    /// What [`FORCE_PURE`] was called first.
    FORCE_PURE_OLD = "force_pure";
    /// Of a model's function: how many parameters are inputs; the others are the model's.
    NUM_INPUT = "num_input";
    /// Of an imported model's function: the names of its inputs.
    INPUT_NAMES = "input_names";
    /// Of an imported model's function: inputs of the file that are constants in it.
    DEFAULT_INPUTS = "default_inputs";
    /// Of an imported model's function: the names of its outputs.
    OUTPUT_NAMES = "output_names";
    /// Of a graph function: the greatest values of its symbols, `{"n": 1024}`.
    UPPER_BOUND = "tir_var_upper_bound";
    /// Of a graph function that holds nothing but calls of loop functions, to become one.
    PRIMITIVE = "Primitive";
    /// Of a graph function that matched a pattern of a backend: the pattern's name.
    COMPOSITE = "Composite";
    /// Of a graph function that a code generator takes: the backend's name.
    CODEGEN = "Codegen";
    /// Of a lifted local function: how many parameters, the last ones, are what it captured.
    NUM_CAPTURED = "num_captured";
    /// Of a loop function: how it computes its elements, for fusion.
    OP_PATTERN = "op_pattern";
    /// Of a loop function: its buffers share no memory.
    NOALIAS = "tir.noalias";
    /// Of a loop function: whether matrix products and their like may be left to the library's kernels.
    KERNELS = "tir.kernels";
    /// Of a call that works in place: for each output, the input that it overwrites.
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

//! The table of error codes. A code never changes its meaning: codes are added but never reused.

macro_rules! codes {
    ($($(#[$section:meta])* $name:ident = $text:literal;)*) => {
        $(
            $(#[$section])*
            #[doc = $text]
            pub const $name: &str = stringify!($name);
        )*

        /// All codes with their meanings, in ascending order.
        pub const ALL: &[(&str, &str)] = &[$((stringify!($name), $text),)*];
    };
}

codes! {
    PL0001 = "A bug in the compiler.";
    PL0002 = "A feature that the compiler does not have.";

    PL0101 = "The text is not Python.";
    PL0102 = "Python that no script contains.";
    PL0103 = "A name that nothing defines.";
    PL0104 = "A name of the script language that does not exist.";
    PL0105 = "Wrong arguments of a construct or operator.";
    PL0106 = "A value of the wrong kind.";
    PL0107 = "A type that does not fit.";
    PL0108 = "An operator's type rule refuses its operands.";
    PL0109 = "A dataflow variable is used outside its block.";
    PL0110 = "A call with effects stands where none may be.";
    PL0111 = "The structure of a function forbids this.";
    PL0112 = "The host could not evaluate an expression.";

    PL0201 = "An expression has no type, or a type that is not of its function.";
    PL0202 = "An operand is neither a leaf nor a tuple of leaves (A-normal form).";
    PL0203 = "A variable is used where it is not in view.";
    PL0204 = "A variable is defined twice.";
    PL0205 = "A dataflow variable is used outside its block or defined outside a dataflow block.";
    PL0206 = "A branch or a local function stands inside a dataflow block.";
    PL0207 = "A call with effects stands inside a dataflow block.";
    PL0208 = "A call with effects stands in a function that is declared pure.";
    PL0209 = "A symbol is used where nothing has defined it.";
    PL0210 = "The module has no function of that name.";
    PL0211 = "A call passes the wrong number of arguments.";
    PL0212 = "An argument does not fit its parameter.";
    PL0213 = "The value of a binding does not fit the type of its variable.";
    PL0214 = "The result of a function or branch does not fit the declared type.";
    PL0215 = "A condition is not a scalar bool.";
    PL0216 = "A match_cast cannot hold: the types exclude each other.";
    PL0217 = "A field index is beyond the tuple.";
    PL0218 = "A destination-passing call does not fit the loop function that it calls.";
    PL0219 = "The operator is not declared, or its call does not follow its signature.";
    PL0220 = "Branches, functions or tuples are nested too deep.";
    PL0221 = "A block, sequence or expression stands in two places.";
    PL0222 = "Two functions have the same global symbol.";
    PL0223 = "A value that is not callable is called.";
    PL0224 = "An attribute has a value that its operator cannot have.";
    PL0225 = "The condition, body and state of a loop do not fit each other.";

    PL0301 = "A variable of a loop function is used where it is not in view.";
    PL0302 = "A variable of a loop function is defined while it is in view.";
    PL0303 = "A buffer is used where it does not live.";
    PL0304 = "A buffer is accessed with the wrong number of indices.";
    PL0305 = "An index, size, loop bound or condition has the wrong type.";
    PL0306 = "The operands of an operator differ in type.";
    PL0307 = "A stored value is not of the buffer's element type.";
    PL0308 = "An intrinsic has the wrong number or types of operands.";
    PL0309 = "A parameter is wrong: a handle without a buffer, a buffer twice, or a size that nothing defines.";
    PL0310 = "A block's axis is wrong, or its body uses loop variables from outside.";
    PL0311 = "A loop of this kind is wrong: vectorized and unrolled loops need a constant extent.";
    PL0312 = "Statements are nested too deep.";
    PL0313 = "A let binds a value of another type than its variable's.";
    PL0314 = "A block's init stands without a reduction axis.";
    PL0315 = "A string or an address stands where no call takes it.";
    PL0317 = "A constant does not fit its type.";

    PL0401 = "A value does not have the type that was declared for it.";
    PL0402 = "An access outside a buffer.";
    PL0403 = "A check in the program failed.";
    PL0404 = "A packed function failed, or is not registered.";
    PL0405 = "A size overflows 64 bits.";
    PL0406 = "An integer division by zero.";
    PL0407 = "The interpreter's budget of steps is spent.";
    PL0408 = "The interpreter cannot run this.";

    PL0501 = "A program that cannot be lowered as it is.";
    PL0502 = "A pass, pipeline, target or option that does not exist.";

    PL0601 = "An ONNX model breaks a rule of ONNX, or a limit.";
}

/// The meaning of a code; `None` if the code does not exist.
pub fn meaning(code: &str) -> Option<&'static str> {
    ALL.iter().find(|(name, _)| *name == code).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_ordered() {
        assert!(ALL.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(ALL.iter().all(|(name, text)| name.len() == 6 && text.ends_with('.')));
        assert_eq!(meaning(PL0210), Some("The module has no function of that name."));
        assert_eq!(meaning("PL9999"), None);
    }
}

//! All error codes with their meanings. Codes are added but never reused or given another meaning.

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
    PL0001 = "A bug in the compiler (internal error).";
    PL0002 = "A feature that the compiler does not support.";

    PL0101 = "The source is not valid Python.";
    PL0102 = "A Python construct that the script language does not support.";
    PL0103 = "An undefined name.";
    PL0104 = "An operator or name that the script language does not have.";
    PL0105 = "Wrong arguments to a construct or operator.";
    PL0106 = "A value of the wrong kind.";
    PL0107 = "A type that does not match the expected type.";
    PL0108 = "An operator does not accept the types of its operands.";
    PL0109 = "A dataflow variable is used outside its dataflow block.";
    PL0110 = "A call with side effects where only pure calls are allowed.";
    PL0111 = "A construct that is not allowed at this point of a function.";
    PL0112 = "An expression could not be evaluated by the host program.";

    PL0201 = "An expression has no type, or a type of another function.";
    PL0202 = "An operand is not a variable, a constant or a tuple of these (A-normal form).";
    PL0203 = "A variable is used outside its scope.";
    PL0204 = "A variable is defined twice.";
    PL0205 = "A dataflow variable is used outside its block or defined outside a dataflow block.";
    PL0206 = "A branch or local function inside a dataflow block.";
    PL0207 = "A call with side effects inside a dataflow block.";
    PL0208 = "A call with side effects in a function that is declared pure.";
    PL0209 = "A symbolic dim is used before it is defined.";
    PL0210 = "The module has no function of that name.";
    PL0211 = "A call passes the wrong number of arguments.";
    PL0212 = "An argument does not match the type of its parameter.";
    PL0213 = "The value of a binding does not match the type of its variable.";
    PL0214 = "The result of a function or branch does not match the declared type.";
    PL0215 = "A condition is not a scalar bool.";
    PL0216 = "A match_cast that can never succeed, because the types exclude each other.";
    PL0217 = "A tuple index is out of range.";
    PL0218 = "A destination-passing call does not match the signature of the called loop function.";
    PL0219 = "The operator is not declared, or its call does not match its signature.";
    PL0220 = "Branches, functions or tuples are nested too deep.";
    PL0221 = "A block, sequence or expression occurs twice in the program.";
    PL0222 = "Two functions have the same global symbol.";
    PL0223 = "A call of a value that is not a function.";
    PL0224 = "An attribute has a value that its operator does not accept.";
    PL0225 = "The condition, body and state of a loop have types that do not match.";

    PL0301 = "A variable of a loop function is used outside its scope.";
    PL0302 = "A variable of a loop function is defined twice in the same scope.";
    PL0303 = "A buffer is used outside its scope.";
    PL0304 = "A buffer is accessed with the wrong number of indices.";
    PL0305 = "An index, size, loop bound or condition has the wrong type.";
    PL0306 = "The operands of an operator have different types.";
    PL0307 = "A stored value does not have the buffer's element type.";
    PL0308 = "An intrinsic has the wrong number or types of operands.";
    PL0309 = "An invalid parameter: a handle without a buffer, the same buffer twice, or an undefined size.";
    PL0310 = "A block has an invalid axis, or its body uses outer loop variables.";
    PL0311 = "An invalid loop of this kind: vectorized and unrolled loops need a constant extent.";
    PL0312 = "Statements are nested too deep.";
    PL0313 = "A let binds a value whose type differs from that of its variable.";
    PL0314 = "A block has an init statement but no reduction axis.";
    PL0315 = "A string or an address that is not an argument of a call.";
    PL0317 = "A constant is out of the range of its type.";

    PL0401 = "A value does not have its declared type.";
    PL0402 = "An access outside a buffer.";
    PL0403 = "A check in the program failed.";
    PL0404 = "A packed function failed, or is not registered.";
    PL0405 = "A size overflows 64 bits.";
    PL0406 = "An integer division by zero.";
    PL0407 = "The interpreter's step limit was exceeded.";
    PL0408 = "The interpreter does not support this program.";

    PL0501 = "The program cannot be lowered.";
    PL0502 = "An unknown pass, pipeline, target or option.";

    PL0601 = "An ONNX model that is invalid or exceeds a limit.";
}

/// The meaning of an error code; `None` if the code does not exist.
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

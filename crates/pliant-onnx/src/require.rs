//! What a node requires of sizes and values: told at once where it is known, else checked when the program runs.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use crate::error::Problem;
use crate::node::Node;

type Done = Result<(), Problem>;

impl Node<'_, '_> {
    /// Two sizes must be equal. `{}` in the text stands for the first, then for the second.
    ///
    /// # Errors
    /// Where they are not at any size.
    pub fn require_equal(&mut self, a: Sym, b: Sym, text: &str) -> Done {
        match pliant_ops::prove::equal(self.func(), a, b) {
            Some(true) => return Ok(()),
            Some(false) => return Err(self.told(text, a, b)),
            None => {}
        }
        let cond = self.func().syms.eq(a, b);
        self.im.ask(cond);
        self.compare("relax.equal", a, b, text)
    }

    /// A size must be at most another. `{}` in the text stands for the first, then for the second.
    ///
    /// # Errors
    /// Where it is greater at all sizes.
    pub fn require_at_most(&mut self, a: Sym, b: Sym, text: &str) -> Done {
        match pliant_ops::prove::at_most(self.func(), a, b) {
            Some(true) => Ok(()),
            Some(false) => Err(self.told(text, a, b)),
            None => {
                let cond = self.func().syms.le(a, b);
                self.im.ask(cond);
                self.compare("relax.less_equal", a, b, text)
            }
        }
    }

    fn compare(&mut self, op: &str, a: Sym, b: Sym, text: &str) -> Done {
        let sides = [self.size(a)?, self.size(b)?];
        let holds = self.op(op, &sides)?;
        self.require(holds, text, &sides)
    }

    fn told(&mut self, text: &str, a: Sym, b: Sym) -> Problem {
        let func = self.func();
        let mut parts = text.splitn(3, "{}");
        let mut message = parts.next().unwrap_or_default().to_owned();
        for (size, part) in [a, b].into_iter().zip(parts) {
            message.push_str(&func.syms.display(size).to_string());
            message.push_str(part);
        }
        Problem::invalid(message)
    }

    /// A condition must hold when the program runs, of whatever shape it is: of all its elements. `{}` in the text stand
    /// for values.
    ///
    /// # Errors
    /// What the type rules say.
    pub fn require(&mut self, holds: Expr, text: &str, values: &[Expr]) -> Done {
        let mut holds = holds;
        if self.rank(holds).ok() != Some(0) {
            let numbers = self.cast(holds, DType::Int32)?;
            let least = self.op("relax.min", &[numbers])?;
            holds = self.cast(least, DType::Bool)?;
        }
        let mut args = vec![holds];
        args.extend(values);
        let attrs = Attrs::default().with("format", AttrValue::str(text));
        self.op_with("relax.assert_op", &args, attrs)?;
        self.im.has_effect();
        Ok(())
    }
}

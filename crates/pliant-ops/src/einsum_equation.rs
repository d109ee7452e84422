//! The equation of an einsum: the labels of the dims of its operands and its result.

/// The label of a dim in an einsum equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// A dim that the ellipsis `...` of an operand's labels covers. The number is the position of the dim among these dims, counted
    /// from the right, starting with 0.
    Ellipsis(usize),
    /// A dim that the equation labels with a letter.
    Letter(char),
}

/// The labels of one operand or of the result, as written in the equation; `None` stands for the
/// ellipsis `...`.
type Term = Vec<Option<char>>;

/// A parsed equation whose ellipses are not expanded yet.
#[derive(Clone, Debug)]
pub struct ParsedEquation {
    inputs: Vec<Term>,
    /// The labels of the result; `None` if the equation has no part after `->`.
    output: Option<Term>,
}

/// The labels of each operand and of the result.
#[derive(Clone, Debug)]
pub struct Equation {
    /// The labels of the dims of each operand.
    pub inputs: Vec<Vec<Label>>,
    /// The labels of the result's dims.
    pub output: Vec<Label>,
}

/// The reason why an equation does not match the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EquationMismatch {
    /// The equation has this number of terms (label lists before `->`), which differs from the
    /// number of operands.
    Count(usize),
    /// The term (the label list of an operand) with this index is the first one that does not match the rank of its operand.
    Rank(usize),
}

impl ParsedEquation {
    /// Parses an equation such as `"ij,jk->ik"`.
    ///
    /// # Errors
    /// The reason why the text is not an equation.
    pub fn parse(text: &str) -> Result<ParsedEquation, String> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(parse_term(output)?)),
            None => (text, None),
        };
        let inputs = inputs.split(',').map(parse_term).collect::<Result<Vec<_>, _>>()?;
        if let Some(term) = &output {
            for (k, label) in term.iter().enumerate() {
                if term[..k].contains(label) {
                    let label =
                        label.map_or_else(|| "the ellipsis".into(), |c| format!("label {c:?}"));
                    return Err(format!(
                        "the result in subscripts {text:?} contains {label} more than once"
                    ));
                }
                if let Some(c) = label
                    && !inputs.iter().any(|t| t.contains(label))
                {
                    return Err(format!(
                        "label {c:?} of the result in subscripts {text:?} occurs in no operand"
                    ));
                }
            }
        }
        Ok(ParsedEquation { inputs, output })
    }

    /// Returns the labels of all dims of operands with the given ranks. Each ellipsis is replaced
    /// by labels for the dims that it covers.
    ///
    /// # Errors
    /// If the equation does not match the operands.
    pub fn for_ranks(&self, ranks: &[usize]) -> Result<Equation, EquationMismatch> {
        if self.inputs.len() != ranks.len() {
            return Err(EquationMismatch::Count(self.inputs.len()));
        }
        let (mut inputs, mut max_ellipsis_dims) = (Vec::new(), 0);
        for (i, (term, &rank)) in self.inputs.iter().zip(ranks).enumerate() {
            let letters = term.iter().flatten().count();
            let has_ellipsis = term.contains(&None);
            let rest = rank.checked_sub(letters).filter(|&r| has_ellipsis || r == 0);
            let rest = rest.ok_or(EquationMismatch::Rank(i))?;
            max_ellipsis_dims = max_ellipsis_dims.max(rest);
            inputs.push(expand_ellipsis(term, rest));
        }
        let output = match &self.output {
            Some(term) => expand_ellipsis(term, max_ellipsis_dims),
            None => {
                let mut all: Vec<Label> = inputs.iter().flatten().copied().collect();
                all.sort_unstable();
                let once = |l: &Label| match l {
                    Label::Ellipsis(_) => false,
                    letter => all.iter().filter(|o| *o == letter).count() == 1,
                };
                let letters: Vec<Label> = all.iter().copied().filter(once).collect();
                (0..max_ellipsis_dims).rev().map(Label::Ellipsis).chain(letters).collect()
            }
        };
        Ok(Equation { inputs, output })
    }
}

fn parse_term(text: &str) -> Result<Term, String> {
    let mut term = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if term.contains(&None) {
                return Err(format!(
                    "term {text:?} of subscripts contains the ellipsis \"...\" more than once"
                ));
            }
            term.push(None);
            rest = after;
            continue;
        }
        if c.is_ascii_alphabetic() {
            term.push(Some(c));
        } else if c != ' ' {
            return Err(format!(
                "term {text:?} of subscripts contains {c:?}, but labels must be ASCII letters"
            ));
        }
        rest = &rest[c.len_utf8()..];
    }
    Ok(term)
}

/// The labels of one operand or of the result, with the ellipsis replaced by labels for the given
/// number of dims.
fn expand_ellipsis(term: &Term, dims: usize) -> Vec<Label> {
    let mut out = Vec::new();
    for label in term {
        match label {
            Some(c) => out.push(Label::Letter(*c)),
            None => out.extend((0..dims).rev().map(Label::Ellipsis)),
        }
    }
    out
}

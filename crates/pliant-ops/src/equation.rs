//! The equation of an einsum: the labels of its operands' dims and of its result's.

/// A dim's label: a letter, or a place of the ellipsis counted from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// A place of the ellipsis, the last one 0.
    Ellipsis(usize),
    /// A letter.
    Letter(char),
}

/// A term as it is written; `None` stands for the ellipsis.
type Term = Vec<Option<char>>;

/// An equation as it is written.
#[derive(Clone, Debug)]
pub struct Terms {
    inputs: Vec<Term>,
    /// None where nothing is said of the result.
    output: Option<Term>,
}

/// The labels of each operand and of the result.
#[derive(Clone, Debug)]
pub struct Equation {
    /// Those of each operand.
    pub inputs: Vec<Vec<Label>>,
    /// Those of the result.
    pub output: Vec<Label>,
}

/// Why an equation is none of some operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It has so many terms.
    Count(usize),
    /// This term has not the rank of its operand.
    Rank(usize),
}

impl Terms {
    /// The equation that a text is, such as `"ij,jk->ik"`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Terms, String> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(parse_term(output)?)),
            None => (text, None),
        };
        let inputs = inputs.split(',').map(parse_term).collect::<Result<Vec<_>, _>>()?;
        if let Some(term) = &output {
            for (k, label) in term.iter().enumerate() {
                if term[..k].contains(label) {
                    return Err(format!("a label is repeated in the result: {text:?}"));
                }
                if !inputs.iter().any(|t| t.contains(label)) && label.is_some() {
                    return Err(format!("a label of the result is in no operand: {text:?}"));
                }
            }
        }
        Ok(Terms { inputs, output })
    }

    /// The labels of operands of these ranks.
    ///
    /// # Errors
    /// Where there are no such operands.
    pub fn over(&self, ranks: &[usize]) -> Result<Equation, Misfit> {
        if self.inputs.len() != ranks.len() {
            return Err(Misfit::Count(self.inputs.len()));
        }
        let (mut inputs, mut widest) = (Vec::new(), 0);
        for (i, (term, &rank)) in self.inputs.iter().zip(ranks).enumerate() {
            let letters = term.iter().flatten().count();
            let open = term.contains(&None);
            let rest = rank.checked_sub(letters).filter(|&r| open || r == 0);
            let rest = rest.ok_or(Misfit::Rank(i))?;
            widest = widest.max(rest);
            inputs.push(expanded(term, rest));
        }
        let output = match &self.output {
            Some(term) => expanded(term, widest),
            None => {
                let mut all: Vec<Label> = inputs.iter().flatten().copied().collect();
                all.sort_unstable();
                let once = |l: &Label| match l {
                    Label::Ellipsis(_) => false,
                    letter => all.iter().filter(|o| *o == letter).count() == 1,
                };
                let letters: Vec<Label> = all.iter().copied().filter(once).collect();
                (0..widest).rev().map(Label::Ellipsis).chain(letters).collect()
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
                return Err(format!("two ellipses in the term {text:?}"));
            }
            term.push(None);
            rest = after;
            continue;
        }
        if c.is_ascii_alphabetic() {
            term.push(Some(c));
        } else if c != ' ' {
            return Err(format!("{c:?} is no label: {text:?}"));
        }
        rest = &rest[c.len_utf8()..];
    }
    Ok(term)
}

/// The term with its ellipsis written out over so many dims.
fn expanded(term: &Term, dims: usize) -> Vec<Label> {
    let mut out = Vec::new();
    for label in term {
        match label {
            Some(c) => out.push(Label::Letter(*c)),
            None => out.extend((0..dims).rev().map(Label::Ellipsis)),
        }
    }
    out
}

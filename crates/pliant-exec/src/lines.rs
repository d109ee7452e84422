//! Where instructions come from: for each bytecode function a table of runs of instructions that one line of the user's
//! source became. Nothing but messages reads it.

use crate::program::{Executable, FuncDef, FuncId, VmFunction};

/// The line of instructions that come from nodes of a graph, which the file's name names.
pub const NODE: u32 = u32::MAX;

/// The instructions from `start` to the next run come from lines of a file; from nowhere if the first is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineRun {
    /// The first instruction.
    pub start: u32,
    /// An index into [`Executable::files`].
    pub file: u32,
    /// The first line, from 1; 0 for instructions that nobody wrote.
    pub line: u32,
    /// The last line: another one where several computations became one instruction.
    pub last: u32,
}

/// Lines of a source, and the bytecode function that they became a part of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place<'a> {
    /// The bytecode function.
    pub function: &'a str,
    /// The path of the file, or a name in angle brackets.
    pub file: &'a str,
    /// The first line, from 1.
    pub line: u32,
    /// The last line.
    pub last: u32,
}

impl Executable {
    /// The source files that the program was compiled from, as far as they are known.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Where an instruction of a bytecode function comes from, if that is known.
    pub fn place(&self, function: FuncId, instruction: usize) -> Option<Place<'_>> {
        let FuncDef::Vm(function) = self.funcs.get(function as usize)? else { return None };
        let run = function.line_of(instruction)?;
        let file = self.files.get(run.file as usize)?;
        Some(Place { function: &function.name, file, line: run.line, last: run.last })
    }
}

impl VmFunction {
    /// The run that an instruction lies in, unless nobody wrote it.
    fn line_of(&self, instruction: usize) -> Option<LineRun> {
        let after = self.lines.partition_point(|run| run.start as usize <= instruction);
        let run = self.lines[after.checked_sub(1)?];
        (run.line != 0).then_some(run)
    }

    /// Says that the instructions from here on come from lines `(file, first, last)`; from nowhere for `None`.
    pub(crate) fn set_lines(&mut self, lines: Option<(u32, u32, u32)>) {
        let (file, line, last) = lines.unwrap_or_default();
        let run = LineRun { start: self.instrs.len() as u32, file, line, last };
        // A run without instructions gives way to the next.
        if self.lines.last().is_some_and(|last| last.start == run.start) {
            self.lines.pop();
        }
        let is_as_before = match self.lines.last() {
            Some(before) => LineRun { start: run.start, ..*before } == run,
            None => line == 0,
        };
        if !is_as_before {
            self.lines.push(run);
        }
    }
}

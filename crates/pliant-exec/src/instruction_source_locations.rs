//! Source locations of instructions, for error messages. Each bytecode function has a table of runs of instructions with the same
//! source lines.

use crate::bytecode_program::{Executable, FuncDef, FuncId, VmFunction};

/// A special line number: the instructions come from nodes of a graph. The file name then contains
/// the names of the nodes.
pub const NODE: u32 = u32::MAX;

/// The source lines of consecutive instructions: from the instruction `start` to the start of the
/// next run. Line 0 means that the instructions have no source location.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineRun {
    /// The index of the first instruction of the run.
    pub start: u32,
    /// The index of the file in [`Executable::files`].
    pub file: u32,
    /// The number of the first source line, starting at 1; 0 for generated instructions.
    pub line: u32,
    /// The number of the last source line. It differs from the first if computations from several lines were fused.
    pub last: u32,
}

/// A source location, and the bytecode function that was compiled from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SourceLocation<'a> {
    /// The name of the bytecode function.
    pub function: &'a str,
    /// The path of the file, or a name in angle brackets.
    pub file: &'a str,
    /// The number of the first source line of the location, starting at 1.
    pub line: u32,
    /// The number of the last source line of the location.
    pub last: u32,
}

impl Executable {
    /// The source files of the program, as far as they are known.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Returns the source location of an instruction of a bytecode function; `None` if the location
    /// is unknown.
    pub fn source_location(
        &self,
        function: FuncId,
        instruction: usize,
    ) -> Option<SourceLocation<'_>> {
        let FuncDef::Vm(function) = self.funcs.get(function as usize)? else { return None };
        let run = function.line_of(instruction)?;
        let file = self.files.get(run.file as usize)?;
        Some(SourceLocation { function: &function.name, file, line: run.line, last: run.last })
    }
}

impl VmFunction {
    /// Returns the entry of the line table for an instruction; `None` for generated instructions,
    /// which have no source line.
    fn line_of(&self, instruction: usize) -> Option<LineRun> {
        let after = self.lines.partition_point(|run| run.start as usize <= instruction);
        let run = self.lines[after.checked_sub(1)?];
        (run.line != 0).then_some(run)
    }

    /// Sets the source location `(file, first line, last line)` of the instructions that are
    /// emitted next. With `None`, the instructions have no source location.
    pub(crate) fn set_lines(&mut self, lines: Option<(u32, u32, u32)>) {
        let (file, line, last) = lines.unwrap_or_default();
        let run = LineRun { start: self.instrs.len() as u32, file, line, last };
        // Replace a run that has no instructions.
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

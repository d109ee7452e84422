//! Infers the result types of a node that is imported at run time. The node is tentatively imported for several ranks of its
//! operands, and the properties that all results have in common are kept.

use pliant_ir::DType;
use pliant_ir::relax::{Type, TypeData};

use super::{DeferredNode, MAX_SPECIALIZED_VALUES, OperandSpec, Specialization, is_plain_int};
use crate::import_error::{Problem, ProblemKind};

/// Minimum number of ranks of the first operand for which the tentative import must succeed. With
/// fewer successes, the result ranks count as unknown. The limit applies if several operands have
/// unknown ranks, because then only some combinations of ranks are tried.
const MIN_SUCCESSFUL_RANKS: usize = 3;
/// The ranks that are tried for an operand of unknown rank.
const TRIED_RANKS: std::ops::RangeInclusive<usize> = 0..=6;

/// The statically known dtype and dims of an operand or a result of a deferred node. `None` stands for an unknown part.
pub(super) struct PartialType {
    pub dtype: Option<DType>,
    pub dims: Option<Vec<Option<i64>>>,
}

impl PartialType {
    /// The properties that two types have in common.
    fn common(self, other: &PartialType) -> PartialType {
        let alike = |d: &Vec<Option<i64>>| other.dims.as_ref().is_some_and(|o| o.len() == d.len());
        PartialType {
            dtype: self.dtype.filter(|_| self.dtype == other.dtype),
            dims: self.dims.filter(alike),
        }
    }

    /// Describes an operand for a tentative import. Unknown ranks and sizes are replaced by `rank` and `size`.
    fn operand_spec(
        &self,
        i: usize,
        rank: usize,
        specialization: Specialization,
        size: i64,
    ) -> OperandSpec {
        let dtype = self.dtype.unwrap_or(DType::Float32);
        let dims = self.dims.clone().unwrap_or_else(|| vec![None; rank]);
        if !specialization.fixes_sizes(i) {
            return OperandSpec { dtype, dims, values: None };
        }
        let dims: Vec<i64> = dims.into_iter().map(|d| d.unwrap_or(size)).collect();
        let count = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
        let few = count.filter(|&count| is_plain_int(dtype) && count <= MAX_SPECIALIZED_VALUES);
        let values = few.map(|count| vec![size - 1; count]);
        OperandSpec { dtype, dims: dims.into_iter().map(Some).collect(), values }
    }
}

impl DeferredNode {
    /// Imports the node for the given operands, and returns the types of the results.
    fn result_types(&self, operands: &[OperandSpec]) -> Result<Vec<PartialType>, Problem> {
        let module = self.import(operands)?;
        let missing_main = || {
            Problem::internal(
                "the import of an ONNX node at run time",
                "the module has no function main",
            )
        };
        let main = module.get("main").and_then(|f| f.as_relax()).ok_or_else(missing_main)?;
        let ret = main.ret_ty();
        let of = |ty: Type| PartialType {
            dtype: main.types.get(ty).dtype(),
            dims: main.rank_of(ty).map(|rank| vec![None; rank as usize]),
        };
        Ok(match main.types.get(ret) {
            TypeData::Tuple(fields) => fields.iter().map(|&t| of(t)).collect(),
            _ => vec![of(ret)],
        })
    }
}

/// Infers the result types of a deferred node from the known parts of its operands' types. To find them, imports the node on trial,
/// with several assumptions about the unknown parts. If trials fail for different reasons, the result types count as unknown,
/// because the import at run time may still succeed.
///
/// # Errors
/// `Some(problem)` if the node is unsupported or invalid for all operands. `None` if every attempt
/// failed only because too little is known about the operands.
pub(super) fn infer_result_types(
    node: &DeferredNode,
    known: &[PartialType],
) -> Result<Vec<PartialType>, Option<Problem>> {
    let unknown_rank: Vec<usize> = (0..known.len()).filter(|&i| known[i].dims.is_none()).collect();
    let mut problems: Vec<(usize, Problem)> = Vec::new();
    for specialization in Specialization::ALL {
        // With several operands of unknown rank, there are too many combinations of ranks and sizes.
        if specialization > Specialization::Ranks && unknown_rank.len() > 1 {
            break;
        }
        let tried_sizes = if specialization == Specialization::Ranks { 1..=1 } else { 1..=4 };
        let (mut inferred, mut successful_ranks): (Option<Vec<PartialType>>, Vec<usize>) =
            (None, Vec::new());
        for (ranks, size) in rank_combinations(unknown_rank.len())
            .flat_map(|r| tried_sizes.clone().map(move |s| (r, s)))
        {
            let rank = |i: usize| if unknown_rank.first() == Some(&i) { ranks.0 } else { ranks.1 };
            let guess =
                |(i, k): (usize, &PartialType)| k.operand_spec(i, rank(i), specialization, size);
            let operands: Vec<OperandSpec> = known.iter().enumerate().map(guess).collect();
            let results = match node.result_types(&operands) {
                Ok(results) => results,
                Err(problem) => {
                    problems.push((ranks.0, problem));
                    continue;
                }
            };
            successful_ranks.push(ranks.0);
            inferred = Some(match inferred {
                None => results,
                Some(before) => {
                    before.into_iter().zip(&results).map(|(a, b)| a.common(b)).collect()
                }
            });
        }
        let Some(mut inferred) = inferred else { continue };
        successful_ranks.dedup();
        if unknown_rank.len() > 1 && successful_ranks.len() < MIN_SUCCESSFUL_RANKS {
            // Untried combinations of ranks may give other result ranks.
            inferred.iter_mut().for_each(|known| known.dims = None);
        }
        return Ok(inferred);
    }
    let unknown = |p: &Problem| p.needs_run_time;
    // Some combinations of ranks were not tried, and sizes and values were not tried at all.
    let untried = unknown_rank.len() > 2
        || unknown_rank.len() > 1 && problems.iter().any(|(_, p)| unknown(p));
    let wrong: Vec<&(usize, Problem)> = problems.iter().filter(|(_, p)| !unknown(p)).collect();
    let alike = wrong.windows(2).all(|pair| pair[0].1.message == pair[1].1.message);
    if !untried && alike {
        return Err(wrong.first().map(|(_, p)| p.clone()));
    }
    // A node may be unsupported at one rank and supported at another. If two ranks fail with the same message, others probably
    // fail, too.
    let refused = wrong.iter().find(|(rank, p)| {
        let again = |(other, q): &(usize, Problem)| other != rank && q.message == p.message;
        p.kind == ProblemKind::Unsupported && wrong.iter().any(|q| again(q))
    });
    if let Some((_, problem)) = refused.filter(|_| unknown_rank.len() < 2) {
        return Err(Some(problem.clone()));
    }
    let graph = node.proto.graph.as_ref();
    let count = graph.map_or(0, |g| g.output.len());
    Ok((0..count).map(|_| PartialType { dtype: None, dims: None }).collect())
}

/// The combinations of ranks that are tried for the operands of unknown rank. Each pair is the rank
/// of the first such operand and the rank of all others.
fn rank_combinations(unknown_rank: usize) -> impl Iterator<Item = (usize, usize)> {
    let first = if unknown_rank == 0 { 0..=0 } else { TRIED_RANKS };
    first.flat_map(move |rank| {
        let mut others = vec![rank];
        if unknown_rank > 1 {
            others.extend((0..=2).filter(|&other| other != rank));
        }
        others.into_iter().map(move |other| (rank, other))
    })
}

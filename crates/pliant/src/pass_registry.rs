//! Finds and runs graph passes and loop passes by name, lists them, and registers user-defined
//! passes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_diag::spelling_suggestions::closest;
use pliant_ir::tir::PrimFunc;
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::{ModulePass, PassContext, PassError};
use pliant_pool::parallel_map;

use crate::error::Error;

/// The level of the program that a pass transforms.
///
/// # Examples
/// ```
/// use pliant::{PassLevel, pass_list};
///
/// let loop_passes = pass_list().into_iter().filter(|pass| pass.level == PassLevel::Loop);
/// assert!(loop_passes.map(|pass| pass.name).any(|name| name == "VectorizeLoop"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassLevel {
    /// A pass on graph functions and the module.
    Graph,
    /// A pass on loop functions, one at a time.
    Loop,
    /// A pipeline: a sequence of passes.
    Pipeline,
    /// A user-defined pass, which may transform any function.
    User,
}

/// The description of a pass in [`pass_list`].
///
/// # Examples
/// ```
/// use pliant::{PassEntry, pass_list};
///
/// let passes: Vec<PassEntry> = pass_list();
/// let fuse = passes.iter().find(|pass| pass.name == "FuseOps").expect("a graph pass");
/// assert_eq!(fuse.phase, Some("fuse"));
/// assert_eq!(fuse.doc, "Group calls of loop functions that can be fused");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PassEntry {
    /// The name of the pass.
    pub name: &'static str,
    /// The effect of the pass, in one line.
    pub doc: &'static str,
    /// The level of the program that the pass transforms.
    pub level: PassLevel,
    /// The compilation phase that a graph pass belongs to, such as `fuse`; `None` for other passes.
    pub phase: Option<&'static str>,
}

/// Returns every pass and pipeline: graph passes and loop passes in the order in which a build runs
/// them, then pipelines and user-defined passes.
///
/// # Examples
/// ```
/// use pliant::{PassLevel, pass_list};
///
/// let passes = pass_list();
/// let legalize = passes.iter().find(|pass| pass.name == "LegalizeOps").expect("a graph pass");
/// assert_eq!(legalize.level, PassLevel::Graph);
/// assert!(passes.iter().any(|pass| pass.level == PassLevel::Pipeline && pass.name == "default"));
/// ```
pub fn pass_list() -> Vec<PassEntry> {
    let graph = pliant_opt::PASSES.iter().map(|p| (p.name, p.doc, p.phase));
    let with_parameters = pliant_opt::passes::WITH_PARAMETERS.iter();
    let with_parameters = with_parameters.map(|&(name, phase, doc)| (name, doc, phase));
    let graph = graph.chain(with_parameters).map(|(name, doc, phase)| PassEntry {
        name,
        doc,
        level: PassLevel::Graph,
        phase: Some(phase.name()),
    });
    let loops = pliant_tir::PASSES.iter();
    let loops =
        loops.map(|p| PassEntry { name: p.name, doc: p.doc, level: PassLevel::Loop, phase: None });
    let pipelines = pliant_opt::pipelines::NAMES.iter();
    let pipelines = pipelines.map(|&name| PassEntry {
        name,
        doc: pliant_opt::pipelines::doc(name),
        level: PassLevel::Pipeline,
        phase: None,
    });
    let user: Vec<PassEntry> = user_passes().iter().map(|p| p.entry).collect();
    graph.chain(loops).chain(pipelines).chain(user).collect()
}

/// Returns the canonical name of a pass, given its canonical name or an alias.
pub(crate) fn canonical_pass_name(name: &str) -> String {
    let info = pliant_opt::PASSES.iter().find(|p| p.aliases.contains(&name));
    info.map_or(name, |p| p.name).to_string()
}

/// Returns the error message if `name` is not the name of a pass or pipeline, with a suggestion if
/// a similar name exists; `None` if the name exists.
///
/// # Examples
/// ```
/// use pliant::unknown_pass;
///
/// assert_eq!(unknown_pass("LegalizeOps"), None);
/// let message = unknown_pass("LegaliseOps").expect("no such pass");
/// assert!(message.contains("did you mean LegalizeOps?"));
/// ```
pub fn unknown_pass(name: &str) -> Option<String> {
    let known = pass_list();
    let canonical = canonical_pass_name(name);
    if known.iter().any(|p| p.name == canonical) {
        return None;
    }
    Some(match suggestion(name, &known) {
        Some(suggestion) => format!("no pass is called '{name}' ({suggestion})"),
        None => format!("no pass is called '{name}'"),
    })
}

fn suggestion(name: &str, known: &[PassEntry]) -> Option<String> {
    let candidates: Vec<&str> = match closest(name, known.iter().map(|p| p.name)) {
        Some(one) => vec![one],
        None => known.iter().map(|p| p.name).filter(|n| shares_word(n, name)).take(4).collect(),
    };
    (!candidates.is_empty()).then(|| format!("did you mean {}?", candidates.join(" or ")))
}

/// A pass that the user registered: its description and its constructor.
struct UserPass {
    entry: PassEntry,
    make: Arc<dyn Fn() -> Box<dyn ModulePass> + Send + Sync>,
}

static USER_PASSES: Mutex<Vec<UserPass>> = Mutex::new(Vec::new());

fn user_passes() -> MutexGuard<'static, Vec<UserPass>> {
    USER_PASSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a user-defined pass: [`find_pass`] and [`transform`] then find it by name, and
/// [`pass_list`] lists it.
///
/// # Examples
/// ```
/// use pliant::{AttrValue, FunctionPass, PassContext, PassError, relax};
///
/// /// Marks every graph function.
/// struct Mark;
///
/// impl FunctionPass for Mark {
///     fn name(&self) -> &str {
///         "Mark"
///     }
///
///     fn run_on(&self, _: &str, f: &mut relax::Function, _: &PassContext) -> Result<(), PassError> {
///         f.attrs.insert("mark".into(), AttrValue::Bool(true));
///         Ok(())
///     }
/// }
///
/// let script = "
/// @R.function
/// def main(x: R.Tensor((\"n\",), \"float32\")) -> R.Tensor((\"n\",), \"float32\"):
///     y = R.add(x, x)
///     return y
/// ";
/// pliant::register_pass("Mark", "Mark every graph function", || Box::new(Mark))?;
/// let module = pliant::parse("example.py", script).map_err(|(error, _)| error)?.module;
///
/// // By name, among other passes:
/// let context = pliant::pass_context(&Default::default());
/// let marked = pliant::transform(module.clone(), &["Mark", "LegalizeOps"], &context)?;
/// assert!(marked.get("main").unwrap().attrs().contains_key("mark"));
///
/// // As a part of a compilation:
/// let passes = vec![pliant::find_pass("Mark")?, Box::new(pliant::pipeline("default")?)];
/// let options = pliant::CompileOptions {
///     pipeline: Some(pliant::Sequential::new("mine", passes).into()),
///     ..Default::default()
/// };
/// let compiled = pliant::compile(module, &options)?;
/// assert!(compiled.module().unwrap().get("main").unwrap().attrs().contains_key("mark"));
/// # Ok::<(), pliant::Error>(())
/// ```
///
/// # Errors
/// A user error if a pass or pipeline has that name.
pub fn register_pass(
    name: &'static str,
    doc: &'static str,
    make: impl Fn() -> Box<dyn ModulePass> + Send + Sync + 'static,
) -> Result<(), Error> {
    if pass_list().iter().any(|known| known.name.eq_ignore_ascii_case(name)) {
        return Err(Error::option(
            format!(
                "the pass '{name}' cannot be registered, because a pass of this name exists already"
            ),
            "register it under another name",
        ));
    }
    let entry = PassEntry { name, doc, level: PassLevel::User, phase: None };
    user_passes().push(UserPass { entry, make: Arc::new(make) });
    Ok(())
}

fn find_user_pass(name: &str) -> Option<Box<dyn ModulePass>> {
    let list = user_passes();
    let make = list.iter().find(|p| p.entry.name.eq_ignore_ascii_case(name))?.make.clone();
    drop(list);
    Some(make())
}

/// Returns the pass or pipeline with that name.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, find_pass, pass_context};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let pass = find_pass("LegalizeOps")?;
/// let module = pass.apply(module, &pass_context(&CompileOptions::default()))?;
/// assert!(pliant::print(&module).contains("call_tir"));
/// assert!(find_pass("LegaliseOps").is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A user error if the name is unknown, with the nearest names, or if the pass takes parameters.
pub fn find_pass(name: &str) -> Result<Box<dyn ModulePass>, Error> {
    if let Some(info) = pliant_opt::passes::find(name) {
        return Ok((info.make)());
    }
    if let Some(pass) = pliant_tir::PASSES.iter().find(|p| p.name.eq_ignore_ascii_case(name)) {
        return Ok(Box::new(LoopPass(pass)));
    }
    if let Some(pipeline) = pliant_opt::pipeline(name) {
        return Ok(Box::new(pipeline));
    }
    if let Some(pass) = find_user_pass(name) {
        return Ok(pass);
    }
    if let Some((name, ..)) = pliant_opt::passes::with_parameters(name) {
        return Err(Error::option(
            format!(
                "the pass '{name}' takes parameters, so it cannot be created from its name alone"
            ),
            format!(
                "construct the pass in Python with relax.transform.{name}(...), in Rust with its type"
            ),
        ));
    }
    let help = suggestion(name, &pass_list())
        .unwrap_or_else(|| "`pliant opt --list` shows all passes".to_string());
    Err(Error::option(format!("there is no pass '{name}'"), help))
}

/// Runs passes by name, one after the other.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, pass_context, transform};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let context = pass_context(&CompileOptions::default());
/// let module = transform(module, &["LegalizeOps", "CallTIRRewrite"], &context)?;
/// assert!(!pliant::print(&module).contains("R.add"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A user error for an unknown name, otherwise the error of the first pass that fails.
pub fn transform(
    module: IRModule,
    names: &[impl AsRef<str>],
    ctx: &PassContext,
) -> Result<IRModule, Error> {
    let passes: Vec<_> =
        names.iter().map(|name| find_pass(name.as_ref())).collect::<Result<_, _>>()?;
    let mut module = module;
    for pass in passes {
        module = pass.apply_as_step(module, ctx)?;
    }
    Ok(module)
}

/// Whether two camel-case pass names share a word of four letters or more. Two words also match if one is a prefix of the other.
fn shares_word(known: &str, name: &str) -> bool {
    let words = |s: &str| -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for c in s.chars() {
            if c.is_uppercase() || out.is_empty() {
                out.push(String::new());
            }
            if let Some(last) = out.last_mut() {
                last.extend(c.to_lowercase());
            }
        }
        out.retain(|w| w.len() > 3);
        out
    };
    let known_words = words(known);
    words(name)
        .iter()
        .any(|w| known_words.iter().any(|h| h.starts_with(w) || w.starts_with(h.as_str())))
}

/// A module pass that runs a loop pass on every loop function, in parallel.
struct LoopPass(&'static pliant_tir::PrimPass);

impl ModulePass for LoopPass {
    fn name(&self) -> &str {
        self.0.name
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let functions: Vec<_> = module
            .functions
            .iter_mut()
            .filter_map(|(name, func)| match func {
                BaseFunc::Prim(func) => Some((name, func)),
                BaseFunc::Relax(_) => None,
            })
            .collect();
        let apply = |(name, func): (&Arc<str>, &mut Arc<PrimFunc>)| {
            if let Err(error) = ctx.check_cancelled() {
                return Some(error);
            }
            let result = pliant_tir::lowering_pipeline::run_pass(self.0, Arc::make_mut(func));
            result.err().map(|e| {
                PassError::unsupported(
                    format!("the pass {} does not support the loop function '{name}'", e.pass),
                    e.message,
                )
            })
        };
        let errors = parallel_map(functions, apply).into_iter().flatten().collect();
        PassError::join(errors).map_or(Ok(module), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_found_by_name_and_near_names_are_suggested() {
        for PassEntry { name, .. } in pass_list() {
            match find_pass(name) {
                Ok(_) => assert!(pliant_opt::passes::with_parameters(name).is_none(), "{name}"),
                Err(e) => assert!(e.to_string().contains("takes parameters"), "{name}: {e}"),
            }
        }
        let Err(error) = find_pass("CallTIRRewriter") else { panic!("no such pass") };
        assert!(error.to_string().contains("CallTIRRewrite"), "{error}");
        let Err(error) = find_pass("xyz") else { panic!("no such pass") };
        assert!(error.to_string().contains("--list"), "{error}");
    }
}

//! Parsing of the signatures of loop functions, and of the declarations of sizes.

use pliant_ir::tir::bind_calls::bind_calls;
use pliant_ir::tir::{PrimFunc, Ty, VarTy};
use pliant_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::parse_ty;
use super::{Local, PrimParser};
use crate::parser_context::ParseContext;
use crate::python::ast::{Expr, ExprKind, FunctionDef, Param};
use crate::script_errors::{ErrorKind, Reported, Res};

/// Parses one loop function of a module.
pub(crate) fn parse_function<'s>(cx: &ParseContext<'s>, def: &FunctionDef<'s>) -> Res<PrimFunc> {
    let mut p = PrimParser {
        cx,
        f: PrimFunc::new(),
        scope: FxHashMap::default(),
        undo: Vec::new(),
        loops: FxHashMap::default(),
        host_vars: FxHashMap::default(),
        untyped_calls: FxHashSet::default(),
        implicit: false,
    };
    p.f.span = cx.span(def.name_range);
    for call in def.decorators.iter().filter_map(Expr::as_call) {
        for (name, value) in crate::module_parser::bool_keywords(
            cx,
            call,
            &["private", "s_tir", "check_well_formed", "tirx"],
        )? {
            p.f.private |= name == "private" && value;
        }
    }
    p.signature(def)?;
    let body = p.stmts(&def.body, None)?;
    p.f.body = body;
    if let Err(why) = bind_calls(&mut p.f) {
        p.error(ErrorKind::Unsupported, def.name_range, why);
    }
    if cx.errors.any() { Err(Reported) } else { Ok(p.f) }
}

impl<'s> PrimParser<'_, 's> {
    fn signature(&mut self, def: &FunctionDef<'s>) -> Res<()> {
        if let Some(range) = def.unsupported {
            let message =
                "the parameters of a loop function can have neither default values nor '*'";
            return Err(self.error(ErrorKind::Unsupported, range, message));
        }
        let mut names = FxHashSet::default();
        for name in &def.type_params {
            let v = self.f.size_var(*name);
            self.define(name, Local::Var(v));
        }
        // Parse scalars first, because the shapes of buffers may use them.
        let mut scalars = FxHashMap::default();
        for param in &def.params {
            if let Some(ty) = self.scalar_param(param) {
                let v = self.f.add_var(param.name, VarTy::Value(ty));
                self.define(param.name, Local::Var(v));
                scalars.insert(param.name, v);
            }
        }
        let mut ok = true;
        for param in &def.params {
            if !names.insert(param.name) {
                let message = format!("two parameters of the function are called '{}'", param.name);
                self.error(ErrorKind::Structure, param.range, message);
                ok = false;
            }
            match scalars.get(param.name) {
                Some(&v) => self.f.params.push(v),
                None => ok &= self.buffer_param(param).is_ok(),
            }
        }
        if ok { Ok(()) } else { Err(Reported) }
    }

    /// The type of a scalar parameter; `None` for parameters that stand for a tensor.
    fn scalar_param(&self, param: &Param<'s>) -> Option<Ty> {
        let e = param.annotation.as_ref()?;
        match &e.kind {
            ExprKind::Str(name) => parse_ty(name),
            _ => parse_ty(&self.tir_name(e)?),
        }
    }

    fn buffer_param(&mut self, param: &Param<'s>) -> Res<()> {
        if let Some(e) = &param.annotation {
            if let Some(args) = self.buffer_args(e) {
                self.implicit = true;
                let data = self.buffer_type(&args, param.name);
                self.implicit = false;
                let data = data.inspect_err(|_| self.define(param.name, Local::Broken))?;
                let b = self.f.add_buffer(data);
                self.f.add_buffer_param(param.name, b);
                self.define(param.name, Local::Buffer(b));
                return Ok(());
            }
            let head = e.as_call().map_or(e, |c| &c.func);
            if !matches!(self.tir_name(head).as_deref(), Some("handle" | "Ptr")) {
                self.define(param.name, Local::Broken);
                let text = crate::parser_context::first_line(self.cx.slice(e.range));
                return Err(self.error_help(
                    ErrorKind::Type,
                    e.range,
                    format!("the annotation `{text}` is not a type of a parameter"),
                    "types are T.handle, T.Buffer((n, 4), \"float32\") and scalars such as T.int64",
                ));
            }
        }
        let v = self.f.add_var(param.name, VarTy::Handle);
        self.f.params.push(v);
        self.define(param.name, Local::Handle(v));
        Ok(())
    }

    /// Whether an expression declares a size: `T.int64()`, `T.var("int64")`, `T.var("n")`.
    pub(super) fn declares_size(&self, e: &Expr<'s>) -> bool {
        match self.tir_call(e) {
            Some((name, call)) => match name.as_str() {
                "var" | "Var" | "size_var" | "SizeVar" => true,
                name => {
                    call.args.is_empty()
                        && crate::parser_context::parse_dtype(name).is_some_and(DType::is_integer)
                }
            },
            None => false,
        }
    }

    /// Parses the size declaration `n = T.int64()`. Sizes are always int64, even if the declaration names another type.
    pub(super) fn declare_size(&mut self, target: &Expr<'s>) -> Res<()> {
        let Some(name) = target.as_name() else {
            return Err(self.error(
                ErrorKind::Structure,
                target.range,
                "a size such as T.int64() must be assigned to a single name",
            ));
        };
        if !matches!(self.scope.get(name), Some(Local::Var(_))) {
            let v = self.f.size_var(name);
            self.define(name, Local::Var(v));
        }
        Ok(())
    }
}

//! The pass manager: error reports for failing passes.

use crate::common::{module, ops};
use pliant_ir::IRModule;
use pliant_pass::{ModulePass, PassContext, PassError};

const SCRIPT: &str =
    "@R.function\ndef main(x: R.Tensor((\"n\",), \"float32\")):\n    y = R.exp(x)\n    return y\n";

struct Fails {
    foreign: bool,
    panics: bool,
}

impl ModulePass for Fails {
    fn name(&self) -> &str {
        "Fails"
    }

    fn foreign(&self) -> bool {
        self.foreign
    }

    fn run(&self, _: IRModule, _: &PassContext) -> Result<IRModule, PassError> {
        assert!(!self.panics, "on purpose");
        Err(PassError::internal("on purpose"))
    }
}

#[test]
fn failures_of_all_passes_are_told_with_the_module_in_a_file() {
    let dir = std::env::temp_dir().join(format!("pliant-manager-{}", std::process::id()));
    let ctx = PassContext { dump_dir: Some(dir.clone()), ..PassContext::new(ops()) };
    for (foreign, panics) in [(false, false), (false, true), (true, false), (true, true)] {
        let error = Fails { foreign, panics }.apply(module(SCRIPT), &ctx).expect_err("it fails");
        let text = error.to_string();
        let (PassError::Internal { dump, .. } | PassError::Foreign { dump, .. }) = error else {
            panic!("{error:?}");
        };
        let path = dump.expect("the module was kept");
        assert!(text.contains("on purpose") && text.contains("Fails"), "{text}");
        assert!(text.contains(&*path.to_string_lossy()), "{text}");
        let written = std::fs::read_to_string(&path).expect("the file is there");
        assert!(written.contains("R.exp(x)"), "{written}");
    }
    std::fs::remove_dir_all(dir).expect("the directory is there");
}

#[test]
fn nothing_is_written_where_nothing_was_kept() {
    let mut ctx = PassContext::new(ops());
    ctx.config.insert("keep_ir".into(), pliant_ir::AttrValue::Bool(false));
    let failing = Fails { foreign: false, panics: true };
    let error = failing.apply(module(SCRIPT), &ctx).expect_err("it fails");
    assert!(matches!(error, PassError::Internal { dump: None, .. }), "{error:?}");
}

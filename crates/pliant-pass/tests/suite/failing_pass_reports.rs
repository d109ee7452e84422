//! Tests of the error reports when a pass fails or panics.

use crate::pattern_test_functions::{module, ops};
use pliant_ir::IRModule;
use pliant_pass::{ModulePass, PassContext, PassError};

const SCRIPT: &str =
    "@R.function\ndef main(x: R.Tensor((\"n\",), \"float32\")):\n    y = R.exp(x)\n    return y\n";

struct Fails {
    user_defined: bool,
    panics: bool,
}

impl ModulePass for Fails {
    fn name(&self) -> &str {
        "Fails"
    }

    fn is_user_defined(&self) -> bool {
        self.user_defined
    }

    fn run(&self, _: IRModule, _: &PassContext) -> Result<IRModule, PassError> {
        assert!(!self.panics, "on purpose");
        Err(PassError::internal("on purpose"))
    }
}

#[test]
fn errors_of_passes_name_the_file_with_the_input_module() {
    let dir = std::env::temp_dir().join(format!("pliant-manager-{}", std::process::id()));
    let ctx = PassContext { dump_dir: Some(dir.clone()), ..PassContext::new(ops()) };
    for (user_defined, panics) in [(false, false), (false, true), (true, false), (true, true)] {
        let error =
            Fails { user_defined, panics }.apply(module(SCRIPT), &ctx).expect_err("it fails");
        let text = error.to_string();
        let (PassError::Internal { dump, .. } | PassError::UserCode { dump, .. }) = error else {
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
fn no_file_is_written_if_the_input_module_was_not_kept() {
    let mut ctx = PassContext::new(ops());
    ctx.config.insert("keep_ir".into(), pliant_ir::AttrValue::Bool(false));
    let failing = Fails { user_defined: false, panics: true };
    let error = failing.apply(module(SCRIPT), &ctx).expect_err("it fails");
    assert!(matches!(error, PassError::Internal { dump: None, .. }), "{error:?}");
}

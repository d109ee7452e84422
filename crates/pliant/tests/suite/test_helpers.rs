//! Helpers of the end-to-end tests: compiling script, and creating and reading tensors.

use pliant::{CompileOptions, Error, IRModule, Model, Tensor, Value};

/// The import line at the start of every script.
pub const HEADER: &str = "from pliant.script import ir as I, relax as R, tir as T\n\n";

/// Parses a script that is given without its import line.
pub fn parse(body: &str) -> IRModule {
    match pliant::parse("test.py", &format!("{HEADER}{body}")) {
        Ok(script) => script.module,
        Err((error, sources)) => panic!("{}", error.render(&sources)),
    }
}

/// Compiles a script, which is given without its import line.
pub fn model(body: &str) -> Model {
    try_model(body).unwrap_or_else(|e| panic!("{e}"))
}

/// Compiles a script, which is given without its import line. Returns the error if that fails.
pub fn try_model(body: &str) -> Result<Model, Error> {
    Model::compile(parse(body), &CompileOptions::default())
}

/// Creates a float32 tensor of that shape with the elements 0, 1, 2, ...
pub fn iota(shape: &[i64]) -> Value {
    let count: i64 = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|i| i as f32).collect();
    tensor(shape, &data)
}

/// Creates a float32 tensor with this shape and these elements.
pub fn tensor(shape: &[i64], data: &[f32]) -> Value {
    Value::Tensor(Tensor::from_slice(shape, data).expect("the data fill the shape"))
}

/// Returns the shape and values of a float32 tensor.
pub fn read(value: &Value) -> (Vec<i64>, Vec<f32>) {
    let tensor = value.as_tensor().expect("a tensor");
    (tensor.shape().to_vec(), tensor.to_vec::<f32>().expect("float32 values"))
}

/// Runs `main` and returns the shape and values of its float32 result.
pub fn run(model: &Model, args: &[Value]) -> (Vec<i64>, Vec<f32>) {
    read(&model.run("main", args).unwrap_or_else(|e| panic!("{e}")))
}

/// Runs `main`, which must fail, and returns the error message.
pub fn fails(model: &Model, args: &[Value]) -> String {
    match model.run("main", args) {
        Ok(value) => panic!("must fail, but gives {value:?}"),
        Err(error) => error.to_string(),
    }
}

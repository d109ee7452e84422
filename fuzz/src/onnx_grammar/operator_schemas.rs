//! Schemas of ONNX operators, which are read from the importer's table.

use std::sync::OnceLock;

/// The schema of one version of an operator.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The domain of the operator; empty for the default domain.
    pub domain: &'static str,
    /// The operator's name.
    pub name: &'static str,
    /// The first opset version with this schema.
    pub since: i64,
    /// The minimum and maximum number of inputs; the maximum is `usize::MAX` for variadic inputs.
    pub inputs: (usize, usize),
    /// The minimum and maximum number of outputs.
    pub outputs: (usize, usize),
    /// The type parameter of each input (empty if it has none), and the letters of its element types.
    pub types: Vec<(&'static str, &'static str)>,
    /// Names of attributes, and whether each of them is required.
    pub attributes: Vec<(&'static str, bool)>,
}

impl Schema {
    /// Returns the name of the operator; an operator of `com.microsoft` has its domain and a dot as
    /// a prefix.
    pub fn full_name(&self) -> String {
        match self.domain {
            "com.microsoft" => format!("{}.{}", self.domain, self.name),
            _ => self.name.into(),
        }
    }

    /// Returns the type parameter and the letters of the element types of input `i`; both empty if
    /// any type is accepted.
    pub fn input_type(&self, i: usize) -> (&'static str, &'static str) {
        self.types.get(i).or(self.types.last()).copied().unwrap_or(("", ""))
    }
}

/// Returns all versions of all operators with a schema in the importer's table. Also returns operators without a schema: some
/// that exist, supported or not, and some names that no operator has.
pub fn schemas() -> &'static [Schema] {
    static TABLE: OnceLock<Vec<Schema>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = include_str!("../../../crates/pliant-onnx/src/generated/schemas.txt");
        let mut all: Vec<Schema> = text.lines().filter_map(schema).collect();
        let unknown =
            ["", "com.microsoft", "ai.onnx.ml", "my.domain"].map(|domain| (domain, "Frob"));
        let simplified =
            ["", "com.microsoft"].map(|domain| (domain, "SimplifiedLayerNormalization"));
        let unsupported = ["StringConcat", "RegexFullMatch", "ImageDecoder"].map(|name| ("", name));
        for (domain, name) in unknown.into_iter().chain(simplified).chain(unsupported) {
            let (inputs, outputs) = ((1, 3), (1, 2));
            let (types, attributes) = (Vec::new(), Vec::new());
            all.push(Schema { domain, name, since: 1, inputs, outputs, types, attributes });
        }
        all
    })
}

fn schema(line: &'static str) -> Option<Schema> {
    let mut words = line.split(' ');
    let domain = words.next().map(|d| if d == "-" { "" } else { d })?;
    let (name, since) = (words.next()?, words.next()?.parse().ok()?);
    let (inputs, outputs) = (range(words.next()?)?, range(words.next()?)?);
    let types = words.next().filter(|w| *w != "-").map_or(Vec::new(), |w| w.split(',').collect());
    let types = types.into_iter().map(|w: &'static str| {
        let w = w.trim_end_matches(['*', '?']);
        w.split_once('=').unwrap_or(("", w))
    });
    let attributes = words.map(|w| w.strip_suffix('!').map_or((w, false), |name| (name, true)));
    let (types, attributes) = (types.collect(), attributes.collect());
    Some(Schema { domain, name, since, inputs, outputs, types, attributes })
}

fn range(word: &str) -> Option<(usize, usize)> {
    let (min, max) = word.split_once('-')?;
    Some((min.parse().ok()?, max.parse().unwrap_or(usize::MAX)))
}

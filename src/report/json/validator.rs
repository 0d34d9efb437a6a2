//! A document against the schema that is published for it.

use std::collections::BTreeSet;

use serde_json::Value;

/// The subset of JSON Schema that ours is written in.
pub struct Validator {
    schema: Value,
    /// Pointers to the properties that some sample had.
    pub seen: BTreeSet<String>,
}

impl Validator {
    pub fn new(schema: &str) -> Self {
        Self { schema: serde_json::from_str(schema).unwrap(), seen: BTreeSet::new() }
    }

    /// Everything that was printed is published; at `at` of the schema.
    pub fn check(&mut self, at: &str, value: &Value, place: &str) {
        let schema = self.schema.pointer(at).unwrap_or_else(|| panic!("{at} is not in the schema")).clone();
        for key in schema.as_object().unwrap().keys() {
            match key.as_str() {
                "$ref" => {
                    let target = schema["$ref"].as_str().unwrap().trim_start_matches('#').to_owned();
                    self.check(&target, value, place);
                }
                "oneOf" if value.is_null() => assert_eq!(schema["oneOf"][1]["type"], "null", "{place}"),
                "oneOf" => self.check(&format!("{at}/oneOf/0"), value, place),
                "type" => {
                    assert!(is_of(value, &schema["type"]), "{place} is {value}, not {}", schema["type"])
                }
                "const" => assert_eq!(*value, schema["const"], "{place}"),
                "enum" => assert!(schema["enum"].as_array().unwrap().contains(value), "{place}: {value}"),
                "minimum" => assert!(value.is_null() || value.as_u64().is_some(), "{place}: {value}"),
                "required" => {
                    for field in schema["required"].as_array().unwrap() {
                        assert!(value.get(field.as_str().unwrap()).is_some(), "{place} lacks {field}");
                    }
                }
                "properties" => {
                    for (field, value) in value.as_object().unwrap() {
                        let at = format!("{at}/properties/{field}");
                        self.seen.insert(at.clone());
                        self.check(&at, value, &format!("{place}.{field}"));
                    }
                }
                "items" => {
                    for value in value.as_array().unwrap() {
                        self.check(&format!("{at}/items"), value, &format!("{place}[]"));
                    }
                }
                "$schema" | "$defs" | "title" | "description" | "format" | "contentEncoding" => {}
                other => panic!("the validator does not know {other}, at {at}"),
            }
        }
    }

    /// Properties that no document had.
    pub fn unseen(&self) -> Vec<String> {
        self.properties().difference(&self.seen).cloned().collect()
    }

    /// Every property that the schema has.
    pub fn properties(&self) -> BTreeSet<String> {
        let defs = self.schema["$defs"].as_object().unwrap().keys().map(|name| format!("/$defs/{name}"));
        let places = std::iter::once(String::new()).chain(defs);
        places
            .flat_map(|at| {
                let fields =
                    self.schema.pointer(&format!("{at}/properties")).unwrap().as_object().unwrap().clone();
                fields.into_iter().map(move |(field, _)| format!("{at}/properties/{field}"))
            })
            .collect()
    }
}

fn is_of(value: &Value, expected: &Value) -> bool {
    let one = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("unknown type {other}"),
    };
    expected.as_array().map_or_else(|| one(expected), |list| list.iter().any(one))
}

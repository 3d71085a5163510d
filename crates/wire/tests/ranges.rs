//! What a schema says of a number is what refuses it: every bound is tried from outside.

use std::collections::BTreeSet;

use leadline_wire::job::Job;
use leadline_wire::schema;
use serde_json::{Map, Value, json};

use crate::examples::right_jobs;

/// The schema of jobs, and the numbers of it that were tried.
struct Tried {
    root: Value,
    numbers: BTreeSet<String>,
}

/// A value one step outside of a bound.
fn outside(bound: &Value, up: bool) -> Value {
    let step = if up { 1 } else { -1 };
    match (bound.as_i64(), bound.as_u64(), bound.as_f64()) {
        (Some(whole), ..) => json!(whole + step),
        (None, Some(_), _) => json!(1.9e19), // more than 64 bits hold
        (None, None, Some(real)) => {
            json!(real + f64::from(step as i32) * real.abs().max(1e-3) * 1e-9)
        }
        _ => unreachable!("a bound is a number"),
    }
}

impl Tried {
    /// A schema without its references, of a value: of several the one whose constants it has.
    fn of<'a>(&'a self, schema: &'a Value, value: &Value) -> &'a Value {
        if let Some(path) = schema["$ref"].as_str() {
            return self.of(self.root.pointer(path.trim_start_matches('#')).unwrap(), value);
        }
        let several = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        let Some(several) = several else { return schema };
        let fits = |schema: &&Value| {
            let schema = self.of(schema, value);
            let properties = schema["properties"].as_object();
            let constants =
                properties.into_iter().flatten().filter(|(_, of)| of["const"].is_string());
            schema["type"] != "null"
                && constants.into_iter().all(|(key, of)| of["const"] == value[key])
        };
        self.of(several.iter().find(fits).unwrap(), value)
    }

    /// Tries every number of `at` in the whole job.
    fn walk(&mut self, schema: &Value, job: &Value, at: &str) {
        let value = job.pointer(at).unwrap().clone();
        let schema = self.of(schema, &value).clone();
        for (key, of) in schema["properties"].as_object().unwrap_or(&Map::new()) {
            let place = format!("{at}/{key}");
            if of["minimum"].is_number() {
                self.try_out(of, job, at, key);
            } else if value[key].is_object() {
                self.walk(of, job, &place);
            } else if let Some(list) = value[key].as_array() {
                for index in 0..list.len() {
                    self.walk(&of["items"], job, &format!("{place}/{index}"));
                }
            }
        }
    }

    fn try_out(&mut self, of: &Value, job: &Value, at: &str, key: &str) {
        for (bound, up) in [("minimum", false), ("maximum", true)] {
            let mut changed = job.clone();
            changed.pointer_mut(at).unwrap()[key] = outside(&of[bound], up);
            let text = changed.to_string();
            let refused = Job::read(&text).err();
            let message = refused.unwrap_or_else(|| panic!("{bound} of {key}: {text}")).message;
            // Either its type is too small for it, or it is out of exactly this range.
            let (low, high) = (plain(&of["minimum"]), plain(&of["maximum"]));
            let range = format!("; it must be {low} to {high} (");
            let by_range = message.contains(&format!("{key} is ")) && message.contains(&range);
            let by_type = message.contains(": invalid ");
            assert!(by_range || by_type, "{message}\nnot {key}{range}");
        }
        self.numbers.insert(format!("{} {key}", job["kind"]));
    }
}

/// A number as Rust writes it.
fn plain(number: &Value) -> String {
    let whole = number.as_u64().map(|whole| whole.to_string());
    whole.unwrap_or_else(|| number.as_f64().unwrap().to_string())
}

/// Every number of a schema, wherever it stands.
fn numbers(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            for (key, of) in
                object.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                if of["minimum"].is_number() {
                    found.insert(key.clone());
                }
            }
            object.values().for_each(|inner| numbers(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| numbers(inner, found)),
        _ => {}
    }
}

#[test]
fn a_number_is_refused_by_the_range_that_its_schema_says() {
    let [(_, text), _] = schema::files();
    let mut tried = Tried { root: serde_json::from_str(&text).unwrap(), numbers: BTreeSet::new() };
    let root = tried.root.clone();
    for (_, text) in right_jobs() {
        tried.walk(&root, &serde_json::from_str(&text).unwrap(), "");
    }
    let mut all = BTreeSet::new();
    numbers(&root, &mut all);
    let seen =
        |name: &String| tried.numbers.iter().any(|tried| tried.ends_with(&format!(" {name}")));
    let unseen: Vec<_> = all.into_iter().filter(|name| !seen(name)).collect();
    assert!(unseen.is_empty(), "no example has {unseen:?}");
    assert!(tried.numbers.len() >= 60, "{:?}", tried.numbers);
}

#[test]
fn every_number_of_a_job_has_both_ends_of_its_range() {
    let [(_, text), _] = schema::files();
    let root: Value = serde_json::from_str(&text).unwrap();
    let mut open = Vec::new();
    visit(&root, &mut |key, of| {
        let number = ["integer", "number"].iter().any(|kind| {
            of["type"] == *kind
                || of["type"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))
        });
        let told = (of["minimum"].is_number() && of["maximum"].is_number())
            || !of["const"].is_null()
            || !of["enum"].is_null();
        if number && !told {
            open.push(key.to_owned());
        }
    });
    assert_eq!(open, Vec::<String>::new());
}

fn visit(schema: &Value, each: &mut impl FnMut(&str, &Value)) {
    match schema {
        Value::Object(object) => {
            for (key, of) in
                object.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                each(key, of);
            }
            object.values().for_each(|inner| visit(inner, each));
        }
        Value::Array(list) => list.iter().for_each(|inner| visit(inner, each)),
        _ => {}
    }
}

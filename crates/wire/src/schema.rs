//! The JSON Schemas under `protocol/`, made from the types and their ranges.

use std::ops::RangeInclusive;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::WIRE_VERSION;
use crate::event::Event;
use crate::job::Job;

/// Every schema, as the name of its file under `protocol/` and what that holds.
#[must_use]
pub fn files() -> [(&'static str, String); 2] {
    let settings = SchemaSettings::draft2020_12;
    let jobs = settings().with_transform(RecursiveTransform(bounded_by_type));
    let events = settings().for_serialize().with_transform(RecursiveTransform(never_below_zero));
    [
        ("job.schema.json", text::<Job>(jobs, "Leadline job, version 1", "job.schema.json")),
        (
            "event.schema.json",
            text::<Event>(events, "Leadline event, version 1", "event.schema.json"),
        ),
    ]
}

fn text<T: JsonSchema>(settings: SchemaSettings, title: &str, file: &str) -> String {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let id = format!("https://leadline.invalid/protocol/{WIRE_VERSION}/{file}");
    schema.insert("$id".to_owned(), id.into());
    format!("{:#}\n", schema.to_value())
}

/// A number within the range that validation holds it to.
pub(crate) fn bounded<T: Into<Value>>(range: RangeInclusive<T>) -> impl FnMut(&mut Schema) {
    let (low, high) = range.into_inner();
    let (low, high) = (low.into(), high.into());
    move |schema| {
        schema.insert("minimum".to_owned(), low.clone());
        schema.insert("maximum".to_owned(), high.clone());
    }
}

/// Numbers of a list within the range that validation holds each to.
pub(crate) fn bounded_items<T: Into<Value>>(range: RangeInclusive<T>) -> impl FnMut(&mut Schema) {
    let (low, high) = range.into_inner();
    let (low, high) = (low.into(), high.into());
    move |schema| {
        if let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) {
            items.insert("minimum".to_owned(), low.clone());
            items.insert("maximum".to_owned(), high.clone());
        }
    }
}

/// As many elements as validation allows.
pub(crate) fn counted(range: RangeInclusive<usize>) -> impl FnMut(&mut Schema) {
    move |schema| {
        schema.insert("minItems".to_owned(), (*range.start()).into());
        schema.insert("maxItems".to_owned(), (*range.end()).into());
    }
}

/// A text, or texts in a list, of this form.
pub(crate) fn pattern(regex: &'static str) -> impl FnMut(&mut Schema) {
    move |schema| {
        let items = schema.get_mut("items").and_then(Value::as_object_mut);
        match items {
            Some(items) => items.insert("pattern".to_owned(), regex.into()),
            None => schema.insert("pattern".to_owned(), regex.into()),
        };
    }
}

/// One of these words.
pub(crate) fn words(known: &'static [&'static str]) -> impl FnMut(&mut Schema) {
    move |schema| {
        schema.insert("enum".to_owned(), json!(known));
    }
}

/// The one version that is spoken.
pub(crate) fn version(schema: &mut Schema) {
    schema.insert("const".to_owned(), WIRE_VERSION.into());
}

/// A field that is there, and no null, under this condition; otherwise null or not there.
pub(crate) fn only_if(schema: &mut Schema, condition: &Value, (field, kind): (&str, &str)) {
    let rule = json!({
        "if": {"properties": condition},
        "then": {"required": [field], "properties": {field: {"type": kind}}},
        "else": {"properties": {field: {"type": "null"}}},
    });
    let rules = schema.ensure_object().entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(rules) = rules {
        rules.push(rule);
    }
}

/// Lines of a comment are one sentence, and a format says nothing that its bounds do not.
fn tidied(schema: &mut Schema) -> Option<String> {
    if let Some(Value::String(said)) = schema.get_mut("description") {
        *said = said.replace('\n', " ");
    }
    let format = schema.remove("format")?;
    format.as_str().map(str::to_owned)
}

/// What a type can hold is a bound too, where no range is narrower.
fn bounded_by_type(schema: &mut Schema) {
    let most = match tidied(schema).as_deref() {
        Some("uint32") => u64::from(u32::MAX),
        Some("uint64") => u64::MAX,
        _ => return,
    };
    schema.ensure_object().entry("maximum").or_insert(most.into());
}

/// Nothing that is counted or measured is below 0.
fn never_below_zero(schema: &mut Schema) {
    tidied(schema);
    if schema_has(schema, "number") {
        schema.ensure_object().entry("minimum").or_insert(0.into());
    }
}

fn schema_has(schema: &Schema, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|each| each == kind),
        _ => false,
    }
}

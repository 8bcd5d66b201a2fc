//! Checks JSON against a schema of the description, with the parts of JSON Schema that the description uses.

use serde_json::Value;

/// Returns how a value violates the schema; references resolve in `description`.
pub(super) fn fault(value: &Value, schema: &Value, description: &Value) -> Option<String> {
    check(value, schema, description, true).err()
}

/// `is_whole`: no other schema describes further properties.
fn check(value: &Value, schema: &Value, description: &Value, is_whole: bool) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let found =
            description.pointer(reference.trim_start_matches('#')).ok_or_else(|| format!("{reference}: dangling"))?;
        return check(value, found, description, is_whole);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut described = Vec::new();
        for part in parts {
            check(value, part, description, false)?;
            properties(part, description, &mut described);
        }
        return no_others(value, &described);
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(parts) = schema[choice].as_array() {
            let faults: Vec<String> = parts.iter().filter_map(|part| fault(value, part, description)).collect();
            return if faults.len() < parts.len() { Ok(()) } else { Err(faults.join(" and ")) };
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        Value::String(only) => vec![only],
        // Without a type, any value is valid.
        _ => return Ok(()),
    };
    let is = |wanted: &&str| match *wanted {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    if !types.iter().any(is) {
        return Err(format!("{value} is not one of {types:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        check(item, &schema["items"], description, true)?;
    }
    let Some(object) = value.as_object() else { return Ok(()) };
    for required in schema["required"].as_array().into_iter().flatten() {
        let name = required.as_str().expect("names");
        object.get(name).ok_or_else(|| format!("{name} is missing in {value}"))?;
    }
    let described = schema["properties"].as_object();
    for (name, value) in object {
        match described.and_then(|described| described.get(name)) {
            Some(schema) => check(value, schema, description, true).map_err(|fault| format!("{name}: {fault}"))?,
            None if schema["additionalProperties"].is_object() => {
                check(value, &schema["additionalProperties"], description, true)?;
            }
            None => {}
        }
    }
    match described {
        Some(described) if is_whole || schema["additionalProperties"] == false => {
            no_others(value, &described.keys().cloned().collect::<Vec<_>>())
        }
        _ => Ok(()),
    }
}

/// Collects the names of the properties that a schema describes.
fn properties(schema: &Value, description: &Value, names: &mut Vec<String>) {
    let target = match schema["$ref"].as_str() {
        Some(reference) => description.pointer(reference.trim_start_matches('#')).unwrap_or(schema),
        None => schema,
    };
    names.extend(target["properties"].as_object().into_iter().flat_map(|described| described.keys().cloned()));
}

fn no_others(value: &Value, described: &[String]) -> Result<(), String> {
    let mut names = value.as_object().into_iter().flat_map(|object| object.keys());
    match names.find(|name| !described.contains(name)) {
        Some(name) => Err(format!("{name} is not described")),
        None => Ok(()),
    }
}

#[test]
fn what_is_not_as_described_is_found() {
    use serde_json::json;
    let description =
        json!({"defs": {"a": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}}});
    let schema = json!({"$ref": "#/defs/a"});
    assert_eq!(fault(&json!({"n": 1}), &schema, &description), None);
    for wrong in [json!({}), json!({"n": "1"}), json!({"n": 1, "m": 2}), json!([]), json!(null)] {
        assert!(fault(&wrong, &schema, &description).is_some(), "{wrong}");
    }
    let both =
        json!({"allOf": [{"$ref": "#/defs/a"}, {"type": "object", "properties": {"m": {"type": ["string", "null"]}}}]});
    assert_eq!(fault(&json!({"n": 1, "m": null}), &both, &description), None);
    assert!(fault(&json!({"n": 1, "m": 2}), &both, &description).is_some());
    assert!(fault(&json!({"n": 1, "o": 2}), &both, &description).is_some());
    let closed = json!({"allOf": [
        {"type": "object", "properties": {"n": {}}, "additionalProperties": false},
        {"type": "object", "properties": {"m": {}}},
    ]});
    assert!(
        fault(&json!({"n": 1, "m": 2}), &closed, &description).is_some(),
        "no part allows properties of another part"
    );
}

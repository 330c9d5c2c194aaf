//! What expressions see: `.Name`, `.Namespace`, `.Labels` and `.Spec`, with the names and types that Go gives them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use serde_json::Value as Json;

use super::ServiceIdentity;
use crate::merge::{Field, Kind, Schema, service_spec};
use crate::template::{Field as TemplateField, Shape, Type, Value};

/// The types of a spec and of what is around it, made once from the tables that the merge uses.
static TYPES: LazyLock<(Type, Arc<Shape>)> = LazyLock::new(|| {
    let spec = Type::Record(shape(service_spec(), &mut HashMap::new()));
    let fields = vec![
        TemplateField::new("Name", "", Type::String),
        TemplateField::new("Namespace", "", Type::String),
        TemplateField::new("Labels", "", Type::map(Type::String)),
        TemplateField::new("Spec", "", spec.clone()),
    ];
    (spec, Shape::new("InferenceService", fields))
});

/// The value of dot for a service with this merged, not yet rendered spec.
///
/// # Errors
/// A message that names the path of a value of the wrong type.
pub(super) fn dot(service: &ServiceIdentity<'_>, spec: &Json) -> Result<Value, String> {
    let (spec_type, root) = &*TYPES;
    let spec = Value::from_json_as(spec, spec_type)?;
    let labels = Value::string_map(service.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let fields = BTreeMap::from([
        ("Name", Value::string(service.name)),
        ("Namespace", Value::string(service.namespace)),
        ("Labels", labels),
        ("Spec", spec),
    ]);
    Ok(Value::record(root, fields))
}

fn shape(schema: &'static Schema, known: &mut HashMap<&'static str, Arc<Shape>>) -> Arc<Shape> {
    if let Some(shape) = known.get(schema.name) {
        return Arc::clone(shape);
    }
    let fields = schema.fields.iter().map(|field| template_field(field, known)).collect();
    let shape = Shape::new(schema.name, fields);
    known.insert(schema.name, Arc::clone(&shape));
    shape
}

fn template_field(field: &'static Field, known: &mut HashMap<&'static str, Arc<Shape>>) -> TemplateField {
    let kind = match field.kind {
        Kind::String => Type::String,
        Kind::Bool => Type::Bool,
        Kind::Int32 => Type::Int32,
        Kind::Int64 => Type::Int64,
        Kind::Quantity => Type::Text("Quantity".into()),
        Kind::IntOrString => Type::Text("IntOrString".into()),
        Kind::Time => Type::Text("Time".into()),
        Kind::Opaque => Type::Any,
        // Go embeds an object's metadata, so that its fields can be named without it.
        Kind::Struct(inner) if field.go == "ObjectMeta" => return TemplateField::embedded(field.go, field.json, &shape(inner, known)),
        Kind::Struct(inner) => Type::Record(shape(inner, known)),
        Kind::Strings => Type::list(Type::String),
        Kind::Int32s => Type::list(Type::Int32),
        Kind::Int64s => Type::list(Type::Int64),
        Kind::Structs(inner) => Type::list(Type::Record(shape(inner, known))),
        Kind::StringMap => Type::map(Type::String),
        Kind::QuantityMap => Type::map(Type::Text("Quantity".into())),
    };
    TemplateField::new(field.go, field.json, if field.pointer { Type::pointer(kind) } else { kind })
}

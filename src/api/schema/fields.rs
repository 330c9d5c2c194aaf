//! Schemas of fields whose Rust type comes from Kubernetes and says too little, or says it in other words than ours.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Conditions with the limits of Kubernetes' own.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": { "type": "string", "format": "date-time", "description": "When the status changed last." },
                "message": { "type": "string", "maxLength": 32768, "description": "What it means, for people." },
                "observedGeneration": {
                    "type": "integer", "format": "int64", "minimum": 0,
                    "description": "Generation of the object that the condition was made for."
                },
                "reason": {
                    "type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why the status is what it is, one of a fixed list."
                },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds." },
                "type": {
                    "type": "string", "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    "description": "What the condition is about."
                }
            }
        }
    })
}

/// Objects that are carried as they are. Conditions of a workload come here: those of a Deployment have a field more
/// than Kubernetes' common form, and may lack a reason.
pub(crate) fn open_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true }
    })
}

/// A number from 0 on, or a percentage.
pub(crate) fn number_or_percent(_: &mut SchemaGenerator) -> Schema {
    int_or_string("^[0-9]+%$")
}

/// A number from 0 on, or a percentage up to 100.
pub(crate) fn number_or_percent_to_100(_: &mut SchemaGenerator) -> Schema {
    int_or_string("^0*(100|[0-9]{1,2})%$")
}

/// The pattern counts for text, the minimum for numbers.
fn int_or_string(pattern: &str) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "pattern": pattern
    })
}

/// A label selector, without Kubernetes' descriptions.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object", "additionalProperties": { "type": "string" },
                "description": "Labels that must have these values."
            },
            "matchExpressions": {
                "type": "array", "x-kubernetes-list-type": "atomic",
                "description": "Further requirements; all must hold.",
                "items": {
                    "type": "object", "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string", "minLength": 1, "description": "Key of the label." },
                        "operator": {
                            "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                            "description": "How the label relates to the values."
                        },
                        "values": {
                            "type": "array", "x-kubernetes-list-type": "atomic", "items": { "type": "string" },
                            "description": "Values, for In and NotIn."
                        }
                    }
                }
            }
        }
    })
}

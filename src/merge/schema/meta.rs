//! Object metadata, selectors and references that several kinds share.

use super::Kind::{Bool, Int64, Opaque, Quantity, String, StringMap, Strings, Structs, Time};
use super::{Schema, field, pointer};

pub(super) static OBJECT_META: Schema = Schema {
    name: "ObjectMeta",
    fields: &[
        field("name", "Name", String),
        field("generateName", "GenerateName", String),
        field("namespace", "Namespace", String),
        field("selfLink", "SelfLink", String),
        field("uid", "UID", String),
        field("resourceVersion", "ResourceVersion", String),
        field("generation", "Generation", Int64),
        field("creationTimestamp", "CreationTimestamp", Time),
        pointer("deletionTimestamp", "DeletionTimestamp", Time),
        pointer("deletionGracePeriodSeconds", "DeletionGracePeriodSeconds", Int64),
        field("labels", "Labels", StringMap),
        field("annotations", "Annotations", StringMap),
        field("ownerReferences", "OwnerReferences", Structs(&OWNER_REFERENCE)).merged_by("uid"),
        field("finalizers", "Finalizers", Strings).merged(),
        field("managedFields", "ManagedFields", Structs(&MANAGED_FIELDS_ENTRY)),
    ],
};

static OWNER_REFERENCE: Schema = Schema {
    name: "OwnerReference",
    fields: &[
        field("apiVersion", "APIVersion", String),
        field("kind", "Kind", String),
        field("name", "Name", String),
        field("uid", "UID", String),
        pointer("controller", "Controller", Bool),
        pointer("blockOwnerDeletion", "BlockOwnerDeletion", Bool),
    ],
};

static MANAGED_FIELDS_ENTRY: Schema = Schema {
    name: "ManagedFieldsEntry",
    fields: &[
        field("manager", "Manager", String),
        field("operation", "Operation", String),
        field("apiVersion", "APIVersion", String),
        pointer("time", "Time", Time),
        field("fieldsType", "FieldsType", String),
        pointer("fieldsV1", "FieldsV1", Opaque),
        field("subresource", "Subresource", String),
    ],
};

pub(super) static LABEL_SELECTOR: Schema = Schema {
    name: "LabelSelector",
    fields: &[
        field("matchLabels", "MatchLabels", StringMap),
        field("matchExpressions", "MatchExpressions", Structs(&LABEL_SELECTOR_REQUIREMENT)),
    ],
};

static LABEL_SELECTOR_REQUIREMENT: Schema = Schema {
    name: "LabelSelectorRequirement",
    fields: &[field("key", "Key", String), field("operator", "Operator", String), field("values", "Values", Strings)],
};

pub(super) static LOCAL_OBJECT_REFERENCE: Schema = Schema { name: "LocalObjectReference", fields: &[field("name", "Name", String)] };

pub(super) static TYPED_LOCAL_OBJECT_REFERENCE: Schema = Schema {
    name: "TypedLocalObjectReference",
    fields: &[pointer("apiGroup", "APIGroup", String), field("kind", "Kind", String), field("name", "Name", String)],
};

pub(super) static TYPED_OBJECT_REFERENCE: Schema = Schema {
    name: "TypedObjectReference",
    fields: &[
        pointer("apiGroup", "APIGroup", String),
        field("kind", "Kind", String),
        field("name", "Name", String),
        pointer("namespace", "Namespace", String),
    ],
};

pub(super) static OBJECT_FIELD_SELECTOR: Schema =
    Schema { name: "ObjectFieldSelector", fields: &[field("apiVersion", "APIVersion", String), field("fieldPath", "FieldPath", String)] };

pub(super) static RESOURCE_FIELD_SELECTOR: Schema = Schema {
    name: "ResourceFieldSelector",
    fields: &[
        field("containerName", "ContainerName", String),
        field("resource", "Resource", String),
        field("divisor", "Divisor", Quantity),
    ],
};

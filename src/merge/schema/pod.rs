//! The pod template itself.

use super::Kind::{Bool, Int32, Int64, Int64s, QuantityMap, String, StringMap, Strings, Struct, Structs};
use super::container::{
    APP_ARMOR_PROFILE, CONTAINER, EPHEMERAL_CONTAINER, RESOURCE_REQUIREMENTS, SE_LINUX_OPTIONS, SECCOMP_PROFILE,
    WINDOWS_SECURITY_CONTEXT_OPTIONS,
};
use super::meta::{LOCAL_OBJECT_REFERENCE, OBJECT_META};
use super::scheduling::{AFFINITY, POD_SCHEDULING_GATE, POD_SCHEDULING_GROUP, TOLERATION, TOPOLOGY_SPREAD_CONSTRAINT};
use super::volume::VOLUME;
use super::{Schema, field, pointer};

static EVICTION_RESPONDER: Schema =
    Schema { name: "EvictionResponder", fields: &[field("name", "Name", String), pointer("priority", "Priority", Int32)] };

static HOST_ALIAS: Schema = Schema { name: "HostAlias", fields: &[field("ip", "IP", String), field("hostnames", "Hostnames", Strings)] };

static POD_DNS_CONFIG: Schema = Schema {
    name: "PodDNSConfig",
    fields: &[
        field("nameservers", "Nameservers", Strings),
        field("searches", "Searches", Strings),
        field("options", "Options", Structs(&POD_DNS_CONFIG_OPTION)),
    ],
};

static POD_DNS_CONFIG_OPTION: Schema =
    Schema { name: "PodDNSConfigOption", fields: &[field("name", "Name", String), pointer("value", "Value", String)] };

static POD_OS: Schema = Schema { name: "PodOS", fields: &[field("name", "Name", String)] };

static POD_READINESS_GATE: Schema = Schema { name: "PodReadinessGate", fields: &[field("conditionType", "ConditionType", String)] };

static POD_RESOURCE_CLAIM: Schema = Schema {
    name: "PodResourceClaim",
    fields: &[
        field("name", "Name", String),
        pointer("resourceClaimName", "ResourceClaimName", String),
        pointer("resourceClaimTemplateName", "ResourceClaimTemplateName", String),
    ],
};

static POD_SECURITY_CONTEXT: Schema = Schema {
    name: "PodSecurityContext",
    fields: &[
        pointer("seLinuxOptions", "SELinuxOptions", Struct(&SE_LINUX_OPTIONS)),
        pointer("windowsOptions", "WindowsOptions", Struct(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
        pointer("runAsUser", "RunAsUser", Int64),
        pointer("runAsGroup", "RunAsGroup", Int64),
        pointer("runAsNonRoot", "RunAsNonRoot", Bool),
        field("supplementalGroups", "SupplementalGroups", Int64s),
        pointer("supplementalGroupsPolicy", "SupplementalGroupsPolicy", String),
        pointer("fsGroup", "FSGroup", Int64),
        field("sysctls", "Sysctls", Structs(&SYSCTL)),
        pointer("fsGroupChangePolicy", "FSGroupChangePolicy", String),
        pointer("seccompProfile", "SeccompProfile", Struct(&SECCOMP_PROFILE)),
        pointer("appArmorProfile", "AppArmorProfile", Struct(&APP_ARMOR_PROFILE)),
        pointer("seLinuxChangePolicy", "SELinuxChangePolicy", String),
    ],
};

static POD_SPEC: Schema = Schema {
    name: "PodSpec",
    fields: &[
        field("volumes", "Volumes", Structs(&VOLUME)).merged_by("name"),
        field("initContainers", "InitContainers", Structs(&CONTAINER)).merged_by("name"),
        field("containers", "Containers", Structs(&CONTAINER)).merged_by("name"),
        field("ephemeralContainers", "EphemeralContainers", Structs(&EPHEMERAL_CONTAINER)).merged_by("name"),
        field("restartPolicy", "RestartPolicy", String),
        pointer("terminationGracePeriodSeconds", "TerminationGracePeriodSeconds", Int64),
        pointer("activeDeadlineSeconds", "ActiveDeadlineSeconds", Int64),
        field("dnsPolicy", "DNSPolicy", String),
        field("nodeSelector", "NodeSelector", StringMap),
        field("serviceAccountName", "ServiceAccountName", String),
        field("serviceAccount", "DeprecatedServiceAccount", String),
        pointer("automountServiceAccountToken", "AutomountServiceAccountToken", Bool),
        field("nodeName", "NodeName", String),
        field("hostNetwork", "HostNetwork", Bool),
        field("hostPID", "HostPID", Bool),
        field("hostIPC", "HostIPC", Bool),
        pointer("shareProcessNamespace", "ShareProcessNamespace", Bool),
        pointer("securityContext", "SecurityContext", Struct(&POD_SECURITY_CONTEXT)),
        field("imagePullSecrets", "ImagePullSecrets", Structs(&LOCAL_OBJECT_REFERENCE)).merged_by("name"),
        field("hostname", "Hostname", String),
        field("subdomain", "Subdomain", String),
        pointer("affinity", "Affinity", Struct(&AFFINITY)),
        field("schedulerName", "SchedulerName", String),
        field("tolerations", "Tolerations", Structs(&TOLERATION)),
        field("hostAliases", "HostAliases", Structs(&HOST_ALIAS)).merged_by("ip"),
        field("priorityClassName", "PriorityClassName", String),
        pointer("priority", "Priority", Int32),
        pointer("dnsConfig", "DNSConfig", Struct(&POD_DNS_CONFIG)),
        field("readinessGates", "ReadinessGates", Structs(&POD_READINESS_GATE)),
        pointer("runtimeClassName", "RuntimeClassName", String),
        pointer("enableServiceLinks", "EnableServiceLinks", Bool),
        pointer("preemptionPolicy", "PreemptionPolicy", String),
        field("overhead", "Overhead", QuantityMap),
        field("topologySpreadConstraints", "TopologySpreadConstraints", Structs(&TOPOLOGY_SPREAD_CONSTRAINT)).merged_by("topologyKey"),
        pointer("setHostnameAsFQDN", "SetHostnameAsFQDN", Bool),
        pointer("os", "OS", Struct(&POD_OS)),
        pointer("hostUsers", "HostUsers", Bool),
        field("schedulingGates", "SchedulingGates", Structs(&POD_SCHEDULING_GATE)).merged_by("name"),
        field("resourceClaims", "ResourceClaims", Structs(&POD_RESOURCE_CLAIM)).merged_by("name"),
        pointer("resources", "Resources", Struct(&RESOURCE_REQUIREMENTS)),
        pointer("hostnameOverride", "HostnameOverride", String),
        pointer("schedulingGroup", "SchedulingGroup", Struct(&POD_SCHEDULING_GROUP)),
        field("evictionResponders", "EvictionResponders", Structs(&EVICTION_RESPONDER)).merged_by("name"),
    ],
};

pub(super) static POD_TEMPLATE_SPEC: Schema = Schema {
    name: "PodTemplateSpec",
    fields: &[field("metadata", "ObjectMeta", Struct(&OBJECT_META)), field("spec", "Spec", Struct(&POD_SPEC))],
};

static SYSCTL: Schema = Schema { name: "Sysctl", fields: &[field("name", "Name", String), field("value", "Value", String)] };

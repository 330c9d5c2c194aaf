//! Containers: environment, ports, probes, resources and security.

use super::Kind::{Bool, Int32, Int32s, Int64, IntOrString, QuantityMap, String, Strings, Struct, Structs};
use super::meta::{OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR};
use super::{Schema, field, pointer};

pub(super) static APP_ARMOR_PROFILE: Schema =
    Schema { name: "AppArmorProfile", fields: &[field("type", "Type", String), pointer("localhostProfile", "LocalhostProfile", String)] };

static CAPABILITIES: Schema = Schema { name: "Capabilities", fields: &[field("add", "Add", Strings), field("drop", "Drop", Strings)] };

static CONFIG_MAP_ENV_SOURCE: Schema =
    Schema { name: "ConfigMapEnvSource", fields: &[field("name", "Name", String), pointer("optional", "Optional", Bool)] };

static CONFIG_MAP_KEY_SELECTOR: Schema = Schema {
    name: "ConfigMapKeySelector",
    fields: &[field("name", "Name", String), field("key", "Key", String), pointer("optional", "Optional", Bool)],
};

pub(super) static CONTAINER: Schema = Schema {
    name: "Container",
    fields: &[
        field("name", "Name", String),
        field("image", "Image", String),
        field("command", "Command", Strings),
        field("args", "Args", Strings),
        field("workingDir", "WorkingDir", String),
        field("ports", "Ports", Structs(&CONTAINER_PORT)).merged_by("containerPort"),
        field("envFrom", "EnvFrom", Structs(&ENV_FROM_SOURCE)),
        field("env", "Env", Structs(&ENV_VAR)).merged_by("name"),
        field("resources", "Resources", Struct(&RESOURCE_REQUIREMENTS)),
        field("resizePolicy", "ResizePolicy", Structs(&CONTAINER_RESIZE_POLICY)),
        pointer("restartPolicy", "RestartPolicy", String),
        field("restartPolicyRules", "RestartPolicyRules", Structs(&CONTAINER_RESTART_RULE)),
        field("volumeMounts", "VolumeMounts", Structs(&VOLUME_MOUNT)).merged_by("mountPath"),
        field("volumeDevices", "VolumeDevices", Structs(&VOLUME_DEVICE)).merged_by("devicePath"),
        pointer("livenessProbe", "LivenessProbe", Struct(&PROBE)),
        pointer("readinessProbe", "ReadinessProbe", Struct(&PROBE)),
        pointer("startupProbe", "StartupProbe", Struct(&PROBE)),
        pointer("lifecycle", "Lifecycle", Struct(&LIFECYCLE)),
        field("terminationMessagePath", "TerminationMessagePath", String),
        field("terminationMessagePolicy", "TerminationMessagePolicy", String),
        field("imagePullPolicy", "ImagePullPolicy", String),
        pointer("securityContext", "SecurityContext", Struct(&SECURITY_CONTEXT)),
        field("stdin", "Stdin", Bool),
        field("stdinOnce", "StdinOnce", Bool),
        field("tty", "TTY", Bool),
    ],
};

static CONTAINER_PORT: Schema = Schema {
    name: "ContainerPort",
    fields: &[
        field("name", "Name", String),
        field("hostPort", "HostPort", Int32),
        field("containerPort", "ContainerPort", Int32),
        field("protocol", "Protocol", String),
        field("hostIP", "HostIP", String),
    ],
};

static CONTAINER_RESIZE_POLICY: Schema = Schema {
    name: "ContainerResizePolicy",
    fields: &[field("resourceName", "ResourceName", String), field("restartPolicy", "RestartPolicy", String)],
};

static CONTAINER_RESTART_RULE: Schema = Schema {
    name: "ContainerRestartRule",
    fields: &[field("action", "Action", String), pointer("exitCodes", "ExitCodes", Struct(&CONTAINER_RESTART_RULE_ON_EXIT_CODES))],
};

static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Schema =
    Schema { name: "ContainerRestartRuleOnExitCodes", fields: &[field("operator", "Operator", String), field("values", "Values", Int32s)] };

static ENV_FROM_SOURCE: Schema = Schema {
    name: "EnvFromSource",
    fields: &[
        field("prefix", "Prefix", String),
        pointer("configMapRef", "ConfigMapRef", Struct(&CONFIG_MAP_ENV_SOURCE)),
        pointer("secretRef", "SecretRef", Struct(&SECRET_ENV_SOURCE)),
    ],
};

static ENV_VAR: Schema = Schema {
    name: "EnvVar",
    fields: &[field("name", "Name", String), field("value", "Value", String), pointer("valueFrom", "ValueFrom", Struct(&ENV_VAR_SOURCE))],
};

static ENV_VAR_SOURCE: Schema = Schema {
    name: "EnvVarSource",
    fields: &[
        pointer("fieldRef", "FieldRef", Struct(&OBJECT_FIELD_SELECTOR)),
        pointer("resourceFieldRef", "ResourceFieldRef", Struct(&RESOURCE_FIELD_SELECTOR)),
        pointer("configMapKeyRef", "ConfigMapKeyRef", Struct(&CONFIG_MAP_KEY_SELECTOR)),
        pointer("secretKeyRef", "SecretKeyRef", Struct(&SECRET_KEY_SELECTOR)),
        pointer("fileKeyRef", "FileKeyRef", Struct(&FILE_KEY_SELECTOR)),
    ],
};

pub(super) static EPHEMERAL_CONTAINER: Schema = Schema {
    name: "EphemeralContainer",
    fields: &[
        field("name", "Name", String),
        field("image", "Image", String),
        field("command", "Command", Strings),
        field("args", "Args", Strings),
        field("workingDir", "WorkingDir", String),
        field("ports", "Ports", Structs(&CONTAINER_PORT)).merged_by("containerPort"),
        field("envFrom", "EnvFrom", Structs(&ENV_FROM_SOURCE)),
        field("env", "Env", Structs(&ENV_VAR)).merged_by("name"),
        field("resources", "Resources", Struct(&RESOURCE_REQUIREMENTS)),
        field("resizePolicy", "ResizePolicy", Structs(&CONTAINER_RESIZE_POLICY)),
        pointer("restartPolicy", "RestartPolicy", String),
        field("restartPolicyRules", "RestartPolicyRules", Structs(&CONTAINER_RESTART_RULE)),
        field("volumeMounts", "VolumeMounts", Structs(&VOLUME_MOUNT)).merged_by("mountPath"),
        field("volumeDevices", "VolumeDevices", Structs(&VOLUME_DEVICE)).merged_by("devicePath"),
        pointer("livenessProbe", "LivenessProbe", Struct(&PROBE)),
        pointer("readinessProbe", "ReadinessProbe", Struct(&PROBE)),
        pointer("startupProbe", "StartupProbe", Struct(&PROBE)),
        pointer("lifecycle", "Lifecycle", Struct(&LIFECYCLE)),
        field("terminationMessagePath", "TerminationMessagePath", String),
        field("terminationMessagePolicy", "TerminationMessagePolicy", String),
        field("imagePullPolicy", "ImagePullPolicy", String),
        pointer("securityContext", "SecurityContext", Struct(&SECURITY_CONTEXT)),
        field("stdin", "Stdin", Bool),
        field("stdinOnce", "StdinOnce", Bool),
        field("tty", "TTY", Bool),
        field("targetContainerName", "TargetContainerName", String),
    ],
};

static EXEC_ACTION: Schema = Schema { name: "ExecAction", fields: &[field("command", "Command", Strings)] };

static FILE_KEY_SELECTOR: Schema = Schema {
    name: "FileKeySelector",
    fields: &[
        field("volumeName", "VolumeName", String),
        field("path", "Path", String),
        field("key", "Key", String),
        pointer("optional", "Optional", Bool),
    ],
};

static GRPC_ACTION: Schema = Schema { name: "GRPCAction", fields: &[field("port", "Port", Int32), pointer("service", "Service", String)] };

static HTTP_GET_ACTION: Schema = Schema {
    name: "HTTPGetAction",
    fields: &[
        field("path", "Path", String),
        field("port", "Port", IntOrString),
        field("host", "Host", String),
        field("scheme", "Scheme", String),
        field("httpHeaders", "HTTPHeaders", Structs(&HTTP_HEADER)),
    ],
};

static HTTP_HEADER: Schema = Schema { name: "HTTPHeader", fields: &[field("name", "Name", String), field("value", "Value", String)] };

static LIFECYCLE: Schema = Schema {
    name: "Lifecycle",
    fields: &[
        pointer("postStart", "PostStart", Struct(&LIFECYCLE_HANDLER)),
        pointer("preStop", "PreStop", Struct(&LIFECYCLE_HANDLER)),
        pointer("stopSignal", "StopSignal", String),
    ],
};

static LIFECYCLE_HANDLER: Schema = Schema {
    name: "LifecycleHandler",
    fields: &[
        pointer("exec", "Exec", Struct(&EXEC_ACTION)),
        pointer("httpGet", "HTTPGet", Struct(&HTTP_GET_ACTION)),
        pointer("tcpSocket", "TCPSocket", Struct(&TCP_SOCKET_ACTION)),
        pointer("sleep", "Sleep", Struct(&SLEEP_ACTION)),
    ],
};

static PROBE: Schema = Schema {
    name: "Probe",
    fields: &[
        pointer("exec", "Exec", Struct(&EXEC_ACTION)),
        pointer("httpGet", "HTTPGet", Struct(&HTTP_GET_ACTION)),
        pointer("tcpSocket", "TCPSocket", Struct(&TCP_SOCKET_ACTION)),
        pointer("grpc", "GRPC", Struct(&GRPC_ACTION)),
        field("initialDelaySeconds", "InitialDelaySeconds", Int32),
        field("timeoutSeconds", "TimeoutSeconds", Int32),
        field("periodSeconds", "PeriodSeconds", Int32),
        field("successThreshold", "SuccessThreshold", Int32),
        field("failureThreshold", "FailureThreshold", Int32),
        pointer("terminationGracePeriodSeconds", "TerminationGracePeriodSeconds", Int64),
    ],
};

static RESOURCE_CLAIM: Schema =
    Schema { name: "ResourceClaim", fields: &[field("name", "Name", String), field("request", "Request", String)] };

pub(super) static RESOURCE_REQUIREMENTS: Schema = Schema {
    name: "ResourceRequirements",
    fields: &[
        field("limits", "Limits", QuantityMap),
        field("requests", "Requests", QuantityMap),
        field("claims", "Claims", Structs(&RESOURCE_CLAIM)),
    ],
};

pub(super) static SE_LINUX_OPTIONS: Schema = Schema {
    name: "SELinuxOptions",
    fields: &[field("user", "User", String), field("role", "Role", String), field("type", "Type", String), field("level", "Level", String)],
};

pub(super) static SECCOMP_PROFILE: Schema =
    Schema { name: "SeccompProfile", fields: &[field("type", "Type", String), pointer("localhostProfile", "LocalhostProfile", String)] };

static SECRET_ENV_SOURCE: Schema =
    Schema { name: "SecretEnvSource", fields: &[field("name", "Name", String), pointer("optional", "Optional", Bool)] };

static SECRET_KEY_SELECTOR: Schema = Schema {
    name: "SecretKeySelector",
    fields: &[field("name", "Name", String), field("key", "Key", String), pointer("optional", "Optional", Bool)],
};

static SECURITY_CONTEXT: Schema = Schema {
    name: "SecurityContext",
    fields: &[
        pointer("capabilities", "Capabilities", Struct(&CAPABILITIES)),
        pointer("privileged", "Privileged", Bool),
        pointer("seLinuxOptions", "SELinuxOptions", Struct(&SE_LINUX_OPTIONS)),
        pointer("windowsOptions", "WindowsOptions", Struct(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
        pointer("runAsUser", "RunAsUser", Int64),
        pointer("runAsGroup", "RunAsGroup", Int64),
        pointer("runAsNonRoot", "RunAsNonRoot", Bool),
        pointer("readOnlyRootFilesystem", "ReadOnlyRootFilesystem", Bool),
        pointer("allowPrivilegeEscalation", "AllowPrivilegeEscalation", Bool),
        pointer("procMount", "ProcMount", String),
        pointer("seccompProfile", "SeccompProfile", Struct(&SECCOMP_PROFILE)),
        pointer("appArmorProfile", "AppArmorProfile", Struct(&APP_ARMOR_PROFILE)),
    ],
};

static SLEEP_ACTION: Schema = Schema { name: "SleepAction", fields: &[field("seconds", "Seconds", Int64)] };

static TCP_SOCKET_ACTION: Schema =
    Schema { name: "TCPSocketAction", fields: &[field("port", "Port", IntOrString), field("host", "Host", String)] };

static VOLUME_DEVICE: Schema =
    Schema { name: "VolumeDevice", fields: &[field("name", "Name", String), field("devicePath", "DevicePath", String)] };

static VOLUME_MOUNT: Schema = Schema {
    name: "VolumeMount",
    fields: &[
        field("name", "Name", String),
        field("readOnly", "ReadOnly", Bool),
        pointer("recursiveReadOnly", "RecursiveReadOnly", String),
        field("mountPath", "MountPath", String),
        field("subPath", "SubPath", String),
        pointer("mountPropagation", "MountPropagation", String),
        field("subPathExpr", "SubPathExpr", String),
    ],
};

pub(super) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Schema = Schema {
    name: "WindowsSecurityContextOptions",
    fields: &[
        pointer("gmsaCredentialSpecName", "GMSACredentialSpecName", String),
        pointer("gmsaCredentialSpec", "GMSACredentialSpec", String),
        pointer("runAsUserName", "RunAsUserName", String),
        pointer("hostProcess", "HostProcess", Bool),
    ],
};

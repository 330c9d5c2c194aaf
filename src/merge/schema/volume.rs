//! Volumes and what they are made of.

use super::Kind::{Bool, Int32, Int64, Quantity, QuantityMap, String, StringMap, Strings, Struct, Structs};
use super::meta::{
    LABEL_SELECTOR, LOCAL_OBJECT_REFERENCE, OBJECT_FIELD_SELECTOR, OBJECT_META, RESOURCE_FIELD_SELECTOR, TYPED_LOCAL_OBJECT_REFERENCE,
    TYPED_OBJECT_REFERENCE,
};
use super::{Schema, field, pointer};

static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Schema = Schema {
    name: "AWSElasticBlockStoreVolumeSource",
    fields: &[
        field("volumeID", "VolumeID", String),
        field("fsType", "FSType", String),
        field("partition", "Partition", Int32),
        field("readOnly", "ReadOnly", Bool),
    ],
};

static AZURE_DISK_VOLUME_SOURCE: Schema = Schema {
    name: "AzureDiskVolumeSource",
    fields: &[
        field("diskName", "DiskName", String),
        field("diskURI", "DataDiskURI", String),
        pointer("cachingMode", "CachingMode", String),
        pointer("fsType", "FSType", String),
        pointer("readOnly", "ReadOnly", Bool),
        pointer("kind", "Kind", String),
    ],
};

static AZURE_FILE_VOLUME_SOURCE: Schema = Schema {
    name: "AzureFileVolumeSource",
    fields: &[field("secretName", "SecretName", String), field("shareName", "ShareName", String), field("readOnly", "ReadOnly", Bool)],
};

static CSI_VOLUME_SOURCE: Schema = Schema {
    name: "CSIVolumeSource",
    fields: &[
        field("driver", "Driver", String),
        pointer("readOnly", "ReadOnly", Bool),
        pointer("fsType", "FSType", String),
        field("volumeAttributes", "VolumeAttributes", StringMap),
        pointer("nodePublishSecretRef", "NodePublishSecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
    ],
};

static CEPH_FS_VOLUME_SOURCE: Schema = Schema {
    name: "CephFSVolumeSource",
    fields: &[
        field("monitors", "Monitors", Strings),
        field("path", "Path", String),
        field("user", "User", String),
        field("secretFile", "SecretFile", String),
        pointer("secretRef", "SecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
        field("readOnly", "ReadOnly", Bool),
    ],
};

static CINDER_VOLUME_SOURCE: Schema = Schema {
    name: "CinderVolumeSource",
    fields: &[
        field("volumeID", "VolumeID", String),
        field("fsType", "FSType", String),
        field("readOnly", "ReadOnly", Bool),
        pointer("secretRef", "SecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
    ],
};

static CLUSTER_TRUST_BUNDLE_PROJECTION: Schema = Schema {
    name: "ClusterTrustBundleProjection",
    fields: &[
        pointer("name", "Name", String),
        pointer("signerName", "SignerName", String),
        pointer("labelSelector", "LabelSelector", Struct(&LABEL_SELECTOR)),
        pointer("optional", "Optional", Bool),
        field("path", "Path", String),
    ],
};

static CONFIG_MAP_PROJECTION: Schema = Schema {
    name: "ConfigMapProjection",
    fields: &[field("name", "Name", String), field("items", "Items", Structs(&KEY_TO_PATH)), pointer("optional", "Optional", Bool)],
};

static CONFIG_MAP_VOLUME_SOURCE: Schema = Schema {
    name: "ConfigMapVolumeSource",
    fields: &[
        field("name", "Name", String),
        field("items", "Items", Structs(&KEY_TO_PATH)),
        pointer("defaultMode", "DefaultMode", Int32),
        pointer("optional", "Optional", Bool),
    ],
};

static DOWNWARD_API_PROJECTION: Schema =
    Schema { name: "DownwardAPIProjection", fields: &[field("items", "Items", Structs(&DOWNWARD_API_VOLUME_FILE))] };

static DOWNWARD_API_VOLUME_FILE: Schema = Schema {
    name: "DownwardAPIVolumeFile",
    fields: &[
        field("path", "Path", String),
        pointer("fieldRef", "FieldRef", Struct(&OBJECT_FIELD_SELECTOR)),
        pointer("resourceFieldRef", "ResourceFieldRef", Struct(&RESOURCE_FIELD_SELECTOR)),
        pointer("mode", "Mode", Int32),
    ],
};

static DOWNWARD_API_VOLUME_SOURCE: Schema = Schema {
    name: "DownwardAPIVolumeSource",
    fields: &[field("items", "Items", Structs(&DOWNWARD_API_VOLUME_FILE)), pointer("defaultMode", "DefaultMode", Int32)],
};

static EMPTY_DIR_VOLUME_SOURCE: Schema =
    Schema { name: "EmptyDirVolumeSource", fields: &[field("medium", "Medium", String), pointer("sizeLimit", "SizeLimit", Quantity)] };

static EPHEMERAL_VOLUME_SOURCE: Schema = Schema {
    name: "EphemeralVolumeSource",
    fields: &[pointer("volumeClaimTemplate", "VolumeClaimTemplate", Struct(&PERSISTENT_VOLUME_CLAIM_TEMPLATE))],
};

static FC_VOLUME_SOURCE: Schema = Schema {
    name: "FCVolumeSource",
    fields: &[
        field("targetWWNs", "TargetWWNs", Strings),
        pointer("lun", "Lun", Int32),
        field("fsType", "FSType", String),
        field("readOnly", "ReadOnly", Bool),
        field("wwids", "WWIDs", Strings),
    ],
};

static FLEX_VOLUME_SOURCE: Schema = Schema {
    name: "FlexVolumeSource",
    fields: &[
        field("driver", "Driver", String),
        field("fsType", "FSType", String),
        pointer("secretRef", "SecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
        field("readOnly", "ReadOnly", Bool),
        field("options", "Options", StringMap),
    ],
};

static FLOCKER_VOLUME_SOURCE: Schema = Schema {
    name: "FlockerVolumeSource",
    fields: &[field("datasetName", "DatasetName", String), field("datasetUUID", "DatasetUUID", String)],
};

static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Schema = Schema {
    name: "GCEPersistentDiskVolumeSource",
    fields: &[
        field("pdName", "PDName", String),
        field("fsType", "FSType", String),
        field("partition", "Partition", Int32),
        field("readOnly", "ReadOnly", Bool),
    ],
};

static GIT_REPO_VOLUME_SOURCE: Schema = Schema {
    name: "GitRepoVolumeSource",
    fields: &[field("repository", "Repository", String), field("revision", "Revision", String), field("directory", "Directory", String)],
};

static GLUSTERFS_VOLUME_SOURCE: Schema = Schema {
    name: "GlusterfsVolumeSource",
    fields: &[field("endpoints", "EndpointsName", String), field("path", "Path", String), field("readOnly", "ReadOnly", Bool)],
};

static HOST_PATH_VOLUME_SOURCE: Schema =
    Schema { name: "HostPathVolumeSource", fields: &[field("path", "Path", String), pointer("type", "Type", String)] };

static ISCSI_VOLUME_SOURCE: Schema = Schema {
    name: "ISCSIVolumeSource",
    fields: &[
        field("targetPortal", "TargetPortal", String),
        field("iqn", "IQN", String),
        field("lun", "Lun", Int32),
        field("iscsiInterface", "ISCSIInterface", String),
        field("fsType", "FSType", String),
        field("readOnly", "ReadOnly", Bool),
        field("portals", "Portals", Strings),
        field("chapAuthDiscovery", "DiscoveryCHAPAuth", Bool),
        field("chapAuthSession", "SessionCHAPAuth", Bool),
        pointer("secretRef", "SecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
        pointer("initiatorName", "InitiatorName", String),
    ],
};

static IMAGE_VOLUME_SOURCE: Schema =
    Schema { name: "ImageVolumeSource", fields: &[field("reference", "Reference", String), field("pullPolicy", "PullPolicy", String)] };

static KEY_TO_PATH: Schema =
    Schema { name: "KeyToPath", fields: &[field("key", "Key", String), field("path", "Path", String), pointer("mode", "Mode", Int32)] };

static NFS_VOLUME_SOURCE: Schema = Schema {
    name: "NFSVolumeSource",
    fields: &[field("server", "Server", String), field("path", "Path", String), field("readOnly", "ReadOnly", Bool)],
};

static PERSISTENT_VOLUME_CLAIM_SPEC: Schema = Schema {
    name: "PersistentVolumeClaimSpec",
    fields: &[
        field("accessModes", "AccessModes", Strings),
        pointer("selector", "Selector", Struct(&LABEL_SELECTOR)),
        field("resources", "Resources", Struct(&VOLUME_RESOURCE_REQUIREMENTS)),
        field("volumeName", "VolumeName", String),
        pointer("storageClassName", "StorageClassName", String),
        pointer("volumeMode", "VolumeMode", String),
        pointer("dataSource", "DataSource", Struct(&TYPED_LOCAL_OBJECT_REFERENCE)),
        pointer("dataSourceRef", "DataSourceRef", Struct(&TYPED_OBJECT_REFERENCE)),
        pointer("volumeAttributesClassName", "VolumeAttributesClassName", String),
    ],
};

static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Schema = Schema {
    name: "PersistentVolumeClaimTemplate",
    fields: &[field("metadata", "ObjectMeta", Struct(&OBJECT_META)), field("spec", "Spec", Struct(&PERSISTENT_VOLUME_CLAIM_SPEC))],
};

static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Schema = Schema {
    name: "PersistentVolumeClaimVolumeSource",
    fields: &[field("claimName", "ClaimName", String), field("readOnly", "ReadOnly", Bool)],
};

static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Schema =
    Schema { name: "PhotonPersistentDiskVolumeSource", fields: &[field("pdID", "PdID", String), field("fsType", "FSType", String)] };

static POD_CERTIFICATE_PROJECTION: Schema = Schema {
    name: "PodCertificateProjection",
    fields: &[
        field("signerName", "SignerName", String),
        field("keyType", "KeyType", String),
        pointer("maxExpirationSeconds", "MaxExpirationSeconds", Int32),
        field("credentialBundlePath", "CredentialBundlePath", String),
        field("keyPath", "KeyPath", String),
        field("certificateChainPath", "CertificateChainPath", String),
        field("userAnnotations", "UserAnnotations", StringMap),
    ],
};

static PORTWORX_VOLUME_SOURCE: Schema = Schema {
    name: "PortworxVolumeSource",
    fields: &[field("volumeID", "VolumeID", String), field("fsType", "FSType", String), field("readOnly", "ReadOnly", Bool)],
};

static PROJECTED_VOLUME_SOURCE: Schema = Schema {
    name: "ProjectedVolumeSource",
    fields: &[field("sources", "Sources", Structs(&VOLUME_PROJECTION)), pointer("defaultMode", "DefaultMode", Int32)],
};

static QUOBYTE_VOLUME_SOURCE: Schema = Schema {
    name: "QuobyteVolumeSource",
    fields: &[
        field("registry", "Registry", String),
        field("volume", "Volume", String),
        field("readOnly", "ReadOnly", Bool),
        field("user", "User", String),
        field("group", "Group", String),
        field("tenant", "Tenant", String),
    ],
};

static RBD_VOLUME_SOURCE: Schema = Schema {
    name: "RBDVolumeSource",
    fields: &[
        field("monitors", "CephMonitors", Strings),
        field("image", "RBDImage", String),
        field("fsType", "FSType", String),
        field("pool", "RBDPool", String),
        field("user", "RadosUser", String),
        field("keyring", "Keyring", String),
        pointer("secretRef", "SecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
        field("readOnly", "ReadOnly", Bool),
    ],
};

static SCALE_IO_VOLUME_SOURCE: Schema = Schema {
    name: "ScaleIOVolumeSource",
    fields: &[
        field("gateway", "Gateway", String),
        field("system", "System", String),
        pointer("secretRef", "SecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
        field("sslEnabled", "SSLEnabled", Bool),
        field("protectionDomain", "ProtectionDomain", String),
        field("storagePool", "StoragePool", String),
        field("storageMode", "StorageMode", String),
        field("volumeName", "VolumeName", String),
        field("fsType", "FSType", String),
        field("readOnly", "ReadOnly", Bool),
    ],
};

static SECRET_PROJECTION: Schema = Schema {
    name: "SecretProjection",
    fields: &[field("name", "Name", String), field("items", "Items", Structs(&KEY_TO_PATH)), pointer("optional", "Optional", Bool)],
};

static SECRET_VOLUME_SOURCE: Schema = Schema {
    name: "SecretVolumeSource",
    fields: &[
        field("secretName", "SecretName", String),
        field("items", "Items", Structs(&KEY_TO_PATH)),
        pointer("defaultMode", "DefaultMode", Int32),
        pointer("optional", "Optional", Bool),
    ],
};

static SERVICE_ACCOUNT_TOKEN_PROJECTION: Schema = Schema {
    name: "ServiceAccountTokenProjection",
    fields: &[
        field("audience", "Audience", String),
        pointer("expirationSeconds", "ExpirationSeconds", Int64),
        field("path", "Path", String),
    ],
};

static STORAGE_OS_VOLUME_SOURCE: Schema = Schema {
    name: "StorageOSVolumeSource",
    fields: &[
        field("volumeName", "VolumeName", String),
        field("volumeNamespace", "VolumeNamespace", String),
        field("fsType", "FSType", String),
        field("readOnly", "ReadOnly", Bool),
        pointer("secretRef", "SecretRef", Struct(&LOCAL_OBJECT_REFERENCE)),
    ],
};

pub(super) static VOLUME: Schema = Schema {
    name: "Volume",
    fields: &[
        field("name", "Name", String),
        pointer("hostPath", "HostPath", Struct(&HOST_PATH_VOLUME_SOURCE)),
        pointer("emptyDir", "EmptyDir", Struct(&EMPTY_DIR_VOLUME_SOURCE)),
        pointer("gcePersistentDisk", "GCEPersistentDisk", Struct(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)),
        pointer("awsElasticBlockStore", "AWSElasticBlockStore", Struct(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
        pointer("gitRepo", "GitRepo", Struct(&GIT_REPO_VOLUME_SOURCE)),
        pointer("secret", "Secret", Struct(&SECRET_VOLUME_SOURCE)),
        pointer("nfs", "NFS", Struct(&NFS_VOLUME_SOURCE)),
        pointer("iscsi", "ISCSI", Struct(&ISCSI_VOLUME_SOURCE)),
        pointer("glusterfs", "Glusterfs", Struct(&GLUSTERFS_VOLUME_SOURCE)),
        pointer("persistentVolumeClaim", "PersistentVolumeClaim", Struct(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)),
        pointer("rbd", "RBD", Struct(&RBD_VOLUME_SOURCE)),
        pointer("flexVolume", "FlexVolume", Struct(&FLEX_VOLUME_SOURCE)),
        pointer("cinder", "Cinder", Struct(&CINDER_VOLUME_SOURCE)),
        pointer("cephfs", "CephFS", Struct(&CEPH_FS_VOLUME_SOURCE)),
        pointer("flocker", "Flocker", Struct(&FLOCKER_VOLUME_SOURCE)),
        pointer("downwardAPI", "DownwardAPI", Struct(&DOWNWARD_API_VOLUME_SOURCE)),
        pointer("fc", "FC", Struct(&FC_VOLUME_SOURCE)),
        pointer("azureFile", "AzureFile", Struct(&AZURE_FILE_VOLUME_SOURCE)),
        pointer("configMap", "ConfigMap", Struct(&CONFIG_MAP_VOLUME_SOURCE)),
        pointer("vsphereVolume", "VsphereVolume", Struct(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
        pointer("quobyte", "Quobyte", Struct(&QUOBYTE_VOLUME_SOURCE)),
        pointer("azureDisk", "AzureDisk", Struct(&AZURE_DISK_VOLUME_SOURCE)),
        pointer("photonPersistentDisk", "PhotonPersistentDisk", Struct(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
        pointer("projected", "Projected", Struct(&PROJECTED_VOLUME_SOURCE)),
        pointer("portworxVolume", "PortworxVolume", Struct(&PORTWORX_VOLUME_SOURCE)),
        pointer("scaleIO", "ScaleIO", Struct(&SCALE_IO_VOLUME_SOURCE)),
        pointer("storageos", "StorageOS", Struct(&STORAGE_OS_VOLUME_SOURCE)),
        pointer("csi", "CSI", Struct(&CSI_VOLUME_SOURCE)),
        pointer("ephemeral", "Ephemeral", Struct(&EPHEMERAL_VOLUME_SOURCE)),
        pointer("image", "Image", Struct(&IMAGE_VOLUME_SOURCE)),
    ],
};

static VOLUME_PROJECTION: Schema = Schema {
    name: "VolumeProjection",
    fields: &[
        pointer("secret", "Secret", Struct(&SECRET_PROJECTION)),
        pointer("downwardAPI", "DownwardAPI", Struct(&DOWNWARD_API_PROJECTION)),
        pointer("configMap", "ConfigMap", Struct(&CONFIG_MAP_PROJECTION)),
        pointer("serviceAccountToken", "ServiceAccountToken", Struct(&SERVICE_ACCOUNT_TOKEN_PROJECTION)),
        pointer("clusterTrustBundle", "ClusterTrustBundle", Struct(&CLUSTER_TRUST_BUNDLE_PROJECTION)),
        pointer("podCertificate", "PodCertificate", Struct(&POD_CERTIFICATE_PROJECTION)),
    ],
};

static VOLUME_RESOURCE_REQUIREMENTS: Schema = Schema {
    name: "VolumeResourceRequirements",
    fields: &[field("limits", "Limits", QuantityMap), field("requests", "Requests", QuantityMap)],
};

static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Schema = Schema {
    name: "VsphereVirtualDiskVolumeSource",
    fields: &[
        field("volumePath", "VolumePath", String),
        field("fsType", "FSType", String),
        field("storagePolicyName", "StoragePolicyName", String),
        field("storagePolicyID", "StoragePolicyID", String),
    ],
};

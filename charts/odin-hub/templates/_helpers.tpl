{{/* Name of the chart in labels. */}}
{{- define "odin-hub.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of all objects, short enough that `-catalog-viewer` can follow in a name of 63 characters. */}}
{{- define "odin-hub.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 48 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* What a selector may rest on: it never changes during the life of a release. */}}
{{- define "odin-hub.selectorLabels" -}}
app.kubernetes.io/name: {{ include "odin-hub.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of all objects. */}}
{{- define "odin-hub.labels" -}}
{{ include "odin-hub.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of the account that the hub runs as. The default account is never taken: its rights are those of any pod. */}}
{{- define "odin-hub.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "odin-hub.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name must say which account the hub runs as when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The image: a digest decides, when there is one. */}}
{{- define "odin-hub.image" -}}
{{- $image := printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- if .Values.image.digest }}
{{- $image = printf "%s@%s" $image .Values.image.digest }}
{{- end }}
{{- $image }}
{{- end }}

{{/* The hub's account as the subject of a binding. */}}
{{- define "odin-hub.subjects" -}}
- kind: ServiceAccount
  name: {{ include "odin-hub.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

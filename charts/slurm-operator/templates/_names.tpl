{{- define "slurm-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "slurm-operator.fullname" -}}
{{- $name := include "slurm-operator.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slurm-operator.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "slurm-operator.selectorLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/name: {{ include "slurm-operator.name" . }}
{{- end -}}

{{/* Those of the chart's version are not for pods, which they would restart. */}}
{{- define "slurm-operator.labels" -}}
{{ include "slurm-operator.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: slurm-operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* root; name. */}}
{{- define "slurm-operator.metadata" -}}
name: {{ .name }}
labels:
  {{- include "slurm-operator.labels" .root | nindent 2 }}
{{- end -}}

{{- define "slurm-operator.serviceAccount" -}}
{{- $account := .Values.operator.serviceAccount | default dict -}}
{{- $account.name | default ($account.create | ternary (include "slurm-operator.fullname" .) "default") -}}
{{- end -}}

{{- define "slurm-operator.image" -}}
{{- $image := .Values.operator.image -}}
{{- if kindIs "string" $image -}}
{{- required "operator.image: name an image" $image -}}
{{- else -}}
{{- $repository := required "operator.image.repository: name an image" ($image).repository -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($image.tag | default .Chart.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Namespaces that are watched, as YAML: a list; empty means all. */}}
{{- define "slurm-operator.namespaces" -}}
{{- include "slurm-operator.names" .Values.operator.namespaces -}}
{{- end -}}

{{/* Names by commas or as a list, as YAML: a list. */}}
{{- define "slurm-operator.names" -}}
{{- $given := . | default list -}}
{{- $names := kindIs "string" $given | ternary (splitList "," ($given | toString)) $given -}}
{{- $found := list -}}
{{- range $names -}}{{- with trim . -}}{{- $found = append $found . -}}{{- end -}}{{- end -}}
{{- toYaml (uniq $found) -}}
{{- end -}}

{{/* The levels of slurm-operator's log in the words of ours: a number asks for more than `debug`. */}}
{{- define "slurm-operator.logLevel" -}}
{{- $level := .Values.operator.logLevel | toString -}}
{{- if has $level (list "debug" "info" "error") -}}{{ $level }}
{{- else if has $level (list "warn" "warning") -}}warning
{{- else if has $level (list "dpanic" "panic" "fatal") -}}error
{{- else -}}debug
{{- end -}}
{{- end -}}

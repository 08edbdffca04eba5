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
{{- $prefix := include "penstock.imageRegistry" . -}}
{{- $fields := kindIs "map" $image | ternary $image dict -}}
{{- $text := kindIs "string" $image | ternary $image "" -}}
{{- if not (or $text $fields.repository $prefix) -}}
{{- fail "operator.image: name an image. No public registry has Penstock's: set global.imageRegistry to the registry and path that `penstock images push` pushed them to, such as registry.example.com/team/penstock, or to localhost/penstock where they were loaded into the Kubernetes nodes" -}}
{{- end -}}
{{- if $text -}}
{{- $text -}}
{{- else -}}
{{- $repository := $fields.repository | default (printf "%s/operator" $prefix) -}}
{{- if $fields.digest -}}
{{- printf "%s@%s" $repository $fields.digest -}}
{{- else if $fields.repository -}}
{{- printf "%s:%s" $repository ($fields.tag | default .Chart.Version) -}}
{{- else -}}
{{- printf "%s:%s" $repository ($fields.tag | default (include "penstock.imageVersion" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Image of containers that name none, with {role} for the daemon; empty: the operator's own. */}}
{{- define "slurm-operator.slurmImage" -}}
{{- $prefix := include "penstock.imageRegistry" . -}}
{{- if .Values.operator.slurmImage -}}
{{- .Values.operator.slurmImage -}}
{{- else if $prefix -}}
{{- printf "%s/{role}:%s-%s" $prefix (index .Chart.Annotations "penstock.dev/slurm-release") (include "penstock.imageVersion" .) -}}
{{- end -}}
{{- end -}}

{{/* API groups that the operator leads, as YAML: a list. */}}
{{- define "slurm-operator.apis" -}}
{{- include "penstock.apis" (dict "given" .Values.operator.apis "path" "operator.apis") -}}
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

{{/* Names and labels. A template that ends in "Of" gives text; one that begins with "put" changes
     the dict `into` and gives nothing. */}}

{{- define "slurm.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slurm.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* Labels that stay the same for the life of a release: these may be on pods. */}}
{{- define "slurm.steadyLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: slurm
{{- end -}}

{{/* Labels of objects. Those of the chart's own version must never reach a pod's template, where
     they would restart every pod at each new release of the chart. */}}
{{- define "slurm.labels" -}}
{{ include "slurm.steadyLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* metadata of an object. root; name; user: labels and annotations of the values, if any. */}}
{{- define "slurm.metadata" -}}
{{- $user := .user | default dict -}}
{{- $out := dict "name" .name "namespace" (include "slurm.namespace" .root) -}}
{{- $labels := fromYaml (include "slurm.labels" .root) -}}
{{- $_ := set $out "labels" (merge dict ($user.labels | default dict) $labels) -}}
{{- with $user.annotations -}}{{- $_ := set $out "annotations" . -}}{{- end -}}
{{- toYaml $out -}}
{{- end -}}

{{/* An object of slinky.slurm.net. root; kind; name; user: its metadata; spec. */}}
{{- define "slurm.object" -}}
{{- $metadata := fromYaml (include "slurm.metadata" .) -}}
{{- toYaml (dict "apiVersion" "slinky.slurm.net/v1beta1" "kind" .kind "metadata" $metadata "spec" .spec) -}}
{{- end -}}

{{/* Takes what is null out of a mapping and out of the mappings in it. */}}
{{- define "slurm-cluster.prune" -}}
{{- $map := . -}}
{{- range $key, $value := deepCopy $map -}}
{{- if kindIs "invalid" $value -}}{{- $_ := unset $map $key -}}
{{- else if kindIs "map" $value -}}{{- include "slurm-cluster.prune" (index $map $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* into; from. Puts what `into` lacks; false, 0 and empty values are not lacking. */}}
{{- define "slurm-cluster.fill" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- $given := index $into $key -}}
{{- if kindIs "invalid" $given -}}{{- $_ := set $into $key $value -}}
{{- else if and (kindIs "map" $given) (kindIs "map" $value) -}}
{{- include "slurm-cluster.fill" (dict "into" $given "from" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether the cluster has the shape of 1.23: text that is empty where its workers are NodeSets. */}}
{{- define "slurm-cluster.withWorker" -}}
{{- if .Values.slurmNodes.worker -}}true{{- end -}}
{{- end -}}

{{/* The values with the defaults of the cluster's shape, as YAML. */}}
{{- define "slurm-cluster.values" -}}
{{- $shape := eq (include "slurm-cluster.withWorker" .) "true" | ternary "worker" "nodesets" -}}
{{- $values := omit (deepCopy .Values.AsMap) "global" -}}
{{- include "slurm-cluster.prune" $values -}}
{{- include "slurm-cluster.fill" (dict "into" $values "from" (.Files.Get (printf "files/with-%s.yaml" $shape) | fromYaml)) -}}
{{- $alias := $values.slurmNodes.controller.resources | default dict -}}
{{- $_ := set $values.slurmNodes.controller.slurmctld "resources" (mergeOverwrite ($values.slurmNodes.controller.slurmctld.resources | default dict) $alias) -}}
{{- toYaml $values -}}
{{- end -}}

{{/* Labels of all objects of the chart. */}}
{{- define "slurm-cluster.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/name: {{ .Values.clusterName }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* root; name; part: app.kubernetes.io/component, if any. */}}
{{- define "slurm-cluster.metadata" -}}
namespace: {{ .root.Release.Namespace }}
{{ include "slurm-cluster.clusterMetadata" . }}
{{- end -}}

{{/* The same for an object that belongs to no namespace. */}}
{{- define "slurm-cluster.clusterMetadata" -}}
name: {{ .name }}
labels:
  {{- with .part }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
  {{- include "slurm-cluster.labels" .root | nindent 2 }}
{{- end -}}

{{/* root; account: rbac and serviceAccount of a component; name. Its ServiceAccount. */}}
{{- define "slurm-cluster.account" -}}
{{- $account := .account | default dict -}}
{{- $account.name | default (ternary .name "default" (eq (toString $account.create) "true")) -}}
{{- end -}}

{{- define "soperator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release, in front of all names; with room for the longest of them. */}}
{{- define "soperator.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "soperator.selectorLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/name: {{ include "soperator.name" . }}
control-plane: controller-manager
{{- end -}}

{{/* Those of the chart's version are not for pods, which they would restart. */}}
{{- define "soperator.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/name: {{ include "soperator.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: soperator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* root; name: what follows the release; annotations. */}}
{{- define "soperator.metadata" -}}
name: {{ include "soperator.fullname" .root }}-{{ .name }}
labels:
  {{- include "soperator.labels" .root | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* API groups that the operator leads, as YAML: a list. */}}
{{- define "soperator.apis" -}}
{{- include "penstock.apis" (dict "given" .Values.controllerManager.manager.apis "path" "controllerManager.manager.apis") -}}
{{- end -}}

{{/* Namespaces that are watched, as YAML: a list; empty means all. */}}
{{- define "soperator.namespaces" -}}
{{- $given := (.Values.controllerManager.manager.env).slurmOperatorWatchNamespaces | default "*" -}}
{{- $words := kindIs "string" $given | ternary (splitList "," ($given | toString)) $given -}}
{{- $found := list -}}
{{- range $words -}}{{- with trim . -}}{{- if ne . "*" -}}{{- $found = append $found . -}}{{- end -}}{{- end -}}{{- end -}}
{{- toYaml (uniq $found) -}}
{{- end -}}

{{- define "soperator.image" -}}
{{- $image := .Values.controllerManager.manager.image | default dict -}}
{{- $prefix := include "penstock.imageRegistry" . -}}
{{- if not (or $image.repository $prefix) -}}
{{- fail "controllerManager.manager.image.repository: name an image. No public registry has Penstock's: set global.imageRegistry to the registry and path that `penstock images push` pushed them to, such as registry.example.com/team/penstock, or to localhost/penstock where they were loaded into the Kubernetes nodes" -}}
{{- end -}}
{{- if hasSuffix "/soperator/slurm-operator" ($image.repository | default "") -}}
{{- fail (printf "controllerManager.manager.image.repository: %s is soperator's own operator; remove image.repository and image.tag, and set global.imageRegistry" $image.repository) -}}
{{- end -}}
{{- if $image.repository -}}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.Version) -}}
{{- else -}}
{{- printf "%s/operator:%s" $prefix ($image.tag | default (include "penstock.imageVersion" .)) -}}
{{- end -}}
{{- end -}}

{{/* Image of containers that name none, with {role} for the daemon; empty: the operator's own. */}}
{{- define "soperator.slurmImage" -}}
{{- $prefix := include "penstock.imageRegistry" . -}}
{{- if .Values.controllerManager.manager.slurmImage -}}
{{- .Values.controllerManager.manager.slurmImage -}}
{{- else if $prefix -}}
{{- printf "%s/{role}:%s-%s" $prefix (index .Chart.Annotations "penstock.dev/slurm-release") (include "penstock.imageVersion" .) -}}
{{- end -}}
{{- end -}}

{{/* Secrets for registries, as YAML: a list. */}}
{{- define "soperator.pullSecrets" -}}
{{- $found := list -}}
{{- range concat (.Values.controllerManager.manager.imagePullSecrets | default list) ((.Values.global).imagePullSecrets | default list) -}}
{{- $found = append $found (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- toYaml (uniq $found) -}}
{{- end -}}

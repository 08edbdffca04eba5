{{- define "penstock-monitoring.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Whether there is a PrometheusRule: the value decides, or the kinds of the cluster where it is null. */}}
{{- define "penstock-monitoring.rules" -}}
{{- if kindIs "bool" .Values.alerts.enabled -}}
{{- .Values.alerts.enabled | ternary "true" "" -}}
{{- else if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}
true
{{- end -}}
{{- end -}}

{{/* Groups of rules by the values, as YAML. */}}
{{- define "penstock-monitoring.groups" -}}
{{- $alerts := .Values.alerts -}}
{{- $severities := $alerts.severities | default dict -}}
{{- $known := list -}}
{{- $groups := list -}}
{{- range (.Files.Get "files/rules.yaml" | fromYaml).groups -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- $known = append $known .alert -}}
{{- if not (has .alert ($alerts.disabled | default list)) -}}
{{- $page := .annotations.runbook_url | replace "https://penstock.dev/r/" (printf "%s/" (trimSuffix "/" $alerts.runbookUrl)) -}}
{{- $severity := get $severities .alert | default .labels.severity -}}
{{- $rules = append $rules (merge (dict "annotations" (merge (dict "runbook_url" $page) .annotations) "labels" (merge (dict "severity" $severity) .labels)) .) -}}
{{- end -}}
{{- end -}}
{{- if and $rules (or $alerts.stalledObjects (ne .name "penstock-objects")) -}}
{{- $groups = append $groups (dict "name" .name "rules" $rules) -}}
{{- end -}}
{{- end -}}
{{- range concat ($alerts.disabled | default list) (keys $severities | sortAlpha) -}}
{{- if not (has . $known) -}}
{{- fail (printf "alerts: there is no alert %s; the alerts are %s" . (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $groups -}}
{{- end -}}

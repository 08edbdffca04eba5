{{/* Whether webhooks are served: text that is empty when they are not. */}}
{{- define "soperator.webhook.served" -}}
{{- if ne ((.Values.controllerManager.manager.env).enableWebhooks | toString) "false" -}}true{{- end -}}
{{- end -}}

{{/* Of the configurations. */}}
{{- define "soperator.webhook.name" -}}
{{- include "soperator.fullname" . -}}-validating-webhook-configuration
{{- end -}}

{{- define "soperator.webhook.service" -}}
{{- include "soperator.fullname" . -}}-webhook-service
{{- end -}}

{{/* Secret with the certificate. */}}
{{- define "soperator.webhook.secret" -}}
{{- if .Values.certManager.enabled -}}
webhook-server-cert
{{- else -}}
{{- include "soperator.fullname" . -}}-webhook-certificates
{{- end -}}
{{- end -}}

{{/* The port of the Service, as YAML: a mapping. */}}
{{- define "soperator.webhook.port" -}}
{{- $given := first ((.Values.webhookService).ports | default (list dict)) -}}
{{- toYaml (dict "port" (int ($given.port | default 443)) "protocol" ($given.protocol | default "TCP") "targetPort" (int ($given.targetPort | default 9443))) -}}
{{- end -}}

{{/* root; path; conditions. What is the same for all hooks. No failurePolicy but Ignore is ever set:
     nobody may be locked out by an operator that is down. */}}
{{- define "soperator.webhook.hook" -}}
{{- $root := .root -}}
{{- $port := include "soperator.webhook.port" $root | fromYaml -}}
clientConfig:
  service:
    namespace: {{ $root.Release.Namespace }}
    name: {{ include "soperator.webhook.service" $root }}
    path: {{ .path }}
    port: {{ int $port.port }}
{{- with include "soperator.namespaces" $root | fromYamlArray }}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- end }}
failurePolicy: Ignore
timeoutSeconds: 3
matchPolicy: Equivalent
admissionReviewVersions: [v1, v1beta1]
sideEffects: None
{{- with .conditions }}
matchConditions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Whether webhooks are served: text that is empty when they are not. */}}
{{- define "slurm-operator.webhook.served" -}}
{{- $webhook := .Values.webhook | default dict -}}
{{- if and .Values.operator.enabled $webhook.enabled (int $webhook.serverPort) -}}true{{- end -}}
{{- end -}}

{{/* Of the Service and of both configurations, of which there are several in a cluster of several
     releases. */}}
{{- define "slurm-operator.webhook.name" -}}
{{- printf "%s-webhook" (include "slurm-operator.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{/* Who makes the certificate: cert-manager, somebody else (external), or the operator (own). */}}
{{- define "slurm-operator.webhook.issuer" -}}
{{- $cert := .Values.certManager | default dict -}}
{{- $external := .Values.externalCertInjection | default dict -}}
{{- if and $cert.enabled $external.enabled -}}
{{- fail "certManager.enabled, externalCertInjection.enabled: only one of them can make the certificate; set the other to false" -}}
{{- end -}}
{{- if $cert.enabled -}}cert-manager{{- else if $external.enabled -}}external{{- else -}}own{{- end -}}
{{- end -}}

{{/* Secret with the certificate. */}}
{{- define "slurm-operator.webhook.secret" -}}
{{- $issuer := include "slurm-operator.webhook.issuer" . -}}
{{- if eq $issuer "cert-manager" -}}
{{- required "certManager.secretName: name the Secret that cert-manager is to write" .Values.certManager.secretName -}}
{{- else if eq $issuer "external" -}}
{{- required "externalCertInjection.secretName: name the Secret with tls.crt, tls.key and ca.crt" .Values.externalCertInjection.secretName -}}
{{- else -}}
{{- printf "%s-certificates" (include "slurm-operator.webhook.name" .) -}}
{{- end -}}
{{- end -}}

{{/* root; given: annotations of the user's. */}}
{{- define "slurm-operator.webhook.metadata" -}}
{{- include "slurm-operator.metadata" (dict "root" .root "name" (include "slurm-operator.webhook.name" .root)) -}}
{{- $annotations := deepCopy (.given | default dict) -}}
{{- if eq (include "slurm-operator.webhook.issuer" .root) "cert-manager" -}}
{{- $from := printf "%s/%s" (include "slurm-operator.namespace" .root) (include "slurm-operator.webhook.secret" .root) -}}
{{- $annotations = merge $annotations (dict "cert-manager.io/inject-ca-from" $from) -}}
{{- end -}}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Namespaces whose objects are looked at, as YAML: a list; empty means all. */}}
{{- define "slurm-operator.webhook.namespaces" -}}
{{- $given := include "slurm-operator.names" .Values.webhook.namespaces | fromYamlArray -}}
{{- toYaml ($given | default (include "slurm-operator.namespaces" . | fromYamlArray)) -}}
{{- end -}}

{{/* root; path; own (conditions of ours); given (values); selector. What is the same for all hooks.
     No failurePolicy but Ignore is ever set: nobody may be locked out by an operator that is down. */}}
{{- define "slurm-operator.webhook.hook" -}}
{{- $root := .root -}}
clientConfig:
  service:
    namespace: {{ include "slurm-operator.namespace" $root }}
    name: {{ include "slurm-operator.webhook.name" $root }}
    path: {{ .path }}
{{- with .selector }}
namespaceSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
failurePolicy: Ignore
timeoutSeconds: {{ int ($root.Values.webhook.timeoutSeconds | default 3) }}
matchPolicy: {{ .given.matchPolicy | default "Equivalent" }}
admissionReviewVersions: [v1, v1beta1]
sideEffects: None
{{- with concat .own (.conditions | default list) }}
matchConditions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

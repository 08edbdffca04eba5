{{/* Values that ask for what there is not: Helm stops with the name of the value. */}}
{{- define "soperator.checks" -}}
{{- $manager := .Values.controllerManager.manager -}}
{{- range $name, $enabled := $manager.controllersEnabled | default dict -}}
{{- if not (kindIs "invalid" $enabled) -}}
{{- if not $enabled -}}
{{- fail (printf "controllerManager.manager.controllersEnabled.%s: no part of the operator can be switched off; set it to true. A kind without objects costs nothing" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if (.Values.kruise).installOperator -}}
{{- fail "kruise.installOperator: no OpenKruise is needed, workers are plain pods; set it to false" -}}
{{- end -}}
{{- end -}}

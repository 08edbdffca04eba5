{{/* The arguments of soperator's program in the words of ours, as YAML: a mapping with `health` and
     `metrics` (ports), `leases` (a namespace), `args` (a list). One that has no meaning here stops Helm. */}}
{{- define "soperator.args" -}}
{{- $path := "controllerManager.manager.args" -}}
{{- $found := dict "health" "8081" "metrics" "8080" "leases" .Release.Namespace "args" list -}}
{{- $same := dict "--operator-namespace" "--lease-namespace" "--max-concurrent-reconciles" "--workers" "--log-level" "--log-level" -}}
{{- range .Values.controllerManager.manager.args | default list -}}
{{- $name := index (splitList "=" .) 0 -}}
{{- $value := contains "=" . | ternary (trimPrefix (printf "%s=" $name) .) "true" -}}
{{- if not (hasPrefix "--" .) -}}
{{- fail (printf "%s: %q is no argument, write each as --name=value" $path .) -}}
{{- else if eq $name "--health-probe-bind-address" -}}
{{- $_ := set $found "health" (regexFind "[0-9]+$" $value) -}}
{{- $_ := set $found "args" (append $found.args (printf "--health-port=%s" $value)) -}}
{{- else if eq $name "--metrics-bind-address" -}}
{{- $_ := set $found "metrics" (regexFind "[0-9]+$" $value) -}}
{{- $_ := set $found "args" (append $found.args (printf "--metrics-port=%s" $value)) -}}
{{- else if eq $name "--leader-elect" -}}
{{- $_ := set $found "args" (append $found.args .) -}}
{{- else if hasKey $same $name -}}
{{- $_ := set $found "args" (append $found.args (printf "%s=%s" (index $same $name) $value)) -}}
{{- if eq $name "--operator-namespace" -}}{{- $_ := set $found "leases" $value -}}{{- end -}}
{{- else if eq $name "--metrics-secure" -}}
{{- if ne $value "false" -}}
{{- fail (printf "%s: --metrics-secure: metrics are served as plain HTTP without a login; remove it and let a NetworkPolicy define who may read them, or set --metrics-bind-address=0" $path) -}}
{{- end -}}
{{- else if and (eq $name "--log-format") (eq $value "json") -}}
{{- else if and (eq $name "--enable-http2") (eq $value "false") -}}
{{- else -}}
{{- fail (printf "%s: %s has no meaning here; remove it" $path .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

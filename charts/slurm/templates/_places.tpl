{{/* Fields of a pod in a container and the reverse: Kubernetes reads neither there. values: with the
     containers and podSpec; path: of the values; containers: names, the daemon's first. */}}
{{- define "slurm.inPlace" -}}
{{- $path := .path -}}
{{- $values := .values -}}
{{- range $container := .containers -}}
{{- range $field := list "affinity" "dnsConfig" "dnsPolicy" "hostAliases" "hostIPC" "hostNetwork" "hostPID" "hostname" "imagePullSecrets" "initContainers" "nodeSelector" "priorityClassName" "runtimeClassName" "schedulerName" "serviceAccountName" "terminationGracePeriodSeconds" "tolerations" "topologySpreadConstraints" "volumes" -}}
{{- if index (index $values $container | default dict) $field -}}
{{- fail (printf "%s.%s.%s: a container has no such field and it does nothing here; write it as %s.podSpec.%s" $path $container $field $path $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $field := list "args" "command" "env" "envFrom" "image" "imagePullPolicy" "lifecycle" "livenessProbe" "ports" "readinessProbe" "startupProbe" "tty" "volumeDevices" "volumeMounts" "workingDir" -}}
{{- if index ($values.podSpec | default dict) $field -}}
{{- fail (printf "%s.podSpec.%s: a pod has no such field and it does nothing here; write it in its container, %s.%s.%s" $path $field $path (first $.containers) $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* root; image: an entry of `images`; given: values of the container. The container, as YAML. */}}
{{- define "slurm-cluster.container" -}}
{{- $given := deepCopy (.given | default dict) -}}
{{- $found := omit $given "resources" "imagePullSecrets" -}}
{{- range $key, $value := omit $found "securityLimitsConfig" -}}
{{- if and (not $value) (has (kindOf $value) (list "slice" "map" "string")) -}}{{- $_ := unset $found $key -}}{{- end -}}
{{- end -}}
{{- if not $found.image -}}{{- $_ := set $found "image" (include "slurm-cluster.image" (dict "root" .root "name" .image)) -}}{{- end -}}
{{- if not $found.imagePullPolicy -}}{{- $_ := set $found "imagePullPolicy" .root.Values.imagePullPolicy -}}{{- end -}}
{{- $secrets := $given.imagePullSecrets | default (include "penstock.pullSecrets" .root | fromYamlArray) -}}
{{- with $secrets -}}{{- $_ := set $found "imagePullSecrets" . -}}{{- end -}}
{{- with include "slurm-cluster.resources" $given.resources | fromYaml -}}{{- $_ := set $found "resources" . -}}{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* Resources with the names of Kubernetes, as YAML; empty for none. */}}
{{- define "slurm-cluster.resources" -}}
{{- $names := dict "ephemeralStorage" "ephemeral-storage" "gpu" "nvidia.com/gpu" -}}
{{- $found := dict -}}
{{- range $name, $amount := . -}}
{{- $text := toString $amount -}}
{{- if and (kindIs "float64" $amount) (eq (floor $amount) $amount) -}}{{- $text = printf "%.0f" $amount -}}{{- end -}}
{{- $_ := set $found (index $names $name | default $name) $text -}}
{{- end -}}
{{- if $found -}}{{- toYaml $found -}}{{- end -}}
{{- end -}}

{{/* values; path; given: a name, or nothing; usual: the filter that is taken first then. */}}
{{- define "slurm-cluster.filter" -}}
{{- $names := list -}}
{{- range .values.k8sNodeFilters -}}{{- $names = append $names .name -}}{{- end -}}
{{- $first := first $names -}}
{{- with .values.slurmNodes.controller.k8sNodeFilterName -}}{{- $first = . -}}{{- end -}}
{{- if .given -}}
{{- if not (has .given $names) -}}
{{- fail (printf "%s: k8sNodeFilters has no filter %q, only %s" .path .given (join ", " $names)) -}}
{{- end -}}
{{- .given -}}
{{- else if has .usual $names -}}{{- .usual -}}
{{- else -}}{{- $first -}}
{{- end -}}
{{- end -}}

{{/* values; path; volume: what names exactly one of a source and a PVC's spec. */}}
{{- define "slurm-cluster.checkVolume" -}}
{{- $names := list -}}
{{- range .values.volumeSources -}}{{- $names = append $names .name -}}{{- end -}}
{{- $source := .volume.volumeSourceName -}}
{{- if and $source .volume.volumeClaimTemplateSpec -}}
{{- fail (printf "%s: volumeSourceName and volumeClaimTemplateSpec exclude each other; set one of them to null" .path) -}}
{{- else if not (or $source .volume.volumeClaimTemplateSpec) -}}
{{- fail (printf "%s: name an entry of volumeSources in volumeSourceName, or a PVC in volumeClaimTemplateSpec" .path) -}}
{{- else if and $source (not (has $source (append $names "slurm-scripts"))) -}}
{{- fail (printf "%s.volumeSourceName: volumeSources has no entry %q, only %s" .path $source (join ", " $names)) -}}
{{- end -}}
{{- end -}}

{{/* The sidecar with figures of the network: root; given: nodeExporter of a component. */}}
{{- define "slurm-cluster.nodeExporter" -}}
{{- $given := .given -}}
{{- $port := int ($given.port | default 9100) -}}
{{- $collectors := list "--collector.disable-defaults" "--collector.netdev" "--collector.netstat" "--collector.sockstat" "--collector.conntrack" -}}
name: pod-node-exporter
image: {{ $given.image | default (include "slurm-cluster.image" (dict "root" .root "name" "nodeExporter")) }}
imagePullPolicy: {{ $given.imagePullPolicy | default .root.Values.imagePullPolicy }}
restartPolicy: Always
args:
  {{- append ($given.args | default $collectors) (printf "--web.listen-address=:%d" $port) | toYaml | nindent 2 }}
ports:
  - {name: node-exporter, containerPort: {{ $port }}, protocol: TCP}
{{- range $probe := list "livenessProbe" "readinessProbe" }}
{{- with index $given $probe }}
{{ $probe }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
resources:
  {{- $usual := dict "limits" (dict "ephemeral-storage" "128Mi" "memory" "64Mi") "requests" (dict "cpu" "50m" "ephemeral-storage" "128Mi" "memory" "64Mi") }}
  {{- $given.resources | default $usual | toYaml | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* root; values; part: of the names; path; node: values of a component; usual: its filter. What all
     components have, as YAML. */}}
{{- define "slurm-cluster.node" -}}
{{- $node := omit (deepCopy .node) "nodeExporter" "rbac" "serviceAccount" "resources" -}}
{{- $_ := set $node "k8sNodeFilterName" (include "slurm-cluster.filter" (dict "values" .values "path" (printf "%s.k8sNodeFilterName" .path) "given" .node.k8sNodeFilterName "usual" .usual)) -}}
{{- $_ = set $node "priorityClass" (.node.priorityClass | default (printf "%s-slurm-%s" .values.clusterName .part)) -}}
{{- if (.node.nodeExporter).enabled -}}
{{- $sidecar := include "slurm-cluster.nodeExporter" (dict "root" .root "given" .node.nodeExporter) | fromYaml -}}
{{- $_ := set $node "customInitContainers" (append (.node.customInitContainers | default list) $sidecar) -}}
{{- end -}}
{{- toYaml $node -}}
{{- end -}}

{{/* name; given: a container with its image; restart. One that only keeps the image near. */}}
{{- define "slurm-cluster.sleeper" -}}
- name: {{ .name }}
  image: {{ .given.image }}
  imagePullPolicy: {{ .given.imagePullPolicy }}
  command: [sleep, infinity]
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
{{- end -}}

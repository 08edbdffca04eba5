{{/* root; name: an entry of `images`; role: of Penstock's image, if any; given: repository, tag and
     pullPolicy of the entry; path. The image, as YAML. A tag belongs to the repository beside it. */}}
{{- define "nodesets.image" -}}
{{- $given := .given | default dict -}}
{{- $usual := index (.root.Values.images | default dict) .name | default dict -}}
{{- $prefix := include "penstock.imageRegistry" .root -}}
{{- $repository := $given.repository | default $usual.repository -}}
{{- $tag := $given.tag | default (empty $given.repository | ternary $usual.tag "") -}}
{{- if not $repository -}}
{{- if not .role -}}
{{- fail (printf "images.%s.repository: name an image, Penstock has none for it" .name) -}}
{{- else if not $prefix -}}
{{- fail (printf "images.%s.repository: name an image. No public registry has Penstock's: set global.imageRegistry to the registry and path that `penstock images push` pushed them to, such as registry.example.com/team/penstock, or to localhost/penstock where they were loaded into the Kubernetes nodes" .name) -}}
{{- end -}}
{{- $repository = printf "%s/%s" $prefix .role -}}
{{- $tag = $tag | default (printf "%s-%s" (index .root.Chart.Annotations "penstock.dev/slurm-release") (include "penstock.imageVersion" .root)) -}}
{{- end -}}
{{- $image := dict "repository" $repository "pullPolicy" ($given.pullPolicy | default .root.Values.imagePullPolicy) -}}
{{- with $tag -}}{{- $_ := set $image "tag" (toString .) -}}{{- end -}}
{{- toYaml $image -}}
{{- end -}}

{{/* path; given; gpu: whether GPUs are enabled, or null where they have no meaning. Resources with
     the names of Kubernetes, as YAML. */}}
{{- define "nodesets.resources" -}}
{{- $given := .given | default dict -}}
{{- $names := dict "ephemeralStorage" "ephemeral-storage" "gpu" "nvidia.com/gpu" -}}
{{- $_ := required (printf "%s.cpu: write the CPUs of the container, such as 4" .path) $given.cpu -}}
{{- $_ = required (printf "%s.memory: write the memory of the container, such as 8Gi" .path) $given.memory -}}
{{- $gpus := $given.gpu | default 0 | toString -}}
{{- if and .gpu (eq $gpus "0") -}}
{{- fail (printf "%s.gpu: write the GPUs of a worker, as gpu.enabled is true" .path) -}}
{{- else if and (not .gpu) (ne $gpus "0") -}}
{{- fail (printf "%s.gpu: it needs gpu.enabled: true in the entry" .path) -}}
{{- end -}}
{{- $found := dict -}}
{{- range $name, $amount := $given -}}
{{- if not (and (eq $name "gpu") (eq $gpus "0")) -}}
{{- $text := toString $amount -}}
{{- if and (kindIs "float64" $amount) (eq (floor $amount) $amount) -}}{{- $text = printf "%.0f" $amount -}}{{- end -}}
{{- $_ := set $found (index $names $name | default $name) $text -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* root; name; role; path; given: values of the container; gpu. What all containers have, as YAML. */}}
{{- define "nodesets.container" -}}
{{- $security := dict "appArmorProfile" "unconfined" "limitsConfig" "" -}}
{{- $found := dict
  "image" (include "nodesets.image" (dict "root" .root "name" .name "role" .role "given" .given.image) | fromYaml)
  "resources" (include "nodesets.resources" (dict "path" (printf "%s.resources" .path) "given" .given.resources "gpu" .gpu) | fromYaml)
  "security" (mergeOverwrite $security (.given.security | default dict)) -}}
{{- range $key, $probe := pick .given "livenessProbe" "readinessProbe" -}}
{{- with $probe -}}{{- $_ := set $found $key . -}}{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* root; given: nodeExporter of an entry. The sidecar with figures of the network, as YAML. */}}
{{- define "nodesets.nodeExporter" -}}
{{- $given := .given -}}
{{- $port := int ($given.port | default 9100) -}}
{{- $image := include "nodesets.image" (dict "root" .root "name" "nodeExporter" "given" $given.image) | fromYaml -}}
{{- $collectors := list "--collector.disable-defaults" "--collector.netdev" "--collector.netstat" "--collector.sockstat" "--collector.conntrack" -}}
{{- $usual := dict
  "limits" (dict "ephemeral-storage" "128Mi" "memory" "64Mi")
  "requests" (dict "cpu" "50m" "ephemeral-storage" "128Mi" "memory" "64Mi") -}}
{{- $found := dict
  "name" "pod-node-exporter"
  "image" (empty $image.tag | ternary $image.repository (printf "%s:%s" $image.repository ($image.tag | default "")))
  "imagePullPolicy" ($given.imagePullPolicy | default $image.pullPolicy)
  "restartPolicy" "Always"
  "args" (append ($given.args | default $collectors) (printf "--web.listen-address=:%d" $port))
  "ports" (list (dict "name" "node-exporter" "containerPort" $port "protocol" "TCP"))
  "resources" ($given.resources | default $usual)
  "securityContext" (dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL"))) -}}
{{- range $key, $probe := pick $given "livenessProbe" "readinessProbe" -}}
{{- with $probe -}}{{- $_ := set $found $key . -}}{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* Takes what is null out of a mapping and out of the mappings in it. */}}
{{- define "nodesets.prune" -}}
{{- $map := . -}}
{{- range $key, $value := deepCopy $map -}}
{{- if kindIs "invalid" $value -}}{{- $_ := unset $map $key -}}
{{- else if kindIs "map" $value -}}{{- include "nodesets.prune" (index $map $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Entries of `nodesets` without nulls, as YAML: a list of mappings with `path` and `entry`. */}}
{{- define "nodesets.entries" -}}
{{- $found := list -}}
{{- $given := .Values.nodesets | default list -}}
{{- $names := list -}}
{{- range $key, $value := $given -}}
{{- $entry := deepCopy ($value | default dict) -}}
{{- include "nodesets.prune" $entry -}}
{{- $path := printf "nodesets.%v" $key -}}
{{- if kindIs "map" $given -}}
{{- if not (has ($entry.name | default $key) (list $key)) -}}
{{- fail (printf "%s.name: it is %q; remove it, the key is the name" $path $entry.name) -}}
{{- end -}}
{{- $_ := set $entry "name" $key -}}
{{- else -}}
{{- $path = printf "nodesets[%v]" $key -}}
{{- end -}}
{{- $name := required (printf "%s.name: name the NodeSet" $path) $entry.name -}}
{{- if has $name $names -}}{{- fail (printf "%s.name: %q is the name of another entry; choose another one" $path $name) -}}{{- end -}}
{{- $names = append $names $name -}}
{{- $found = append $found (dict "path" $path "entry" $entry) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* root; path; entry. The SlurmCluster of an entry. */}}
{{- define "nodesets.cluster" -}}
{{- $old := index (.entry.annotations | default dict) "slurm.nebius.ai/parental-cluster-ref" -}}
{{- $name := .root.Values.clusterName | default $old -}}
{{- required "clusterName: name the SlurmCluster of the NodeSets, in the namespace of the release" $name -}}
{{- end -}}

{{/* root; labels: more of them. */}}
{{- define "nodesets.labels" -}}
{{- $own := dict
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/managed-by" .root.Release.Service
  "app.kubernetes.io/name" (.root.Values.nameOverride | default .root.Chart.Name | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- mergeOverwrite $own (.labels | default dict) | toYaml -}}
{{- end -}}

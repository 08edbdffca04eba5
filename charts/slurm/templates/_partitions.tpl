{{/* PartitionName lines over several NodeSets, for slurm.conf. */}}
{{- define "slurm.partitionLines" -}}
{{- $nodesets := dict -}}
{{- include "slurm.putNodesets" (dict "root" . "into" $nodesets) -}}
{{- $lines := list -}}
{{- range $name, $one := .Values.partitions -}}
{{- if ($one).enabled -}}
{{- $members := $one.nodesets | default list -}}
{{- if not $members -}}
{{- fail (printf "partitions.%s.nodesets: name at least one entry of nodesets, or ALL" $name) -}}
{{- end -}}
{{- range $members -}}
{{- if not (or (eq . "ALL") (hasKey $nodesets .)) -}}
{{- fail (printf "partitions.%s.nodesets: %q is no enabled entry of nodesets (there are: %s)" $name . (keys $nodesets | sortAlpha | join ", " | default "none")) -}}
{{- end -}}
{{- end -}}
{{- $nodes := has "ALL" $members | ternary "ALL" ($members | uniq | sortAlpha | join ",") -}}
{{- $rest := include "slurm.confOf" (dict "values" $one "text" "config" "map" "configMap" "separator" " ") -}}
{{- $lines = append $lines (printf "PartitionName=%s Nodes=%s %s" $name $nodes $rest | trim) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* path; given: slurmd.volumes of an entry. The volumes, as YAML. */}}
{{- define "nodesets.volumes" -}}
{{- $given := deepCopy (.given | default dict) -}}
{{- if not $given.spool -}}{{- $_ := set $given "spool" (dict "emptyDir" dict) -}}{{- end -}}
{{- if not $given.jail -}}{{- $_ := set $given "jail" (dict "persistentVolumeClaim" (dict "claimName" "jail-pvc")) -}}{{- end -}}
{{- range $key, $volume := pick $given "spool" "jail" -}}
{{- if gt (len $volume) 1 -}}
{{- fail (printf "%s.%s: it has %s, which exclude each other; set all but one to null" $.path $key (keys $volume | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $given.jail "volumeClaimTemplateSpec" -}}
{{- fail (printf "%s.jail.volumeClaimTemplateSpec: all pods share one jail; name its PVC in persistentVolumeClaim.claimName" .path) -}}
{{- end -}}
{{- include "nodesets.checkClaim" (dict "path" (printf "%s.spool" .path) "given" $given.spool) -}}
{{- range $key, $mounts := pick $given "jailSubMounts" "customVolumeMounts" -}}
{{- $found := list -}}
{{- range $index, $mount := $mounts -}}
{{- $path := printf "%s.%s[%d]" $.path $key $index -}}
{{- include "nodesets.prune" $mount -}}
{{- if eq (hasKey $mount "volumeSource") (hasKey $mount "volumeClaimTemplateSpec") -}}
{{- fail (printf "%s: write exactly one of volumeSource and volumeClaimTemplateSpec" $path) -}}
{{- end -}}
{{- include "nodesets.checkClaim" (dict "path" $path "given" $mount) -}}
{{- $found = append $found $mount -}}
{{- end -}}
{{- $_ := set $given $key $found -}}
{{- if not $found -}}{{- $_ := unset $given $key -}}{{- end -}}
{{- end -}}
{{- toYaml $given -}}
{{- end -}}

{{/* path; given: a mapping that may have volumeClaimTemplateSpec. */}}
{{- define "nodesets.checkClaim" -}}
{{- if hasKey .given "volumeClaimTemplateSpec" -}}
{{- $claim := .given.volumeClaimTemplateSpec -}}
{{- $_ := required (printf "%s.volumeClaimTemplateSpec.resources.requests.storage: write the size of the PVC, such as 128Gi" .path) ((($claim.resources).requests).storage) -}}
{{- $_ = required (printf "%s.volumeClaimTemplateSpec.accessModes: write [ReadWriteOnce] or another mode" .path) $claim.accessModes -}}
{{- end -}}
{{- end -}}

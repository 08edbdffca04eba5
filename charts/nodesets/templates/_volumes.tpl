{{/* path; mode: jailMode; given: slurmd.volumes of an entry. The volumes, as YAML. */}}
{{- define "nodesets.volumes" -}}
{{- $given := deepCopy (.given | default dict) -}}
{{- if not $given.spool -}}{{- $_ := set $given "spool" (dict "emptyDir" dict) -}}{{- end -}}
{{- if eq (.mode | default "Shared") "None" -}}
{{- if $given.jail -}}{{- fail (printf "%s.jail: jailMode is None, so there is no jail; set it to null" .path) -}}{{- end -}}
{{- $_ := unset $given "jail" -}}
{{- else if not $given.jail -}}
{{- $claim := dict "accessModes" (list "ReadWriteOnce") "resources" (dict "requests" (dict "storage" "128Gi")) -}}
{{- $_ := set $given "jail" (eq (.mode | default "Shared") "PerWorker" | ternary (dict "volumeClaimTemplateSpec" $claim) (dict "persistentVolumeClaim" (dict "claimName" "jail-pvc"))) -}}
{{- else if ne (hasKey $given.jail "volumeClaimTemplateSpec") (eq (.mode | default "Shared") "PerWorker") -}}
{{- fail (printf "%s.jail: write volumeClaimTemplateSpec if and only if jailMode is PerWorker" .path) -}}
{{- end -}}
{{- range $key, $volume := pick $given "spool" "jail" -}}
{{- if gt (len $volume) 1 -}}
{{- fail (printf "%s.%s: it has %s, which exclude each other; set all but one to null" $.path $key (keys $volume | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- range $key, $volume := pick $given "spool" "jail" -}}
{{- include "nodesets.checkClaim" (dict "path" (printf "%s.%s" $.path $key) "given" $volume) -}}
{{- end -}}
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

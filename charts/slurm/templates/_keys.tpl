{{/* Keys of auth/slurm or munge, and of auth/jwt. The chart never makes one: a template that draws lots gives
     another key at each rendering. Where nobody names a Secret the operator makes it, once. */}}

{{/* Whether the file has keys at its top, as charts before 1.1 and the page on hybrid clusters. */}}
{{- define "slurm.oldKeys" -}}
{{- if or .Values.slurmKeyRef .Values.jwtKeyRef .Values.jwtHs256KeyRef -}}true{{- end -}}
{{- end -}}

{{/* The reference, as YAML. root; old: the older value; new: the value of today; name and key. */}}
{{- define "slurm.keyRef" -}}
{{- $new := (.new).secretRef | default dict -}}
{{- $old := .old | default dict -}}
{{- $name := printf "%s-%s" (include "slurm.fullname" .root) .name -}}
{{- $ref := dict "name" ($new.name | default $old.name | default $name) -}}
{{- $_ := set $ref "key" ($new.key | default $old.key | default .key) -}}
{{- toYaml $ref -}}
{{- end -}}

{{/* root; into; always: also where the operator makes the key itself, which is so for a Controller
     that names none. */}}
{{- define "slurm.putKeys" -}}
{{- $values := .root.Values -}}
{{- $outside := or $values.controller.external (and $values.accounting.enabled $values.accounting.external) -}}
{{- $kinds := list
  (dict "field" "slurmKeyRef" "new" $values.slurmKey "old" $values.slurmKeyRef "name" "auth-slurm" "key" "slurm.key")
  (dict "field" "jwtKeyRef" "new" $values.jwtKey "old" ($values.jwtKeyRef | default $values.jwtHs256KeyRef) "name" "auth-jwt" "key" "jwt.key") -}}
{{- $munge := ($values.mungeKey).secretRef | default dict -}}
{{- if $munge.name -}}
{{- if or ($values.slurmKey).secretRef $values.slurmKeyRef -}}
{{- fail "mungeKey.secretRef: slurmKey.secretRef is for auth/slurm, and mungeKey for munge; remove one of them" -}}
{{- end -}}
{{- $kinds = rest $kinds -}}
{{- $_ := set .into "mungeKeyRef" (dict "name" $munge.name "key" ($munge.key | default "munge.key")) -}}
{{- end -}}
{{- range $one := $kinds -}}
{{- $named := or ($one.new).secretRef $one.old (eq ($one.new).create false) -}}
{{- if or $.always $outside $named -}}
{{- $ref := fromYaml (include "slurm.keyRef" (merge (dict "root" $.root) $one)) -}}
{{- $_ := set $.into $one.field $ref -}}
{{- end -}}
{{- end -}}
{{- if ($values.jwksKeys).enabled -}}
{{- $ref := $values.jwksKeys.configMapRef | default dict -}}
{{- $name := $ref.name | default (printf "%s-auth-jwks" (include "slurm.fullname" .root)) -}}
{{- $_ := set .into "jwksKeyRef" (dict "name" $name "key" ($ref.key | default "jwks.json")) -}}
{{- end -}}
{{- end -}}

{{/* Where sssd.conf is, as YAML. */}}
{{- define "slurm.sssdRef" -}}
{{- $ref := (.Values.sssd).secretRef | default dict -}}
name: {{ $ref.name | default (printf "%s-sssd-conf" (include "slurm.fullname" .)) }}
key: {{ $ref.key | default "sssd.conf" }}
{{- end -}}

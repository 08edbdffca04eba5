{{/* Files of slurmctld. files: what the chart makes, by the ConfigMap's suffix; refs: into a spec. */}}

{{/* configFiles as a mapping: file name to text, or a list of name and content. root; into. */}}
{{- define "slurm.putConfigFiles" -}}
{{- $given := .root.Values.configFiles -}}
{{- $into := .into -}}
{{- if kindIs "slice" $given -}}
{{- range $given -}}
{{- if hasKey $into .name -}}{{- fail (printf "configFiles: the file %q is there twice, keep one" .name) -}}{{- end -}}
{{- $_ := set $into .name .content -}}
{{- end -}}
{{- else -}}
{{- range $name, $text := $given -}}{{- $_ := set $into $name ($text | default "") -}}{{- end -}}
{{- end -}}
{{- range $name := list "slurm.conf" "slurmdbd.conf" -}}
{{- if hasKey $into $name -}}
{{- fail (printf "configFiles: the operator writes %s; add lines to it by extraConf of controller or accounting" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "slurm.scriptKinds" -}}
prolog: prolog
epilog: epilog
prologSlurmctld: prolog-slurmctld
epilogSlurmctld: epilog-slurmctld
{{- end -}}

{{/* ConfigMaps that the chart makes: suffix of the name to data. root; into. */}}
{{- define "slurm.putFiles" -}}
{{- $into := .into -}}
{{- $files := dict -}}
{{- include "slurm.putConfigFiles" (dict "root" .root "into" $files) -}}
{{- with $files -}}{{- $_ := set $into "config-extra" . -}}{{- end -}}
{{- range $field, $word := fromYaml (include "slurm.scriptKinds" .) -}}
{{- $data := dict -}}
{{- range $name, $script := index $.root.Values (printf "%sScripts" $field) -}}
{{- $_ := set $data (printf "%s-%s" $word $name) $script -}}
{{- end -}}
{{- with $data -}}{{- $_ := set $into (printf "%s-scripts" $word) . -}}{{- end -}}
{{- end -}}
{{- include "slurm.putVendorFiles" . -}}
{{- end -}}

{{/* References to them and to the user's own. root; into: the Controller's spec. */}}
{{- define "slurm.putFileRefs" -}}
{{- $into := .into -}}
{{- $root := .root -}}
{{- $made := dict -}}
{{- include "slurm.putFiles" (dict "root" $root "into" $made) -}}
{{- $fullname := include "slurm.fullname" $root -}}
{{- $refs := dict "configFileRefs" list -}}
{{- $kinds := fromYaml (include "slurm.scriptKinds" .) -}}
{{- range $field, $_ := $kinds -}}{{- $_ := set $refs (printf "%sScriptRefs" $field) list -}}{{- end -}}
{{- range $suffix, $data := $made -}}
{{- $target := "configFileRefs" -}}
{{- range $field, $word := $kinds -}}
{{- if has $suffix (list (printf "%s-scripts" $word) (printf "%s-dcgm" $word)) -}}
{{- $target = printf "%sScriptRefs" $field -}}
{{- end -}}
{{- end -}}
{{- $_ := set $refs $target (append (index $refs $target) (dict "name" (printf "%s-%s" $fullname $suffix))) -}}
{{- end -}}
{{- range $target, $found := $refs -}}
{{- $every := concat $found (index $root.Values $target | default list) | uniq -}}
{{- if $every -}}{{- $_ := set $into $target $every -}}{{- end -}}
{{- end -}}
{{- end -}}

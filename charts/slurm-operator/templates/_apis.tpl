{{/* What follows from the API groups that an operator leads. The same file is in the charts of both
     operators, as are files/rights.yaml and files/webhooks.yaml, which it reads. */}}

{{/* given: groups by commas or as a list; path: where. As YAML: a list. */}}
{{- define "penstock.apis" -}}
{{- $known := list "slinky.slurm.net" "slurm.nebius.ai" -}}
{{- $given := kindIs "string" .given | ternary (splitList "," (.given | toString)) (.given | default list) -}}
{{- $named := list -}}
{{- range $given -}}
{{- $group := trim . -}}
{{- if has $group $known -}}
{{- $named = append $named $group -}}
{{- else if not (has $group (list "" "penstock.dev")) -}}
{{- fail (printf "%s: %q is no API group of clusters, name slinky.slurm.net, slurm.nebius.ai or both" $.path $group) -}}
{{- end -}}
{{- end -}}
{{- if not $named -}}
{{- fail (printf "%s: name slinky.slurm.net, slurm.nebius.ai or both" .path) -}}
{{- end -}}
{{- $found := list -}}
{{- range $known -}}{{- if has . $named -}}{{- $found = append $found . -}}{{- end -}}{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* root; apis. Rules about objects of namespaces, as YAML: a list. */}}
{{- define "penstock.rights.watched" -}}
{{- $rights := .root.Files.Get "files/rights.yaml" | fromYaml -}}
{{- $rules := list -}}
{{- range .apis -}}{{- $rules = concat $rules (index $rights .) -}}{{- end -}}
{{- toYaml (concat $rules $rights.watched) -}}
{{- end -}}

{{/* root. Rules about objects of no namespace, as YAML: a list. */}}
{{- define "penstock.rights.everywhere" -}}
{{- $rights := .Files.Get "files/rights.yaml" | fromYaml -}}
{{- toYaml $rights.everywhere -}}
{{- end -}}

{{/* root; part: outages, replacement or rebooter. Rules about Kubernetes nodes, as YAML: a list. */}}
{{- define "penstock.rights.nodes" -}}
{{- toYaml (index (.root.Files.Get "files/rights.yaml" | fromYaml) .part) -}}
{{- end -}}

{{/* root; apis; part: validate or default. Rules of a webhook, as YAML: a list, which may be empty. */}}
{{- define "penstock.webhook.rules" -}}
{{- $part := index (.root.Files.Get "files/webhooks.yaml" | fromYaml) .part -}}
{{- $rules := list -}}
{{- range .apis -}}{{- $rules = concat $rules (index $part . | default list) -}}{{- end -}}
{{- toYaml $rules -}}
{{- end -}}

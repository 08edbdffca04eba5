{{/* The registry and path of Penstock's images, global.imageRegistry, and Secrets for it. The same file
     is in both charts, so that the value is spelt and checked alike. */}}

{{/* The prefix without a slash at its end; empty where none is set. */}}
{{- define "penstock.imageRegistry" -}}
{{- $given := (.Values.global).imageRegistry | default "" | toString | trim -}}
{{- $prefix := regexReplaceAll "/+$" $given "" -}}
{{- if $prefix -}}
{{- $host := index (splitList "/" $prefix) 0 -}}
{{- $path := trimPrefix $host $prefix -}}
{{- if contains "://" $prefix -}}
{{- fail (printf "global.imageRegistry: names of images have no %s://, write %s" (index (splitList "://" $prefix) 0) (index (splitList "://" $prefix) 1)) -}}
{{- else if contains "@" $prefix -}}
{{- fail (printf "global.imageRegistry: %q has a digest, write registry and path only; a digest is of one image (image.digest)" $prefix) -}}
{{- else if contains ":" $path -}}
{{- fail (printf "global.imageRegistry: %q has a tag, write registry and path only; the tag is global.imageVersion" $prefix) -}}
{{- else if ne $prefix (lower $prefix) -}}
{{- fail (printf "global.imageRegistry: names of images have no capitals, write %s" (lower $prefix)) -}}
{{- else if not (or (contains "." $host) (contains ":" $host) (eq $host "localhost")) -}}
{{- fail (printf "global.imageRegistry: %q names no registry, so that Docker Hub would be taken; write docker.io/%s if that is meant, else as registry.example.com/%s" $prefix $prefix $prefix) -}}
{{- else if not (regexMatch "^([a-z0-9.-]+|\\[[0-9a-f:]+\\])(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$" $prefix) -}}
{{- fail (printf "global.imageRegistry: %q is not a registry with a path, write it as registry.example.com/team/penstock" $prefix) -}}
{{- end -}}
{{- $prefix -}}
{{- end -}}
{{- end -}}

{{/* Version of the images under the prefix. */}}
{{- define "penstock.imageVersion" -}}
{{- (.Values.global).imageVersion | default .Chart.Version | toString -}}
{{- end -}}

{{/* Secrets for registries, as YAML: a list. Those of the chart, then those of all charts, by name or as
     references. */}}
{{- define "penstock.pullSecrets" -}}
{{- $found := list -}}
{{- range concat (.Values.imagePullSecrets | default list) ((.Values.global).imagePullSecrets | default list) -}}
{{- $found = append $found (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- toYaml (uniq $found) -}}
{{- end -}}

{{/* Texts of scripts by file name, and the list of checks, as YAML: `files` and `checks`. */}}
{{- define "slurm-cluster.scripts" -}}
{{- $given := .Values.slurmScripts | default dict -}}
{{- $files := dict -}}
{{- $checks := list -}}
{{- range $key := list "prolog.sh" "epilog.sh" "hc_program.sh" -}}
{{- $_ := set $files $key ($.Files.Get (printf "files/scripts/%s" $key)) -}}
{{- end -}}
{{- range $key, $file := dict "prolog" "prolog.sh" "epilog" "epilog.sh" "hcProgram" "hc_program.sh" -}}
{{- with index $given $key -}}{{- $_ := set $files $file . -}}{{- end -}}
{{- end -}}
{{- range $key := list "check_runner.py" "prolog.sh" "task_prolog.sh" "epilog.sh" "hc_program.sh" "pyxis_caching_importer.sh" -}}
{{- with index $given $key -}}{{- $_ := set $files $key . -}}{{- end -}}
{{- end -}}
{{- range $name, $text := $given.custom -}}{{- $_ := set $files $name $text -}}{{- end -}}
{{- range $name, $check := include "slurm-cluster.builtIn" . | fromYaml -}}
{{- if ne (toString $check.enabled) "false" -}}
{{- with $check.customContent -}}{{- $_ := set $files $name (tpl . $) -}}
{{- else -}}{{- with $.Files.Get (printf "files/scripts/%s" $name) -}}{{- $_ := set $files $name . -}}{{- end -}}
{{- end -}}
{{- if hasKey $files $name -}}
{{- $shipped := $.Files.Get (printf "files/checks/%s.json" $name) -}}
{{- if $check.customConfig -}}{{- $checks = append $checks (include "slurm-cluster.check" (dict "root" $ "config" $check.customConfig) | fromYaml) -}}
{{- else if $shipped -}}{{- $checks = append $checks (fromJson $shipped) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $check := $given.extra -}}
{{- $_ := set $files $name (tpl (required (printf "slurmScripts.extra.%s.content: write the text of the script" $name) $check.content) $) -}}
{{- with $check.config -}}{{- $checks = append $checks (include "slurm-cluster.check" (dict "root" $ "config" .) | fromYaml) -}}{{- end -}}
{{- end -}}
{{- with $checks -}}{{- $_ := set $files "checks.json" (toPrettyJson .) -}}{{- end -}}
{{- toJson $files -}}
{{- end -}}

{{/* Checks by script: the chart's own, and over them those of the values. As YAML. */}}
{{- define "slurm-cluster.builtIn" -}}
{{- $found := dict -}}
{{- range $path, $_ := .Files.Glob "files/checks/*.json" -}}
{{- $name := base $path | trimSuffix ".json" -}}
{{- $_ := set $found $name (dict "enabled" (ne $name "nvme_raid_health.sh")) -}}
{{- end -}}
{{- range $name, $check := (.Values.slurmScripts | default dict).builtIn -}}
{{- $_ := set $found $name (mergeOverwrite (index $found $name | default dict) ($check | default dict)) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* root; config: an entry of checks.json, as a mapping or as JSON with template expressions. */}}
{{- define "slurm-cluster.check" -}}
{{- tpl (kindIs "string" .config | ternary .config (toJson .config)) .root -}}
{{- end -}}

{{/* The ConfigMap of the scripts. */}}
{{- define "slurm-cluster.scriptsName" -}}
{{- eq (include "slurm-cluster.withWorker" .) "true" | ternary "slurm-scripts" (printf "%s-slurm-scripts" .Values.clusterName) -}}
{{- end -}}

{{/* files; path. The path, or nothing where it is in the scripts' folder and they have no such file. */}}
{{- define "slurm-cluster.script" -}}
{{- $folder := "/opt/slurm_scripts/" -}}
{{- $path := .path | default "" -}}
{{- if or (not (hasPrefix $folder $path)) (hasKey .files (trimPrefix $folder $path)) -}}{{- $path -}}{{- end -}}
{{- end -}}

{{/* files; given: customMounts. With the folder of the scripts, if there are any. */}}
{{- define "slurm-cluster.customMounts" -}}
{{- $scripts := list -}}
{{- if .files -}}
{{- $scripts = list (dict "name" "slurm-scripts" "mountPath" "/opt/slurm_scripts/" "volumeSourceName" "slurm-scripts") -}}
{{- if ne (include "slurm-cluster.jailMode" .) "None" -}}
{{- $scripts = append $scripts (dict "name" "slurm-scripts-jail" "mountPath" "/mnt/jail.upper/opt/slurm_scripts/" "volumeSourceName" "slurm-scripts") -}}
{{- end -}}
{{- end -}}
{{- toYaml (concat $scripts (.given | default list)) -}}
{{- end -}}

{{/* Image of a k8sJob check, root; name: an entry of `images`. Checks in Slurm jobs need none: the
     operator takes that of the logins. */}}
{{- define "activechecks.image" -}}
{{- $root := .root -}}
{{- $given := index ($root.Values.images | default dict) .name -}}
{{- $prefix := include "penstock.imageRegistry" $root -}}
{{- $version := include "penstock.imageVersion" $root -}}
{{- if $given -}}
{{- tpl $given $root -}}
{{- else if eq .name "sansible" -}}
{{- fail "images.sansible: name an image with your playbooks, Penstock has none" -}}
{{- else if not $prefix -}}
{{- fail (printf "images.%s: name an image, or set global.imageRegistry to the registry and path that `penstock images push --jail` pushed Penstock's to, such as registry.example.com/team/penstock" .name) -}}
{{- else if eq .name "operator" -}}
{{- printf "%s/operator:%s" $prefix $version -}}
{{- else -}}
{{- printf "%s/jail-login:%s-%s" $prefix (index $root.Chart.Annotations "penstock.dev/slurm-release") $version -}}
{{- end -}}
{{- end -}}

{{/* Name of an ActiveCheck. root, name. Jobs of a longer one would have no names. */}}
{{- define "activechecks.name" -}}
{{- $whole := printf "%s-%s" .root.Values.slurmClusterRefName .name -}}
{{- if gt (len $whole) 51 -}}
{{- $whole = printf "%s-%s" (trunc 44 $whole | trimSuffix "-") (sha256sum $whole | trunc 6) -}}
{{- end -}}
{{- $whole -}}
{{- end -}}

{{/* References to Secrets, as a JSON list: of names or references. */}}
{{- define "activechecks.secrets" -}}
{{- $found := list -}}
{{- range concat (.given | default list) ((.root.Values.global).imagePullSecrets | default list) -}}
{{- $found = append $found (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- uniq $found | toJson -}}
{{- end -}}

{{/* A file of the chart, or one that the values have, as text. root, file, templated. */}}
{{- define "activechecks.script" -}}
{{- $text := .root.Files.Get .file -}}
{{- if not $text -}}
{{- fail (printf "checks.%s: the chart has no file %s; write the script in slurmJobSpec.sbatchScript, or the command in k8sJobSpec.jobContainer.command" .name .file) -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* Names in dependsOn, as a JSON list. One that is switched off here would be waited for for ever. */}}
{{- define "activechecks.dependsOn" -}}
{{- $root := .root -}}
{{- $found := list -}}
{{- range .names -}}
{{- $check := index $root.Values.checks . -}}
{{- if or (not $check) $check.enabled -}}
{{- $found = append $found (include "activechecks.name" (dict "root" $root "name" .)) -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* A container of a check, as JSON. root, name, given, script, of (slurmJob or k8sJob), spec. */}}
{{- define "activechecks.container" -}}
{{- $root := .root -}}
{{- $common := $root.Values.jobContainer | default dict -}}
{{- $given := .given | default dict -}}
{{- $isSlurm := eq .of "slurmJob" -}}
{{- $spec := .spec -}}
{{- $env := list -}}
{{- if or $isSlurm $spec.includeCommonEnv -}}{{- $env = concat $env ($common.env | default list) -}}{{- end -}}
{{- $env = concat $env ($given.env | default list) ($given.extraEnv | default list) -}}
{{- if eq ($given.workingDir | default "") "/opt/ansible" -}}
{{- $cuda := $root.Values.cudaVersion | toString -}}
{{- $tests := $root.Values.ncclTestsVersion | default (index ($root.Values.ncclTestsVersions | default dict) $cuda) -}}
{{- $tests = required (printf "ncclTestsVersions: name the version of nccl-tests for CUDA %s, or set ncclTestsVersion" $cuda) $tests -}}
{{- $env = concat $env (list (dict "name" "CUDA_VERSION" "value" $cuda) (dict "name" "NCCL_TESTS_VERSION" "value" $tests)) -}}
{{- end -}}
{{- $mounts := concat ($given.volumeMounts | default list) ($given.extraVolumeMounts | default list) -}}
{{- $volumes := concat ($given.volumes | default list) ($given.extraVolumes | default list) -}}
{{- $withMounts := $isSlurm | or (ne (toString $spec.useCommonVolumeMounts) "false") -}}
{{- $withVolumes := $isSlurm | or (ne (toString $spec.useCommonVolumes) "false") -}}
{{- if and $withMounts (not (hasKey $given "volumeMounts")) -}}{{- $mounts = concat ($common.volumeMounts | default list) $mounts -}}{{- end -}}
{{- if and $withVolumes (not (hasKey $given "volumes")) -}}{{- $volumes = concat ($common.volumes | default list) $volumes -}}{{- end -}}
{{- $volumes = concat $volumes ($spec.volumes | default list) ($spec.extraVolumes | default list) -}}
{{- $out := dict -}}
{{- $image := $given.image -}}
{{- if $image -}}
{{- $image = tpl $image $root -}}
{{- end -}}
{{- if $image -}}
{{- else if $isSlurm -}}
{{- $image = $root.Values.images.slurmJob | default "" -}}
{{- else -}}
{{- $image = include "activechecks.image" (dict "root" $root "name" (empty $spec.pythonScriptFile | ternary "k8sJob" "operator")) -}}
{{- end -}}
{{- with $image -}}{{- $_ := set $out "image" (tpl . $root) -}}{{- end -}}
{{- with $given.imagePullPolicy | default $common.imagePullPolicy -}}{{- $_ := set $out "imagePullPolicy" . -}}{{- end -}}
{{- $secrets := include "activechecks.secrets" (dict "root" $root "given" ($given.imagePullSecrets | default $common.imagePullSecrets)) | fromJsonArray -}}
{{- with $secrets -}}{{- $_ := set $out "imagePullSecrets" . -}}{{- end -}}
{{- with $given.command -}}{{- $_ := set $out "command" . -}}{{- end -}}
{{- with $given.args -}}{{- $_ := set $out "args" . -}}{{- end -}}
{{- with $given.workingDir -}}{{- $_ := set $out "workingDir" . -}}{{- end -}}
{{- with $given.appArmorProfile -}}{{- $_ := set $out "appArmorProfile" . -}}{{- end -}}
{{- if $spec.scriptFile -}}
{{- $text := include "activechecks.script" (dict "root" $root "name" .name "file" $spec.scriptFile) -}}
{{- $_ := set $out "command" (list "/bin/bash" "-c" $text) -}}
{{- else if $spec.pythonScriptFile -}}
{{- $text := include "activechecks.script" (dict "root" $root "name" .name "file" $spec.pythonScriptFile) -}}
{{- $_ := set $out "command" (list "/usr/bin/python3" "-B" "-c" $text) -}}
{{- end -}}
{{- with $env -}}{{- $_ := set $out "env" (tpl (toYaml .) $root | fromYamlArray) -}}{{- end -}}
{{- with $mounts -}}{{- $_ := set $out "volumeMounts" . -}}{{- end -}}
{{- with $volumes -}}{{- $_ := set $out "volumes" . -}}{{- end -}}
{{- $out | toJson -}}
{{- end -}}

{{/* The munge container of a check, as JSON: of the logins where nothing is given. */}}
{{- define "activechecks.munge" -}}
{{- $root := .root -}}
{{- $out := dict -}}
{{- with (.given).image | default $root.Values.images.munge -}}{{- $_ := set $out "image" (tpl . $root) -}}{{- end -}}
{{- with (.given).appArmorProfile -}}{{- $_ := set $out "appArmorProfile" . -}}{{- end -}}
{{- $out | toJson -}}
{{- end -}}

{{/* spec of an ActiveCheck, as JSON. root, name, check. */}}
{{- define "activechecks.spec" -}}
{{- $root := .root -}}
{{- $name := .name -}}
{{- $check := .check -}}
{{- $out := dict "name" (include "activechecks.name" (dict "root" $root "name" $name)) "slurmClusterRefName" $root.Values.slurmClusterRefName -}}
{{- $_ := set $out "suspend" ($check.suspend | default false) -}}
{{- $_ := set $out "runAfterCreation" ($check.runAfterCreation | default false) -}}
{{- $type := $check.checkType | default "k8sJob" -}}
{{- $_ := set $out "checkType" $type -}}
{{- range $key := list "schedule" "activeDeadlineSeconds" "successReactions" "failureReactions" "podTemplateNameRef" -}}
{{- with index $check $key -}}{{- $_ := set $out $key . -}}{{- end -}}
{{- end -}}
{{- range $key := list "successfulJobsHistoryLimit" "failedJobsHistoryLimit" -}}
{{- if not (kindIs "invalid" (index $check $key)) -}}{{- $_ := set $out $key (index $check $key | int) -}}{{- end -}}
{{- end -}}
{{- range $key := list "nodeSelector" "affinity" "tolerations" -}}
{{- with hasKey $check $key | ternary (index $check $key) (index $root.Values $key) -}}{{- $_ := set $out $key . -}}{{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" $root.Values.hostUsers) -}}{{- $_ := set $out "hostUsers" $root.Values.hostUsers -}}{{- end -}}
{{- with include "activechecks.dependsOn" (dict "root" $root "names" ($check.dependsOn | default list)) | fromJsonArray -}}{{- $_ := set $out "dependsOn" . -}}{{- end -}}
{{- if eq $type "slurmJob" -}}
{{- $given := $check.slurmJobSpec | default dict -}}
{{- $made := dict "jobContainer" (include "activechecks.container" (dict "root" $root "name" $name "given" $given.jobContainer "of" $type "spec" $given) | fromJson) -}}
{{- with include "activechecks.munge" (dict "root" $root "given" $given.mungeContainer) | fromJson -}}{{- $_ := set $made "mungeContainer" . -}}{{- end -}}
{{- if $given.sbatchScript -}}
{{- $_ := set $made "sbatchScript" $given.sbatchScript -}}
{{- else if $given.sbatchScriptFile -}}
{{- $text := include "activechecks.script" (dict "root" $root "name" $name "file" $given.sbatchScriptFile) -}}
{{- $_ := set $made "sbatchScript" (tpl $text $root) -}}
{{- else -}}
{{- fail (printf "checks.%s.slurmJobSpec: write sbatchScript, or name a file of the chart in sbatchScriptFile" $name) -}}
{{- end -}}
{{- with $given.eachWorkerJobs -}}{{- $_ := set $made "eachWorkerJobs" . -}}{{- end -}}
{{- with $given.maxNumberOfJobs -}}{{- $_ := set $made "maxNumberOfJobs" (int .) -}}{{- end -}}
{{- $_ := set $out "slurmJobSpec" $made -}}
{{- else -}}
{{- $given := $check.k8sJobSpec | default dict -}}
{{- $made := dict "jobContainer" (include "activechecks.container" (dict "root" $root "name" $name "given" $given.jobContainer "of" $type "spec" $given) | fromJson) -}}
{{- if ($given.mungeContainer).enabled -}}
{{- $_ := set $made "mungeContainer" (include "activechecks.munge" (dict "root" $root "given" $given.mungeContainer) | fromJson) -}}
{{- end -}}
{{- $_ := set $out "k8sJobSpec" $made -}}
{{- end -}}
{{- $out | toJson -}}
{{- end -}}

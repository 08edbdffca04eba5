{{/* Images where neither the values nor global.imageRegistry name one: those that SlinkyProject
     publishes, as its chart has them, so that a move between the charts restarts nothing. Their tags
     are the defaults of values.yaml, where they stay for an image with a repository of its own. */}}
{{- define "slurm.published" -}}
slurmctld: ghcr.io/slinkyproject/slurmctld
reconfigure: ghcr.io/slinkyproject/slurmctld
slurmrestd: ghcr.io/slinkyproject/slurmrestd
slurmdbd: ghcr.io/slinkyproject/slurmdbd
slurmd: ghcr.io/slinkyproject/slurmd
login: ghcr.io/slinkyproject/login
initconf: docker.io/library/alpine
logfile: docker.io/library/alpine
{{- end -}}

{{/* An image as one text, from a text or from repository, tag and digest; empty: the operator's.
     root; container: its name; image. A repository that is null is that of global.imageRegistry, where
     a container beside a daemon has none: it gets the daemon's image. */}}
{{- define "slurm.imageOf" -}}
{{- $prefix := include "penstock.imageRegistry" .root -}}
{{- $image := .image -}}
{{- if kindIs "string" $image -}}
{{- $image -}}
{{- else if kindIs "map" $image -}}
{{- $own := kindIs "invalid" $image.repository -}}
{{- $repository := $image.repository | default "" -}}
{{- $tag := $image.tag | default "" -}}
{{- if and $own $prefix -}}
{{- $told := not (has $tag (list "" "latest" "26.05-ubuntu26.04")) -}}
{{- $beside := has .container (list "reconfigure" "initconf" "logfile") -}}
{{- if or $told $image.digest (not $beside) -}}
{{- $repository = printf "%s/%s" $prefix ($beside | ternary "slurm" .container) -}}
{{- if not $told -}}
{{- $tag = printf "%s-%s" .root.Chart.AppVersion (include "penstock.imageVersion" .root) -}}
{{- end -}}
{{- end -}}
{{- else if $own -}}
{{- $repository = index (include "slurm.published" . | fromYaml) .container -}}
{{- end -}}
{{- if $repository -}}
{{- $repository -}}
{{- if $image.digest -}}@{{ $image.digest }}{{- else if $tag -}}:{{ $tag }}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Copies what has a value: an empty list or mapping says nothing, false and 0 do.
     from; into; but: keys that are left out. */}}
{{- define "slurm.putGiven" -}}
{{- $but := .but | default list -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- $hollow := and (or (kindIs "map" $value) (kindIs "slice" $value)) (empty $value) -}}
{{- if not (or (kindIs "invalid" $value) $hollow (has $key $but)) -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A container. root; into; key; values. */}}
{{- define "slurm.putContainer" -}}
{{- $out := dict -}}
{{- include "slurm.putGiven" (dict "from" .values "into" $out "but" (list "image")) -}}
{{- with include "slurm.imageOf" (dict "root" .root "container" .key "image" (.values).image) -}}{{- $_ := set $out "image" . -}}{{- end -}}
{{- $policy := $out.imagePullPolicy | default .root.Values.imagePullPolicy -}}
{{- if $policy -}}{{- $_ := set $out "imagePullPolicy" $policy -}}{{- end -}}
{{- if $out -}}{{- $_ := set .into .key $out -}}{{- end -}}
{{- end -}}

{{/* The template of pods. root; into; metadata and podSpec of the values. */}}
{{- define "slurm.putTemplate" -}}
{{- $user := .metadata | default dict -}}
{{- $steady := fromYaml (include "slurm.steadyLabels" .root) -}}
{{- $metadata := dict "labels" (merge dict ($user.labels | default dict) $steady) -}}
{{- with $user.annotations -}}{{- $_ := set $metadata "annotations" . -}}{{- end -}}
{{- $spec := dict -}}
{{- include "slurm.putGiven" (dict "from" .podSpec "into" $spec) -}}
{{- $secrets := concat ($spec.imagePullSecrets | default list) (include "penstock.pullSecrets" .root | fromYamlArray) | uniq -}}
{{- if $secrets -}}{{- $_ := set $spec "imagePullSecrets" $secrets -}}{{- end -}}
{{- $priority := .root.Values.priorityClass -}}
{{- if and $priority.enabled (not $spec.priorityClassName) -}}
{{- $_ := set $spec "priorityClassName" $priority.name -}}
{{- end -}}
{{- $_ := set .into "template" (dict "metadata" $metadata "spec" $spec) -}}
{{- end -}}

{{/* These two are found by a Service and by fixed names. values; path. */}}
{{- define "slurm.ownNetwork" -}}
{{- if (.values.podSpec).hostNetwork -}}
{{- fail (printf "%s.podSpec.hostNetwork: not offered, its clients find it by a Service and fixed names; restapi, and entries of nodesets and loginsets, may have it" .path) -}}
{{- end -}}
{{- end -}}

{{/* A Service. into; values. */}}
{{- define "slurm.putService" -}}
{{- $out := dict -}}
{{- include "slurm.putGiven" (dict "from" .values "into" $out) -}}
{{- if $out -}}{{- $_ := set .into "service" $out -}}{{- end -}}
{{- end -}}

{{/* Where an outside daemon is. into; values: external and externalConfig. */}}
{{- define "slurm.putExternal" -}}
{{- if .values.external -}}
{{- $where := dict -}}
{{- include "slurm.putGiven" (dict "from" .values.externalConfig "into" $where) -}}
{{- $_ := set .into "external" true -}}
{{- $_ := set .into "externalConfig" $where -}}
{{- end -}}
{{- end -}}

{{/* The words of a mapping, Key=Value in the order of the keys. values; separator. */}}
{{- define "slurm.wordsOf" -}}
{{- $words := list -}}
{{- range $key, $value := .values -}}
{{- $text := "" -}}
{{- if kindIs "slice" $value -}}
{{- $items := list -}}
{{- range $value -}}{{- $items = append $items (include "slurm.wordOf" .) -}}{{- end -}}
{{- $text = join "," $items -}}
{{- else -}}
{{- $text = include "slurm.wordOf" $value -}}
{{- end -}}
{{- if $text -}}{{- $words = append $words (printf "%s=%s" $key $text) -}}{{- end -}}
{{- end -}}
{{- join .separator $words -}}
{{- end -}}

{{/* One value. Helm holds every number as a float, which text would round. */}}
{{- define "slurm.wordOf" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else if not (kindIs "invalid" .) -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{/* Raw text, or else the words of a mapping. values; text and map: names of the two; separator. */}}
{{- define "slurm.confOf" -}}
{{- $text := index .values .text -}}
{{- if $text -}}
{{- $text -}}
{{- else -}}
{{- include "slurm.wordsOf" (dict "values" (index .values .map) "separator" .separator) -}}
{{- end -}}
{{- end -}}

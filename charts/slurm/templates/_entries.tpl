{{/* Entries of nodesets and of loginsets: a mapping by key, or a list with names as in older charts;
     the word may be spelt nodeSets, loginSets. Each entry is laid over the defaults.
     root; fields: the two spellings; defaults; container: the entry's main container; into. */}}
{{- define "slurm.putEntries" -}}
{{- $into := .into -}}
{{- $defaults := index .fields 0 | trimSuffix "s" | printf "%sDefaults" -}}
{{- range $field := list "name" "fullnameOverride" -}}
{{- if index $.defaults $field -}}
{{- fail (printf "%s.%s: a name is of one entry, not of all" $defaults $field) -}}
{{- end -}}
{{- end -}}
{{- range $field := list "image" "imagePullPolicy" "resources" "securityContext" -}}
{{- if hasKey $.defaults $field -}}
{{- fail (printf "%s.%s: write it as %s.%s.%s" $defaults $field $defaults $.container $field) -}}
{{- end -}}
{{- end -}}
{{- range $field := list "affinity" "tolerations" -}}
{{- if hasKey $.defaults $field -}}
{{- fail (printf "%s.%s: write it as %s.podSpec.%s" $defaults $field $defaults $field) -}}
{{- end -}}
{{- end -}}
{{- $given := dict -}}
{{- $forms := dict -}}
{{- range $field := .fields -}}
{{- $value := index $.root.Values $field -}}
{{- if $value -}}{{- $_ := set $forms (kindOf $value) $field -}}{{- end -}}
{{- $pairs := list -}}
{{- if kindIs "slice" $value -}}
{{- range $value -}}{{- $pairs = append $pairs (list .name (omit . "name")) -}}{{- end -}}
{{- else -}}
{{- range $key, $item := $value -}}
{{- if ($item).name -}}
{{- fail (printf "%s.%s.name: the key is the name; the object takes another name by fullnameOverride" $field $key) -}}
{{- end -}}
{{- $pairs = append $pairs (list $key ($item | default dict)) -}}
{{- end -}}
{{- end -}}
{{- range $pairs -}}
{{- $key := index . 0 -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $key) -}}
{{- fail (printf "%s: %q cannot be part of a host name: write lower-case letters, digits and dashes" $field $key) -}}
{{- end -}}
{{- if hasKey $given $key -}}
{{- fail (printf "%s: the entry %q is there twice, keep one (%s and %s mean the same)" $field $key (index $.fields 0) (index $.fields 1)) -}}
{{- end -}}
{{- $_ := set $given $key (index . 1) -}}
{{- end -}}
{{- end -}}
{{- if gt (len $forms) 1 -}}
{{- fail (printf "%s is a list and %s is a mapping: write the entries %s in one of them" (index $forms "slice") (index $forms "map") (keys $given | sortAlpha | join ", ")) -}}
{{- end -}}
{{- range $key, $item := $given -}}
{{- $path := printf "%s.%s" (index $.fields 0) $key -}}
{{- $own := deepCopy $item -}}
{{- include "slurm.putAliases" (dict "entry" $own "container" $.container "path" $path) -}}
{{- $entry := mustMergeOverwrite (deepCopy $.defaults) $own -}}
{{- if $entry.enabled -}}
{{- $_ := set $into $key $entry -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What older charts had at the entry itself belongs to its container, and what pages of
     slurm-operator show there to its pods. entry; container; path. */}}
{{- define "slurm.putAliases" -}}
{{- $container := index .entry .container | default dict -}}
{{- range $field := list "image" "imagePullPolicy" "resources" "securityContext" -}}
{{- if hasKey $.entry $field -}}
{{- if hasKey $container $field -}}
{{- fail (printf "%s.%s and %s.%s.%s mean the same: keep one" $.path $field $.path $.container $field) -}}
{{- end -}}
{{- $_ := set $container $field (index $.entry $field) -}}
{{- $_ := unset $.entry $field -}}
{{- end -}}
{{- end -}}
{{- if $container -}}{{- $_ := set .entry .container $container -}}{{- end -}}
{{- $pod := .entry.podSpec | default dict -}}
{{- range $field := list "affinity" "tolerations" -}}
{{- if hasKey $.entry $field -}}
{{- if index $pod $field -}}
{{- fail (printf "%s.%s and %s.podSpec.%s mean the same: keep one" $.path $field $.path $field) -}}
{{- end -}}
{{- with index $.entry $field -}}{{- $_ := set $pod $field . -}}{{- end -}}
{{- $_ := unset $.entry $field -}}
{{- end -}}
{{- end -}}
{{- if $pod -}}{{- $_ := set .entry "podSpec" $pod -}}{{- end -}}
{{- end -}}

{{- define "slurm.putNodesets" -}}
{{- include "slurm.putEntries" (dict "root" .root "fields" (list "nodesets" "nodeSets") "defaults" .root.Values.nodesetDefaults "container" "slurmd" "into" .into) -}}
{{- end -}}

{{/* A file with the keys of older charts and no word of logins gets the login of those charts. */}}
{{- define "slurm.putLoginsets" -}}
{{- $values := .root.Values -}}
{{- include "slurm.putEntries" (dict "root" .root "fields" (list "loginsets" "loginSets") "defaults" $values.loginsetDefaults "container" "login" "into" .into) -}}
{{- $silent := and (kindIs "invalid" $values.loginsets) (kindIs "invalid" $values.loginSets) -}}
{{- if and $silent (include "slurm.oldKeys" .root) -}}
{{- $_ := set .into "slinky" (deepCopy $values.loginsetDefaults) -}}
{{- end -}}
{{- end -}}

{{/* Name of an entry's object. root; part: worker or login; key; entry. */}}
{{- define "slurm.entryName" -}}
{{- .entry.fullnameOverride | default (printf "%s-%s-%s" (include "slurm.fullname" .root) .part .key) -}}
{{- end -}}

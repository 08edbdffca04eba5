{{/* root; path; entry. spec of a NodeSet, as YAML. */}}
{{- define "nodesets.spec" -}}
{{- $entry := .entry -}}
{{- $gpu := eq (toString ($entry.gpu).enabled) "true" -}}
{{- $spec := pick $entry "ephemeralTopologyWaitTimeout" "initialNumberEphemeralNodes" "workerInitRandomDelaySeconds" "docker" "topology" "nodeConfig" -}}
{{- range $key := list "affinity" "configMapRefSshd" "configMapRefSupervisord" "customInitContainers" "enableHostUserNamespace" "ephemeralNodes" "nodeAttributes" "nodeSelector" "priorityClass" "sshd" "sssdConfSecretRefName" "sssdLdapCAConfigMapRefName" "supervisord" "tolerations" "workerAnnotations" -}}
{{- with index $entry $key -}}{{- $_ := set $spec $key . -}}{{- end -}}
{{- end -}}
{{- $_ := set $spec "clusterName" (include "nodesets.cluster" .) -}}
{{- $_ = set $spec "replicas" (hasKey $entry "replicas" | ternary $entry.replicas 1 | int) -}}
{{- $_ = set $spec "maxUnavailable" ($entry.maxUnavailable | default 500) -}}
{{- $_ = set $spec "updateStrategy" ($entry.updateStrategy | default "rollingUpdate") -}}
{{- $_ = set $spec "gpu" (mergeOverwrite (dict "enabled" $gpu) ($entry.gpu | default dict)) -}}
{{- $slurmd := deepCopy ($entry.slurmd | default dict) -}}
{{- $path := printf "%s.slurmd" .path -}}
{{- $container := include "nodesets.container" (dict "root" .root "name" "slurmd" "role" "jail-slurmd" "path" $path "given" $slurmd "gpu" $gpu) | fromYaml -}}
{{- $_ = set $container.security "procMount" ($container.security.procMount | default "Default") -}}
{{- $_ = set $container "port" ($slurmd.port | default 6818 | int) -}}
{{- $_ = set $container "volumes" (include "nodesets.volumes" (dict "path" (printf "%s.volumes" $path) "mode" .root.Values.jailMode "given" $slurmd.volumes) | fromYaml) -}}
{{- range $key, $value := pick $slurmd "customEnv" "cgroupVersion" -}}{{- with $value -}}{{- $_ := set $container $key . -}}{{- end -}}{{- end -}}
{{- $_ = set $spec "slurmd" $container -}}
{{- $munge := deepCopy ($entry.munge | default dict) -}}
{{- $_ = set $munge "resources" (mergeOverwrite (dict "cpu" "500m" "memory" "500Mi") ($munge.resources | default dict)) -}}
{{- $_ = set $spec "munge" (include "nodesets.container" (dict "root" .root "name" "munge" "role" "munge" "path" (printf "%s.munge" .path) "given" $munge) | fromYaml) -}}
{{- $sssd := deepCopy ($entry.sssd | default dict) -}}
{{- $_ = set $spec "sssdDebugLevel" ($sssd.sssdDebugLevel | default 0 | int) -}}
{{- if $sssd.enabled -}}
{{- $_ := set $sssd "resources" (mergeOverwrite (dict "cpu" "200m" "memory" "500Mi" "ephemeralStorage" "5Gi") ($sssd.resources | default dict)) -}}
{{- $_ = set $spec "sssd" (include "nodesets.container" (dict "root" .root "name" "sssd" "path" (printf "%s.sssd" .path) "given" $sssd) | fromYaml) -}}
{{- end -}}
{{- if ($entry.nodeExporter).enabled -}}
{{- $sidecar := include "nodesets.nodeExporter" (dict "root" .root "given" $entry.nodeExporter) | fromYaml -}}
{{- $_ := set $spec "customInitContainers" (append ($entry.customInitContainers | default list) $sidecar) -}}
{{- end -}}
{{- $secrets := ($slurmd.image | default dict).imagePullSecrets | default (include "penstock.pullSecrets" .root | fromYamlArray) -}}
{{- with $secrets -}}
{{- $found := list -}}
{{- range . -}}{{- $found = append $found (kindIs "string" . | ternary (dict "name" .) .) -}}{{- end -}}
{{- $_ := set $spec "imagePullSecrets" $found -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

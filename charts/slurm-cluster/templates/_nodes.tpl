{{/* Components of spec.slurmNodes, each as YAML. All take: root; values; files: names of scripts. */}}

{{/* Shared, PerWorker or None. */}}
{{- define "slurm-cluster.jailMode" -}}{{- .values.jailMode | default "Shared" -}}{{- end -}}

{{- define "slurm-cluster.controller" -}}
{{- $path := "slurmNodes.controller" -}}
{{- $given := .values.slurmNodes.controller -}}
{{- $spec := include "slurm-cluster.node" (dict "root" .root "values" .values "part" "controller" "path" $path "node" (omit $given "placeholder") "usual" "no-gpu") | fromYaml -}}
{{- include "slurm-cluster.containers" (dict "root" .root "spec" $spec "images" (dict "slurmctld" "slurmctld" "munge" "munge")) -}}
{{- $volumes := $spec.volumes -}}
{{- if not $volumes.spool -}}
{{- $_ := set $volumes "spool" (dict "volumeClaimTemplateSpec" (dict "accessModes" (list "ReadWriteOnce") "resources" (dict "requests" (dict "storage" "50Gi")))) -}}
{{- end -}}
{{- if eq (include "slurm-cluster.jailMode" .) "None" -}}{{- $_ := unset $volumes "jail" -}}{{- end -}}
{{- include "slurm-cluster.checkVolumes" (dict "values" .values "path" $path "volumes" $volumes) -}}
{{- if not $volumes.customMounts -}}{{- $_ := unset $volumes "customMounts" -}}{{- end -}}
{{- if not (include "slurm-cluster.withWorker" .root) -}}
{{- $account := include "slurm-cluster.account" (dict "account" $given.serviceAccount "name" (printf "%s-slurm-controller" .values.clusterName)) -}}
{{- $_ := set $spec "serviceAccountName" $account -}}
{{- end -}}
{{- include "slurm-cluster.sssd" (dict "root" .root "values" .values "spec" $spec) -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.worker" -}}
{{- $path := "slurmNodes.worker" -}}
{{- $usual := eq .values.clusterType "gpu" | ternary "gpu" "no-gpu" -}}
{{- $spec := include "slurm-cluster.node" (dict "root" .root "values" .values "part" "worker" "path" $path "node" .values.slurmNodes.worker "usual" $usual) | fromYaml -}}
{{- include "slurm-cluster.containers" (dict "root" .root "spec" $spec "images" (dict "slurmd" "slurmd" "munge" "munge")) -}}
{{- $volumes := $spec.volumes -}}
{{- if not $volumes.spool -}}
{{- $_ := set $volumes "spool" (dict "volumeClaimTemplateSpec" (dict "accessModes" (list "ReadWriteOnce") "resources" (dict "requests" (dict "storage" "128Gi")))) -}}
{{- end -}}
{{- $mode := include "slurm-cluster.jailMode" . -}}
{{- if eq $mode "None" -}}{{- $_ := unset $volumes "jail" -}}
{{- else if eq $mode "PerWorker" -}}
{{- $claim := ($volumes.jail).volumeClaimTemplateSpec | default (dict "accessModes" (list "ReadWriteOnce") "resources" (dict "requests" (dict "storage" "128Gi"))) -}}
{{- $_ := set $volumes "jail" (dict "volumeClaimTemplateSpec" $claim) -}}
{{- end -}}
{{- include "slurm-cluster.checkVolumes" (dict "values" .values "path" $path "volumes" $volumes) -}}
{{- $_ := set $volumes "customMounts" (include "slurm-cluster.customMounts" (dict "values" .values "files" .files "given" $volumes.customMounts) | fromYamlArray) -}}
{{- $_ = set $spec "customInitContainers" ($spec.customInitContainers | default list) -}}
{{- range $key := list "slurmNodeExtra" "sshdConfigMapRefName" "supervisordConfigMapRefName" -}}
{{- if not (index $spec $key) -}}{{- $_ := unset $spec $key -}}{{- end -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.login" -}}
{{- $path := "slurmNodes.login" -}}
{{- $spec := include "slurm-cluster.node" (dict "root" .root "values" .values "part" "login" "path" $path "node" .values.slurmNodes.login "usual" "no-gpu") | fromYaml -}}
{{- include "slurm-cluster.containers" (dict "root" .root "spec" $spec "images" (dict "sshd" "sshd" "munge" "munge")) -}}
{{- $volumes := $spec.volumes -}}
{{- if eq (include "slurm-cluster.jailMode" .) "None" -}}{{- $_ := unset $volumes "jail" -}}{{- end -}}
{{- include "slurm-cluster.checkVolumes" (dict "values" .values "path" $path "volumes" $volumes) -}}
{{- $_ := set $volumes "customMounts" (include "slurm-cluster.customMounts" (dict "values" .values "files" .files "given" $volumes.customMounts) | fromYamlArray) -}}
{{- range $key := list "sshdServiceLoadBalancerIP" "sshdServiceLoadBalancerSourceRanges" "sshdConfigMapRefName" -}}
{{- if not (index $spec $key) -}}{{- $_ := unset $spec $key -}}{{- end -}}
{{- end -}}
{{- if ne $spec.sshdServiceType "NodePort" -}}{{- $_ := unset $spec "sshdServiceNodePort" -}}{{- end -}}
{{- include "slurm-cluster.sssd" (dict "root" .root "values" .values "spec" $spec) -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.accounting" -}}
{{- $path := "slurmNodes.accounting" -}}
{{- $given := .values.slurmNodes.accounting -}}
{{- $spec := include "slurm-cluster.node" (dict "root" .root "values" .values "part" "accounting" "path" $path "node" $given "usual" "no-gpu") | fromYaml -}}
{{- if not $given.enabled -}}
{{- $spec = pick $spec "enabled" "k8sNodeFilterName" "priorityClass" "slurmConfig" "slurmdbdConfig" "customInitContainers" "hostUsers" -}}
{{- else -}}
{{- include "slurm-cluster.containers" (dict "root" .root "spec" $spec "images" (dict "slurmdbd" "slurmdbd" "munge" "munge")) -}}
{{- $database := $given.mariadbOperator | default dict -}}
{{- $databases := list -}}
{{- range $one := list "externalDB" "mariadbOperator" "embeddedDB" -}}
{{- if (get $given $one | default dict).enabled -}}{{- $databases = append $databases (printf "%s.enabled" $one) -}}{{- end -}}
{{- end -}}
{{- if gt (len $databases) 1 -}}
{{- fail (printf "%s: %s exclude each other; set all but one of them to false" $path (join " and " $databases)) -}}
{{- else if not $databases -}}
{{- fail (printf "%s.enabled: slurmdbd needs a database; set externalDB.enabled, mariadbOperator.enabled or embeddedDB.enabled to true" $path) -}}
{{- end -}}
{{- if not ($given.embeddedDB).enabled -}}{{- $_ := unset $spec "embeddedDB" -}}{{- end -}}
{{- if $database.enabled -}}
{{- $_ := unset $spec "externalDB" -}}
{{- $database = omit $database "resources" -}}
{{- $_ = set $database "image" (include "slurm-cluster.image" (dict "root" .root "name" "mariaDB")) -}}
{{- $_ = set $database "resources" (include "slurm-cluster.resources" $given.mariadbOperator.resources | fromYaml) -}}
{{- if not $database.priorityClassName -}}{{- $_ := unset $database "priorityClassName" -}}{{- end -}}
{{- if not (include "slurm-cluster.withWorker" .root) -}}
{{- $usual := dict "priorityClassName" (printf "%s-slurm-mariadb" .values.clusterName) "imagePullPolicy" .values.imagePullPolicy -}}
{{- include "slurm-cluster.fill" (dict "into" $database "from" $usual) -}}
{{- end -}}
{{- $_ = set $spec "mariadbOperator" $database -}}
{{- else if ($given.embeddedDB).enabled -}}
{{- $_ := unset $spec "mariadbOperator" -}}
{{- $_ = unset $spec "externalDB" -}}
{{- $embedded := omit $given.embeddedDB "image" -}}
{{- $_ = set $embedded "image" (include "slurm-cluster.image" (dict "root" .root "name" "mariaDB")) -}}
{{- $_ = set $spec "embeddedDB" $embedded -}}
{{- else -}}
{{- $_ := unset $spec "mariadbOperator" -}}
{{- $_ = required (printf "%s.externalDB.host: name the host of the database" $path) $given.externalDB.host -}}
{{- end -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.exporter" -}}
{{- $path := "slurmNodes.exporter" -}}
{{- $given := .values.slurmNodes.exporter -}}
{{- $spec := include "slurm-cluster.node" (dict "root" .root "values" .values "part" "exporter" "path" $path "node" (omit $given "appArmorProfile" "imagePullPolicy" "imagePullSecrets" "exporter" "munge" "volumes") "usual" "no-gpu") | fromYaml -}}
{{- $container := deepCopy ($given.exporterContainer | default dict) -}}
{{- include "slurm-cluster.fill" (dict "into" $container "from" (pick $given "appArmorProfile" "imagePullPolicy" "imagePullSecrets")) -}}
{{- $_ := set $spec "exporterContainer" $container -}}
{{- include "slurm-cluster.containers" (dict "root" .root "spec" $spec "images" (dict "exporterContainer" "soperatorExporter")) -}}
{{- if not $spec.customInitContainers -}}{{- $_ := unset $spec "customInitContainers" -}}{{- end -}}
{{- if not (include "slurm-cluster.withWorker" .root) -}}
{{- $account := include "slurm-cluster.account" (dict "account" $given.serviceAccount "name" (printf "%s-exporter-sa" .values.clusterName)) -}}
{{- $_ := set $spec "serviceAccountName" $account -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.rest" -}}
{{- $spec := include "slurm-cluster.node" (dict "root" .root "values" .values "part" "rest" "path" "slurmNodes.rest" "node" .values.slurmNodes.rest "usual" "no-gpu") | fromYaml -}}
{{- include "slurm-cluster.containers" (dict "root" .root "spec" $spec "images" (dict "rest" "slurmrestd")) -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.sConfigController" -}}
{{- $given := .values.sConfigController -}}
{{- $spec := omit (deepCopy $given) "rbac" "serviceAccount" "serviceMonitor" "nodeExporter" -}}
{{- $node := deepCopy $given.node -}}
{{- $_ := set $node "nodeExporter" ($given.nodeExporter | default dict) -}}
{{- $_ = set $spec "node" (include "slurm-cluster.node" (dict "root" .root "values" .values "part" "sconfigcontroller" "path" "sConfigController.node" "node" $node "usual" "system") | fromYaml) -}}
{{- include "slurm-cluster.containers" (dict "root" .root "spec" $spec "images" (dict "container" "sConfigController")) -}}
{{- if not (include "slurm-cluster.withWorker" .root) -}}
{{- $account := include "slurm-cluster.account" (dict "account" $given.serviceAccount "name" (printf "%s-sconfigcontroller" .values.clusterName)) -}}
{{- $_ := set $spec "serviceAccountName" $account -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.populateJail" -}}
{{- $given := deepCopy .values.populateJail -}}
{{- $spec := include "slurm-cluster.node" (dict "root" .root "values" .values "part" "populate-jail" "path" "populateJail" "node" $given "usual" "gpu") | fromYaml -}}
{{- with $given.jailSnapshotVolume -}}
{{- include "slurm-cluster.checkVolume" (dict "values" $.values "path" "populateJail.jailSnapshotVolume" "volume" .) -}}
{{- end -}}
{{- include "slurm-cluster.container" (dict "root" .root "image" "populateJail" "given" $spec) -}}
{{- end -}}

{{/* root; spec; images: entries of `images` by the name of the container. Puts the containers. */}}
{{- define "slurm-cluster.containers" -}}
{{- range $name, $image := .images -}}
{{- $container := include "slurm-cluster.container" (dict "root" $.root "image" $image "given" (index $.spec $name)) | fromYaml -}}
{{- $_ := set $.spec $name $container -}}
{{- end -}}
{{- end -}}

{{/* values; path; volumes of a component. */}}
{{- define "slurm-cluster.checkVolumes" -}}
{{- range $key, $volume := pick .volumes "spool" "jail" -}}
{{- include "slurm-cluster.checkVolume" (dict "values" $.values "path" (printf "%s.volumes.%s" $.path $key) "volume" $volume) -}}
{{- end -}}
{{- range $key, $mounts := pick .volumes "jailSubMounts" "customMounts" -}}
{{- range $index, $mount := $mounts -}}
{{- include "slurm-cluster.checkVolume" (dict "values" $.values "path" (printf "%s.volumes.%s[%d]" $.path $key $index) "volume" $mount) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* root; values; spec: of the controller or of logins. Puts SSSD. */}}
{{- define "slurm-cluster.sssd" -}}
{{- $given := .values.slurmNodes.sssd -}}
{{- if not (include "slurm-cluster.withWorker" .root) -}}{{- $_ := set .spec "sssdDebugLevel" $given.sssdDebugLevel -}}{{- end -}}
{{- if $given.enabled -}}
{{- $references := pick $given "sssdConfSecretRefName" "sssdLdapCAConfigMapRefName" -}}
{{- range $key, $name := $references -}}{{- with $name -}}{{- $_ := set $.spec $key . -}}{{- end -}}{{- end -}}
{{- $container := omit $given "enabled" "sssdDebugLevel" "sssdConfSecretRefName" "sssdLdapCAConfigMapRefName" -}}
{{- $_ := set .spec "sssd" (include "slurm-cluster.container" (dict "root" .root "image" "sssd" "given" $container) | fromYaml) -}}
{{- end -}}
{{- end -}}

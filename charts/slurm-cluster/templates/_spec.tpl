{{/* root; values; files. spec.slurmConfig, without scripts that nobody brought. */}}
{{- define "slurm-cluster.slurmConfig" -}}
{{- $config := deepCopy .values.slurmConfig -}}
{{- range $key := list "prolog" "taskProlog" "epilog" -}}
{{- if not (include "slurm-cluster.script" (dict "files" $.files "path" (index $config $key))) -}}{{- $_ := unset $config $key -}}{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "slurm-cluster.plugStackConfig" -}}
{{- $config := deepCopy .values.plugStackConfig -}}
{{- $pyxis := $config.pyxis | default dict -}}
{{- if not (include "slurm-cluster.script" (dict "files" .files "path" $pyxis.importerPath)) -}}{{- $_ := unset $pyxis "importerPath" -}}{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "slurm-cluster.partitions" -}}
{{- $given := .values.partitionConfiguration -}}
{{- $type := $given.configType -}}
{{- $unused := list -}}
{{- if and $given.rawConfig (ne $type "custom") -}}{{- $unused = append $unused "rawConfig needs configType: custom" -}}{{- end -}}
{{- if and $given.partitions (ne $type "structured") -}}{{- $unused = append $unused "partitions needs configType: structured" -}}{{- end -}}
{{- with $unused -}}{{- fail (printf "partitionConfiguration: %s, not %s" (join "; " .) $type) -}}{{- end -}}
{{- if and (eq $type "structured") (not $given.partitions) -}}
{{- fail "partitionConfiguration.partitions: name at least one partition, or set configType to default" -}}
{{- end -}}
{{- if and (eq $type "custom") (not $given.rawConfig) -}}
{{- fail "partitionConfiguration.rawConfig: write at least one line, such as PartitionName=main Nodes=ALL Default=YES, or set configType to default" -}}
{{- end -}}
{{- range $index, $partition := $given.partitions -}}
{{- if not (or $partition.isAll $partition.nodeSetRefs) -}}
{{- fail (printf "partitionConfiguration.partitions[%d]: %s has no nodes; name NodeSets in nodeSetRefs, or set isAll to true" $index ($partition.name | default "it")) -}}
{{- end -}}
{{- end -}}
{{- $spec := dict "configType" $type -}}
{{- with $given.rawConfig -}}{{- $_ := set $spec "rawConfig" . -}}{{- end -}}
{{- with $given.partitions -}}{{- $_ := set $spec "partitions" . -}}{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{- define "slurm-cluster.volumeSources" -}}
{{- $found := list -}}
{{- if .files -}}
{{- $scripts := dict "name" (include "slurm-cluster.scriptsName" .root) "defaultMode" 493 -}}
{{- $found = append $found (dict "name" "slurm-scripts" "configMap" $scripts) -}}
{{- end -}}
{{- range .values.volumeSources -}}
{{- $found = append $found (omit . "createPVC" "storageClassName" "size" "accessModes") -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* The whole spec: root; values; files. */}}
{{- define "slurm-cluster.spec" -}}
{{- $worker := include "slurm-cluster.withWorker" .root -}}
{{- $spec := pick .values "useDefaultAppArmorProfile" "maintenance" "k8sNodeFilters" "secrets" "mpiConfig" -}}
{{- $_ := set $spec "crVersion" .root.Chart.AppVersion -}}
{{- range $key := list "authType" "jailMode" "jobIsolation" "jobNetworkInterfaces" "topology" "customSlurmConfig" "customCgroupConfig" "ncclSettings" "periodicChecks" "telemetry" -}}
{{- with index $.values $key -}}{{- $_ := set $spec $key . -}}{{- end -}}
{{- end -}}
{{- with .values.healthCheckConfig -}}
{{- if include "slurm-cluster.script" (dict "files" $.files "path" .healthCheckProgram) -}}{{- $_ := set $spec "healthCheckConfig" . -}}{{- end -}}
{{- end -}}
{{- $_ = set $spec "partitionConfiguration" (include "slurm-cluster.partitions" . | fromYaml) -}}
{{- $_ = set $spec "volumeSources" (include "slurm-cluster.volumeSources" . | fromYamlArray) -}}
{{- $parts := list "slurmConfig" "plugStackConfig" -}}
{{- if ne (include "slurm-cluster.jailMode" .) "None" -}}{{- $parts = concat $parts (list "populateJail" "sConfigController") -}}{{- end -}}
{{- range $key := $parts -}}
{{- $_ := set $spec $key (include (printf "slurm-cluster.%s" $key) $ | fromYaml) -}}
{{- end -}}
{{- $nodes := dict -}}
{{- range $key := list "accounting" "controller" "exporter" "login" "rest" -}}
{{- $_ := set $nodes $key (include (printf "slurm-cluster.%s" $key) $ | fromYaml) -}}
{{- end -}}
{{- if $worker -}}
{{- $_ := set $spec "clusterType" .values.clusterType -}}
{{- with .values.workerFeatures -}}{{- $_ := set $spec "workerFeatures" . -}}{{- end -}}
{{- $_ = set $nodes "worker" (include "slurm-cluster.worker" . | fromYaml) -}}
{{- end -}}
{{- $_ = set $spec "slurmNodes" $nodes -}}
{{- toYaml $spec -}}
{{- end -}}

{{/* What makers of hardware ask of nodes: values.vendor. Each part is laid under the entry, so that
     what the user gave stays. Lists are united by the name of their items. */}}

{{/* entry; parts: env, volumeMounts, resources of slurmd; volumes, containers, nodeSelector of the
     pod; annotations; gres. */}}
{{- define "slurm.putVendorParts" -}}
{{- $entry := .entry -}}
{{- $parts := .parts -}}
{{- $slurmd := $entry.slurmd | default dict -}}
{{- $pod := $entry.podSpec | default dict -}}
{{- range $field := list "env" "volumeMounts" -}}
{{- include "slurm.putNamed" (dict "into" $slurmd "field" $field "items" (index $parts $field)) -}}
{{- end -}}
{{- range $field := list "volumes" "containers" -}}
{{- include "slurm.putNamed" (dict "into" $pod "field" $field "items" (index $parts $field)) -}}
{{- end -}}
{{- $_ := set $slurmd "resources" (merge ($slurmd.resources | default dict) ($parts.resources | default dict)) -}}
{{- $_ := set $pod "nodeSelector" (merge ($pod.nodeSelector | default dict) ($parts.nodeSelector | default dict)) -}}
{{- $_ := set $entry "slurmd" $slurmd -}}
{{- $_ := set $entry "podSpec" $pod -}}
{{- with $parts.annotations -}}
{{- $metadata := $entry.metadata | default dict -}}
{{- $_ := set $metadata "annotations" (merge ($metadata.annotations | default dict) .) -}}
{{- $_ := set $entry "metadata" $metadata -}}
{{- end -}}
{{- if and $parts.gres $entry.extraConf -}}
{{- if not (regexMatch "(?i)(^|\\s)gres=" $entry.extraConf) -}}
{{- $_ := set $entry "extraConf" (printf "%s Gres=%s" (trim $entry.extraConf) $parts.gres) -}}
{{- end -}}
{{- else if $parts.gres -}}
{{- $conf := $entry.extraConfMap | default dict -}}
{{- $words := list -}}
{{- range keys $conf -}}{{- $words = append $words (lower .) -}}{{- end -}}
{{- if not (has "gres" $words) -}}{{- $_ := set $conf "Gres" $parts.gres -}}{{- end -}}
{{- $_ := set $entry "extraConfMap" $conf -}}
{{- end -}}
{{- end -}}

{{/* into; field; items: added when no item of the field has their name. */}}
{{- define "slurm.putNamed" -}}
{{- $found := index .into .field | default list -}}
{{- $names := list -}}
{{- range $found -}}{{- $names = append $names .name -}}{{- end -}}
{{- range .items -}}
{{- if not (has .name $names) -}}{{- $found = append $found . -}}{{- end -}}
{{- end -}}
{{- if $found -}}{{- $_ := set .into .field $found -}}{{- end -}}
{{- end -}}

{{/* root; key and entry of a NodeSet. */}}
{{- define "slurm.putVendor" -}}
{{- $vendor := .root.Values.vendor | default dict -}}
{{- $entry := .entry -}}
{{- $key := .key -}}
{{- $dcgm := ($vendor.nvidia).dcgm | default dict -}}
{{- if and $dcgm.enabled (include "slurm.asksGpu" $entry) -}}
{{- $volume := dict "name" "dcgm-job-mapping" "hostPath" (dict "path" $dcgm.jobMappingDir "type" "DirectoryOrCreate") -}}
{{- $mount := dict "name" "dcgm-job-mapping" "mountPath" $dcgm.jobMappingDir -}}
{{- include "slurm.putVendorParts" (dict "entry" $entry "parts" (dict "volumes" (list $volume) "volumeMounts" (list $mount))) -}}
{{- end -}}
{{- range $machine := list "a3mega" "a3ultra" -}}
{{- range $one := index ($vendor.google | default dict) $machine | default list -}}
{{- if eq $one.targetNodeSet $key -}}
{{- $parts := fromYaml (include (printf "slurm.%s" $machine) $one) -}}
{{- include "slurm.putVendorParts" (dict "entry" $entry "parts" $parts) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "slurm.asksGpu" -}}
{{- range $resources := list (.slurmd).resources (.podSpec).resources -}}
{{- range $of := list ($resources).limits ($resources).requests -}}
{{- if hasKey ($of | default dict) "nvidia.com/gpu" -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Network interfaces of a GKE pod, as the JSON of its annotation. networks; skip: the number of
     an interface that belongs to the machine, or -1. */}}
{{- define "slurm.gkeInterfaces" -}}
{{- $skip := int .skip -}}
{{- $found := list -}}
{{- range $index, $network := .networks -}}
{{- $number := and (ge $skip 0) (ge $index $skip) | ternary (add $index 1) $index -}}
{{- $found = append $found (dict "interfaceName" (printf "eth%v" $number) "network" $network) -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Machines of type a3-ultragpu-8g: eight H200, RDMA networks, Google's NCCL plugin from the host.
     Source: Google's documentation of GKE, "AI-optimized GKE clusters". */}}
{{- define "slurm.a3ultra" -}}
annotations:
  networking.gke.io/default-interface: eth0
  networking.gke.io/interfaces: {{ include "slurm.gkeInterfaces" (dict "networks" .networks "skip" 1) | toJson }}
nodeSelector: {cloud.google.com/gke-nodepool: {{ .nodePool }}}
gres: gpu:nvidia_h200:8
resources:
  limits: {nvidia.com/gpu: 8}
  requests: {nvidia.com/gpu: 8}
env:
  - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
  - {name: PATH, value: "/usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
volumes:
  - {name: library-dir-host, hostPath: {path: /home/kubernetes/bin/nvidia}}
  - {name: gib, hostPath: {path: /home/kubernetes/bin/gib}}
volumeMounts:
  - {name: library-dir-host, mountPath: /usr/local/nvidia}
  - {name: gib, mountPath: /usr/local/gib}
{{- end -}}

{{/* Machines of type a3-megagpu-8g: eight H100, GPUDirect-TCPXO with its daemon beside slurmd.
     Source: Google's documentation of GKE, "Maximize GPU network bandwidth". */}}
{{- define "slurm.a3mega" -}}
{{- $devices := list -}}
{{- range until 8 -}}{{- $devices = append $devices (dict "path" (printf "/dev/nvidia%d" .)) -}}{{- end -}}
{{- range list "/dev/nvidiactl" "/dev/nvidia-uvm" "/dev/dmabuf_import_helper" -}}
{{- $devices = append $devices (dict "path" .) -}}
{{- end -}}
annotations:
  devices.gke.io/container.tcpxo-daemon: {{ toYaml $devices | toJson }}
  networking.gke.io/default-interface: eth0
  networking.gke.io/interfaces: {{ include "slurm.gkeInterfaces" (dict "networks" .networks "skip" -1) | toJson }}
nodeSelector: {cloud.google.com/gke-nodepool: {{ .nodePool }}}
gres: gpu:nvidia_h100_80gb_hbm3:8
resources:
  limits: {nvidia.com/gpu: 8}
  requests: {nvidia.com/gpu: 8}
env:
  - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
  - {name: NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY, value: /dev/aperture_devices}
  - {name: NCCL_FASTRAK_CTRL_DEV, value: eth0}
  - {name: NCCL_FASTRAK_IFNAME, value: "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8"}
  - {name: NCCL_SOCKET_IFNAME, value: eth0}
volumes:
  - {name: libraries, hostPath: {path: /home/kubernetes/bin/nvidia}}
  - {name: aperture-devices, hostPath: {path: /dev/aperture_devices}}
  - {name: sys, hostPath: {path: /sys}}
  - {name: proc-sys, hostPath: {path: /proc/sys}}
volumeMounts:
  - {name: libraries, mountPath: /usr/local/nvidia}
  - {name: aperture-devices, mountPath: /dev/aperture_devices}
containers:
  - name: tcpxo-daemon
    image: us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.13
    command: [/bin/sh, -c]
    args: ["chmod 755 /fts/entrypoint_rxdm_container.sh && exec /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8 --uid= --alsologtostderr"]
    env:
      - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
    securityContext:
      capabilities: {add: [NET_ADMIN, NET_BIND_SERVICE]}
    volumeMounts:
      - {name: libraries, mountPath: /usr/local/nvidia}
      - {name: sys, mountPath: /hostsysfs}
      - {name: proc-sys, mountPath: /hostprocsysfs}
{{- end -}}

{{/* Machines are of entries that are there. */}}
{{- define "slurm.checkVendor" -}}
{{- $entries := dict -}}
{{- include "slurm.putNodesets" (dict "root" . "into" $entries) -}}
{{- $google := (.Values.vendor).google | default dict -}}
{{- range $machine := list "a3mega" "a3ultra" -}}
{{- range index $google $machine -}}
{{- if not (hasKey $entries .targetNodeSet) -}}
{{- fail (printf "vendor.google.%s: targetNodeSet %q is no enabled entry of nodesets (there are: %s)" $machine .targetNodeSet (keys $entries | sortAlpha | join ", " | default "none")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* ConfigMaps for them. root; into. */}}
{{- define "slurm.putVendorFiles" -}}
{{- include "slurm.checkVendor" .root -}}
{{- $into := .into -}}
{{- $root := .root -}}
{{- $vendor := $root.Values.vendor | default dict -}}
{{- $dcgm := ($vendor.nvidia).dcgm | default dict -}}
{{- if $dcgm.enabled -}}
{{- range $word := list "prolog" "epilog" -}}
{{- $script := $root.Files.Get (printf "files/dcgm-%s.sh" $word) | replace "@DIR@" $dcgm.jobMappingDir -}}
{{- $_ := set $into (printf "%s-dcgm" $word) (dict (printf "%s-%v-dcgm.sh" $word $dcgm.scriptPriority) $script) -}}
{{- end -}}
{{- end -}}
{{- $files := dict -}}
{{- include "slurm.putConfigFiles" (dict "root" $root "into" $files) -}}
{{- $there := hasKey $files "gres.conf" -}}
{{- range $machine := list "a3mega" "a3ultra" -}}
{{- if and (index ($vendor.google | default dict) $machine) (not $there) -}}
{{- $_ := set $into (printf "config-%s" $machine) (dict "gres.conf" "AutoDetect=nvidia\n") -}}
{{- /* One gres.conf serves all: /etc/slurm can have only one. */ -}}
{{- $there = true -}}
{{- end -}}
{{- end -}}
{{- end -}}

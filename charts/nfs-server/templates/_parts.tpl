{{- define "nfs-server.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "nfs-server.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nfs-server.labels" -}}
{{ include "nfs-server.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "nfs-server.image" -}}
{{- $prefix := include "penstock.imageRegistry" . -}}
{{- if .Values.image -}}
{{- .Values.image -}}
{{- else if not $prefix -}}
{{- fail "image: name an image, or set global.imageRegistry to the registry and path that `penstock images push --jail` pushed Penstock's to, such as registry.example.com/team/penstock" -}}
{{- else -}}
{{- printf "%s/nfs-server:%s-%s" $prefix (index .Chart.Annotations "penstock.dev/slurm-release") (include "penstock.imageVersion" .) -}}
{{- end -}}
{{- end -}}

{{/* A quantity in bytes: the API server writes 1024Mi as 1Gi. */}}
{{- define "nfs-server.bytes" -}}
{{- $unit := regexFind "[A-Za-z]+$" . -}}
{{- $units := dict "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- mulf (trimSuffix $unit . | float64) (get $units $unit | default 1) -}}
{{- end -}}

{{/* ganesha.conf: NFS 4 alone, which needs one port and no rpcbind. Without NLM the grace after a start
     ends as soon as all former clients are back. Handles of files do not depend on the disk's device
     number (fsid_type), which changes with the Kubernetes node. */}}
{{- define "nfs-server.conf" -}}
NFS_CORE_PARAM {
  Protocols = 4;
  NFS_Port = 2049;
  Enable_UDP = false;
  Enable_NLM = false;
  Enable_RQUOTA = false;
  Allow_Set_Io_Flusher_Fail = true;
}
NFSV4 {
  Minor_Versions = 0, 1, 2;
  RecoveryBackend = fs;
  Lease_Lifetime = {{ .Values.nfs.leaseTime }};
  Grace_Period = {{ .Values.nfs.graceTime }};
  Only_Numeric_Owners = true;
}
EXPORT_DEFAULTS {
  Access_Type = None;
  Squash = No_Root_Squash;
  SecType = sys;
  Protocols = 4;
  Transports = TCP;
}
EXPORT {
  Export_Id = 1;
  Path = /export;
  Pseudo = /export;
  FSAL { Name = VFS; fsid_type = None; }
  CLIENT { Clients = {{ concat (list "127.0.0.0/8") .Values.nfs.permitted | uniq | join ", " }}; Access_Type = RW; Protocols = 4; }
}
LOG { Default_Log_Level = EVENT; COMPONENTS { DBUS = FATAL; } }
{{ end -}}

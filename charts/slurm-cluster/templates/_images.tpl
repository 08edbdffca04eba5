{{/* The role of images/ that stands in for each entry of `images`. The operator's image has no release
     of Slurm in its tag. */}}
{{- define "slurm-cluster.roles" -}}
slurmctld: jail-slurmctld
slurmd: jail-slurmd
sshd: jail-login
munge: munge
slurmdbd: slurmdbd
populateJail: populate-jail
sConfigController: operator
soperatorExporter: operator
{{- end -}}

{{/* root; name: an entry of `images`. */}}
{{- define "slurm-cluster.image" -}}
{{- $root := .root -}}
{{- $name := .name -}}
{{- $images := $root.Values.images | default dict -}}
{{- $prefix := include "penstock.imageRegistry" $root -}}
{{- $role := index (include "slurm-cluster.roles" $root | fromYaml) $name -}}
{{- if index $images $name -}}
{{- index $images $name -}}
{{- else if and (eq $name "populateJail") $images.populateJailRepository -}}
{{- include "slurm-cluster.populateJailImage" $root -}}
{{- else if eq $name "slurmrestd" -}}
{{- /* The operator has one. To an image that is named it gives the files of soperator's. */ -}}
{{- else if not $role -}}
{{- fail (printf "images.%s: name an image, Penstock has none for it" $name) -}}
{{- else if not $prefix -}}
{{- fail (printf "images.%s: name an image. No public registry has Penstock's: set global.imageRegistry to the registry and path that `penstock images push` pushed them to, such as registry.example.com/team/penstock, or to localhost/penstock where they were loaded into the Kubernetes nodes" $name) -}}
{{- else -}}
{{- $version := include "penstock.imageVersion" $root -}}
{{- if ne $role "operator" -}}
{{- $version = printf "%s-%s" (index $root.Chart.Annotations "penstock.dev/slurm-release") $version -}}
{{- end -}}
{{- printf "%s/%s:%s" $prefix $role $version -}}
{{- end -}}
{{- end -}}

{{/* Repository and tag of a jail's image, as 1.23 and 5.0 compose them. */}}
{{- define "slurm-cluster.populateJailImage" -}}
{{- $images := .Values.images -}}
{{- $major := .Values.cudaMajorVersion | default "" | toString -}}
{{- $cuda := .Values.cudaVersion | default (index ($images.populateJailCudaVersions | default dict) $major) -}}
{{- $tag := required "images.populateJailTag: name the tag that belongs to images.populateJailRepository" $images.populateJailTag -}}
{{- printf "%s:%s" $images.populateJailRepository $tag -}}
{{- with $cuda -}}{{- printf "-cuda%s" (toString .) -}}{{- end -}}
{{- end -}}

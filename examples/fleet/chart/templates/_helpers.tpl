{{- define "fleet.labels" -}}
app.kubernetes.io/component: fleet
app.kubernetes.io/name: gauntlet
{{- end }}

{{- /* The name of each campaign is that of the release, the number of the Job, and "-run". */}}
{{- define "fleet.name" -}}
{{- if gt (len .Release.Name) 35 }}
{{- fail (printf "release %s: found %d characters; expected at most 35" .Release.Name (len .Release.Name)) }}
{{- end }}
{{- .Release.Name }}
{{- end }}

{{- define "fleet.securityContext" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end }}

{{- /* The environment, mounts and resources that all containers of the starter share. */}}
{{- define "fleet.container" -}}
resources:
  requests: {cpu: 100m, memory: {{ .Values.starter.memory | quote }}}
  limits: {memory: {{ .Values.starter.memory | quote }}, ephemeral-storage: {{ .Values.starter.disk | quote }}}
{{- with .Values.results.storeSecret }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
securityContext:
  {{- include "fleet.securityContext" . | nindent 2 }}
volumeMounts:
  - {name: work, mountPath: /work}
  {{- if not .Values.results.store }}
  - {name: store, mountPath: /store}
  {{- end }}
  {{- if .Values.results.storeSecret }}
  - {name: credentials, mountPath: /credentials, readOnly: true}
  {{- end }}
{{- end }}

{{- /* The flags of "gauntlet fleet nightly" that say what runs, and how. */}}
{{- define "fleet.flags" -}}
- --count={{ int64 .Values.campaign.count }}
- --per-pod={{ int64 .Values.campaign.perPod }}
- --subjects={{ join "," .Values.campaign.subjects }}
- --provider={{ .Values.campaign.provider }}
{{- if .Values.campaign.scenario }}
- --scenario={{ .Values.campaign.scenario }}
{{- else }}
- --profile={{ .Values.campaign.profile }}
{{- end }}
{{- if .Values.results.store }}
- {{ printf "--store=%s" .Values.results.store | quote }}
{{- else }}
- --claim={{ .Values.results.claim }}
{{- end }}
{{- with .Values.results.storeSecret }}
- --store-secret={{ . }}
{{- end }}
{{- with .Values.results.serviceAccount }}
- --service-account={{ . }}
{{- end }}
{{- with .Values.pods }}
- --parallelism={{ int64 .parallelism }}
- --deadline={{ .deadline }}
- --retries={{ int64 .retries }}
- --keep-job={{ .keepJob }}
- --cpu={{ .cpu }}
- --memory={{ .memory }}
- --disk={{ .disk }}
{{- with .queue }}
- --queue={{ . }}
{{- end }}
{{- with .priorityClass }}
- --priority-class={{ . }}
{{- end }}
{{- range $key, $value := .nodeSelector }}
- {{ printf "--node-selector=%s=%s" $key $value | quote }}
{{- end }}
{{- if .tolerations }}
- --tolerations=/tolerations/tolerations.yaml
{{- end }}
{{- end }}
{{- end }}

{{- define "webmq.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "webmq.metadata" -}}
name: {{ .Release.Name }}
labels:
  {{- include "webmq.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "webmq.selector" -}}
matchLabels:
  {{- include "webmq.labels" . | nindent 2 }}
{{- end }}

{{- /* The file webmq.json. */}}
{{- define "webmq.config" -}}
{{- if .Values.configFile }}
{{- .Values.configFile }}
{{- else }}
{{- $history := ternary dict (dict "history" .Values.history) (empty .Values.history) -}}
{{- merge $history .Values.config | toPrettyJson -}}
{{- end }}
{{- end }}

{{- define "webmq.secretName" -}}
{{- .Values.existingSecret | default .Release.Name -}}
{{- end }}

{{- define "webmq.hasTokenSecret" -}}
{{- if or .Values.tokens.secret (and .Values.existingSecret .Values.tokens.inExistingSecret) }}true{{ end -}}
{{- end }}

import type { MetricSpec, MetricsSource, Sample } from './metric-spec.js'

/** The format of {@link metricsText}. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Metrics in the text format of Prometheus, version 0.0.4. A metric without samples is left out. */
export function metricsText(metrics: readonly MetricSpec[], source: MetricsSource): string {
  return metrics.map((spec) => metricText(spec, spec.read(source))).join('')
}

function metricText({ name, help, type }: MetricSpec, samples: readonly Sample[]): string {
  if (samples.length === 0) return ''
  const lines = samples.map(({ labels, value, suffix = '' }) => `${name}${suffix}${labelsText(labels)} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}\n`
}

function labelsText(labels: Readonly<Record<string, string>> = {}): string {
  const texts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return texts.length === 0 ? '' : `{${texts.join(',')}}`
}

function escaped(value: string): string {
  return value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')
}

import type { Registry } from 'prom-client'
import type { MetricsPage } from './frontend.js'
import type { MetricSpec, MetricsSource, Sample } from './metric-spec.js'

/** The format of {@link metricsText}. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** What a page needs, loaded for the first one. Metrics of the process are shared by all servers: their collectors cannot be stopped. */
let loaded: Promise<{ readonly ofProcess: Registry; readonly table: readonly MetricSpec[] }> | undefined

async function load() {
  const [{ collectDefaultMetrics, Registry }, { METRICS }] = await Promise.all([
    import('prom-client'),
    import('./metrics-table.js'),
  ])
  const ofProcess = new Registry()
  collectDefaultMetrics({ register: ofProcess })
  return { ofProcess, table: METRICS }
}

/**
 * The content of `/metrics`. Cost: a few milliseconds on the event loop.
 * @param sourceNow While it returns `undefined`, the page has only metrics of the process.
 */
export async function metricsPage(sourceNow: () => MetricsSource | undefined): Promise<MetricsPage> {
  loaded ??= load()
  const { ofProcess, table } = await loaded
  const processText = await ofProcess.metrics()
  const source = sourceNow()
  const text = source === undefined ? processText : metricsText(table, source) + processText
  return { contentType: CONTENT_TYPE, text }
}

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

import type { ProcessStats, ProcessWatch } from '../../features/observing/measuring/process-watch.js'
import type { MetricSpec, Sample } from '../../features/observing/metrics/spec.js'
import type { MetricsPage } from '../http/context.js'
import type { MetricsSource } from './table.js'

/** The format of {@link metricsText}. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** What a page needs, loaded for the first one. Metrics of the process are shared by all servers: it is watched for good. */
let loaded: Promise<Loaded> | undefined

interface Loaded {
  readonly watch: ProcessWatch
  readonly ofProcess: readonly MetricSpec<ProcessStats>[]
  readonly ofNode: readonly MetricSpec<MetricsSource>[]
}

async function load(): Promise<Loaded> {
  const [{ ProcessWatch }, { PROCESS_METRICS }, { METRICS }] = await Promise.all([
    import('../../features/observing/measuring/process-watch.js'),
    import('../../features/observing/metrics/of-process.js'),
    import('./table.js'),
  ])
  return { watch: new ProcessWatch(), ofProcess: PROCESS_METRICS, ofNode: METRICS }
}

/**
 * The content of `/metrics`. Cost: a millisecond on the event loop, whatever the number of connections.
 * @param sourceNow While it returns `undefined`, the page has only metrics of the process.
 */
export async function metricsPage(sourceNow: () => MetricsSource | undefined): Promise<MetricsPage> {
  loaded ??= load()
  const { watch, ofProcess, ofNode } = await loaded
  const processText = metricsText(ofProcess, await watch.read())
  const source = sourceNow()
  const text = source === undefined ? processText : metricsText(ofNode, source) + processText
  return { contentType: CONTENT_TYPE, text }
}

/** Metrics in the text format of Prometheus, version 0.0.4. A metric without samples is left out. */
export function metricsText<Source>(metrics: readonly MetricSpec<Source>[], source: Source): string {
  let text = ''
  for (const spec of metrics) text += metricText(spec, spec.read(source))
  return text
}

function metricText(
  { name, help, type }: Pick<MetricSpec<unknown>, 'name' | 'help' | 'type'>,
  samples: readonly Sample[],
): string {
  if (samples.length === 0) return ''
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  for (const { series, value } of samples) text += `${series} ${value}\n`
  return `${text}\n`
}

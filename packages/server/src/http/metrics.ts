import type { Registry } from 'prom-client'
import type { MetricsPage } from './frontend.js'
import type { MetricsSource } from './metric-spec.js'
import { METRICS } from './metrics-table.js'
import { METRICS_CONTENT_TYPE, metricsText } from './metrics-text.js'

/** Metrics of the process and of Node, shared by all servers: their collectors cannot be stopped. */
let processRegistry: Registry | undefined

/** The metrics of a node for Prometheus. The library, for those of the process, is loaded on the first request. */
export class Metrics {
  readonly #source: () => MetricsSource | undefined

  /** @param source Called for every page; while it returns `undefined`, the page has only metrics of the process. */
  constructor(source: () => MetricsSource | undefined) {
    this.#source = source
  }

  /** Cost: a few milliseconds on the event loop. */
  async page(): Promise<MetricsPage> {
    if (processRegistry === undefined) {
      const { collectDefaultMetrics, Registry } = await import('prom-client')
      if (processRegistry === undefined) {
        processRegistry = new Registry()
        collectDefaultMetrics({ register: processRegistry })
      }
    }
    const ofProcess = await processRegistry.metrics()
    const source = this.#source()
    const text = source === undefined ? ofProcess : metricsText(METRICS, source) + ofProcess
    return { contentType: METRICS_CONTENT_TYPE, text }
  }
}

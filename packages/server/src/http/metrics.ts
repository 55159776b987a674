import type { Registry } from 'prom-client'
import type { MetricsPage } from './frontend.js'
import { METRICS, type MetricSpec, type MetricsSource } from './metrics-table.js'

/** Metrics of the process and of Node, shared by all servers: their collectors cannot be stopped. */
let processRegistry: Registry | undefined

/** The metrics of a node for Prometheus. The library is loaded on the first request. */
export class Metrics {
  readonly #source: () => MetricsSource | undefined
  #registry: Promise<Registry> | undefined

  /** @param source Called for every page; while it returns `undefined`, the page has only metrics of the process. */
  constructor(source: () => MetricsSource | undefined) {
    this.#source = source
  }

  /** Cost: a few milliseconds on the event loop. */
  async page(): Promise<MetricsPage> {
    const library = await import('prom-client')
    this.#registry ??= this.#createRegistry()
    if (processRegistry === undefined) {
      processRegistry = new library.Registry()
      library.collectDefaultMetrics({ register: processRegistry })
    }
    const registry = await this.#registry
    const texts = [this.#source() === undefined ? '' : await registry.metrics(), await processRegistry.metrics()]
    return { contentType: registry.contentType, text: texts.join('\n') }
  }

  async #createRegistry(): Promise<Registry> {
    const { Counter, Gauge, Registry } = await import('prom-client')
    const registry = new Registry()
    const sourceOf = this.#source
    for (const { name, help, type, labels: labelNames, read } of METRICS) {
      const config = { name, help, labelNames: [...labelNames], registers: [registry] }
      const samplesNow = (): ReturnType<MetricSpec['read']> => {
        const source = sourceOf()
        return source === undefined ? [] : read(source)
      }
      if (type === 'gauge') {
        new Gauge({
          ...config,
          collect() {
            this.reset()
            for (const { labels = {}, value } of samplesNow()) this.set(labels, value)
          },
        })
      } else {
        new Counter({
          ...config,
          collect() {
            // The source keeps the count, so the library starts from zero each time.
            this.reset()
            for (const { labels = {}, value } of samplesNow()) this.inc(labels, value)
          },
        })
      }
    }
    return registry
  }
}

import type { Registry } from 'prom-client'
import type { MetricsPage } from './frontend.js'
import { METRICS, type MetricSpec, type MetricsSource } from './metrics-table.js'

/** Those of the process and of Node, for all servers in it: what collects them runs on for as long as the process. */
let ofProcess: Registry | undefined

/** The metrics of a node as Prometheus reads them. The library is loaded with the first page that is asked for. */
export class Metrics {
  readonly #source: () => MetricsSource | undefined
  #registry: Promise<Registry> | undefined

  /** @param source Asked for every page; `undefined` while there is nothing to tell but of the process. */
  constructor(source: () => MetricsSource | undefined) {
    this.#source = source
  }

  /** Cost: a few milliseconds on the event loop. */
  async page(): Promise<MetricsPage> {
    const library = await import('prom-client')
    this.#registry ??= this.#createRegistry()
    if (ofProcess === undefined) {
      ofProcess = new library.Registry()
      library.collectDefaultMetrics({ register: ofProcess })
    }
    const registry = await this.#registry
    const texts = [this.#source() === undefined ? '' : await registry.metrics(), await ofProcess.metrics()]
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
            // The count is kept elsewhere: what the library adds up is that count.
            this.reset()
            for (const { labels = {}, value } of samplesNow()) this.inc(labels, value)
          },
        })
      }
    }
    return registry
  }
}

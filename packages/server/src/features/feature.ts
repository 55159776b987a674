import type { FeatureRoutes } from '../doors/http/api/handlers/handler.js'
import type { FeatureVerbs } from '../kernel/session/handlers/handler.js'
import type { SessionFeature } from '../kernel/session/services.js'
import type { MetricRows } from './observing/metrics/spec.js'

/** What a feature adds to a node, read once when the node is made: no message pays for it. */
export interface OpenFeature<Stats extends object> extends SessionFeature {
  /** Verbs of the protocol that it handles. */
  readonly verbs?: Partial<FeatureVerbs>
  /** The node stops. */
  stop?(): unknown
  /** Counters since the start; gauges at the time of the call. */
  stats(): Stats
  /** Routes of the HTTP API that it answers, loaded for the first request to one of them. */
  routes?(): Promise<Partial<FeatureRoutes>>
}

/** The row of a feature. `kernel/node/features.ts` has one for each. */
export interface Feature<Context, Stats extends object> {
  /** Metrics of its stats. */
  readonly metrics: MetricRows<Stats>
  /** Begins it on a node. */
  open(context: Context): OpenFeature<Stats>
}

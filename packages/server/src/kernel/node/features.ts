import type { FeatureRoutes } from '../../doors/http/api/handlers/handler.js'
import type { OpenFeature } from '../../features/feature.js'
import { cluster } from '../../features/operators/row.js'
import { outbox } from '../../features/outbox/row.js'
import { occupancy } from '../../features/presence/occupancy/row.js'
import { presence } from '../../features/presence/row.js'
import { queueGroups } from '../../features/queue-groups/row.js'
import { streams } from '../../features/streams/row.js'
import type { FeatureVerbs } from '../session/handlers/handler.js'

/** The features of a node: this table alone names them. */
export const FEATURES = { queueGroups, presence, occupancy, cluster, streams, outbox }

type Features = typeof FEATURES
type Opened<Name extends keyof Features> = ReturnType<Features[Name]['open']>

/** Counters of a feature. */
export type StatsOf<Name extends keyof Features> = ReturnType<Opened<Name>['stats']>

export type DatabaseOutbox = Parameters<Features['outbox']['open']>[0]

/** What other nodes are told of this one. */
export type Summary = Parameters<Features['cluster']['open']>[0]['summary']

/** The features that a node has, in the order of their begin. */
export interface OpenFeatures {
  readonly queueGroups: Opened<'queueGroups'>
  readonly presence: Opened<'presence'>
  /** Present when the webhook is told of occupied and vacated patterns. */
  readonly occupancy?: Opened<'occupancy'>
  readonly cluster: Opened<'cluster'>
  readonly streams: Opened<'streams'>
  /** Present with a database outbox. */
  readonly outbox?: Opened<'outbox'>
}

/** Their rows, in the order of their begin. */
export function rowsOf(features: OpenFeatures): readonly (readonly [name: string, feature: OpenFeature<object>])[] {
  return Object.entries(features)
}

/** The handlers of their verbs. */
export function verbsOf({ queueGroups, presence, streams }: OpenFeatures): FeatureVerbs {
  return { ...queueGroups.verbs, ...presence.verbs, ...streams.verbs }
}

/** What `stats` of a server says of them. */
export function statsOf(features: OpenFeatures): { readonly [Name in keyof OpenFeatures]: StatsOf<Name> } {
  const stats = rowsOf(features).map(([name, feature]) => [name, feature.stats()])
  // The table pairs every name with its stats, but the compiler cannot infer that from entries.
  return Object.fromEntries(stats) as ReturnType<typeof statsOf>
}

/** The handlers of their routes of the HTTP API. */
export async function routesOf({ presence, cluster, streams }: OpenFeatures): Promise<FeatureRoutes> {
  return { ...(await presence.routes()), ...(await cluster.routes()), ...(await streams.routes()) }
}

import type { NatsUser } from './permissions.js'
import type { NatsMessage } from './protocol.js'
import type { SubjectIndex, Subscriber } from './subjects.js'

/**
 * What a delay is for: a stream that takes a message, its answer to the publisher, a consumer that sends, and the answers
 * of the API. Each stream and each consumer does its own work in order; nothing is in order between them, as in the server.
 */
export type Work = 'store' | 'acknowledge' | 'deliver' | 'answer'

export interface NatsModelOptions {
  /** Default 4222. */
  readonly port: number
  /** Default true. */
  readonly hasJetStream: boolean
  /** As a server of a cluster says it: nodes then see restarts by a consumer. Default false. */
  readonly hasCluster: boolean
  /** Default 1 MiB. */
  readonly maxPayloadBytes: number
  /** Of a connection. Default: any number. */
  readonly maxSubscriptions: number | undefined
  /** None: everybody may everything. */
  readonly users: readonly NatsUser[]
  /** Default 120,000. */
  readonly pingIntervalMs: number
  /** What a consumer sends at first before it waits for its client to have read; up to 16 times that later. Default 2 MiB. */
  readonly windowBytes: number
  /** Default: at once. */
  readonly delayMs: (work: Work) => number
}

export interface ModelSubscriber extends Subscriber {
  take(message: NatsMessage, shown: string): void
}

/** Who has published something. */
export interface Publisher {
  /** Nobody has got it, and it had a subject for answers. */
  tellNoResponders(reply: string): void
}

/** What clients and JetStream see of the server. */
export interface ModelCore {
  readonly options: NatsModelOptions
  readonly subscribers: SubjectIndex<ModelSubscriber>
  /** @param from `undefined`: the server itself publishes. */
  publish(message: NatsMessage, from?: Publisher): void
  /** To the subscribers of another subject than the message's own, which they see. */
  deliver(to: string, message: NatsMessage): void
  hasInterest(subject: string): boolean
}

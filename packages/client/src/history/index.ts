import type { WebMQClient } from '../client.js'
import { ofClient, partOf } from '../of-client.js'
import type { KnownKey, Payload, Topics } from '../topics.js'
import { HistoryReads } from './reads.js'
import type { HistoryOptions, HistoryResult } from './types.js'

export type * from './types.js'

const readsOf = partOf((core) => new HistoryReads(core))

/**
 * Reads the messages of a key from the broker's log, without listening: the newest `limit` messages (default 100),
 * oldest first. With `before`, the newest before that position. With `since` or `rewind`, the oldest after that. Waits for a connection if necessary, and
 * asks again after a lost one, for `ackTimeoutMs` in all.
 * @throws {WebMQError} `E_KEY_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`, `E_FORBIDDEN`, `E_CLOSED`;
 * `E_UNSUPPORTED` if nothing is logged; retryable: `E_TIMEOUT`, `E_QUEUE_FULL`, `E_BROKER_UNAVAILABLE`.
 */
export function history<const K extends string>(
  key: KnownKey<Topics, K>,
  options?: HistoryOptions,
): Promise<HistoryResult<Payload<Topics, K>>>
export function history<T, const K extends string>(
  client: WebMQClient<T>,
  key: KnownKey<T, K>,
  options?: HistoryOptions,
): Promise<HistoryResult<Payload<T, K>>>
export async function history(...args: readonly unknown[]): Promise<HistoryResult<unknown>> {
  const [client, key, options] = ofClient<[key: string, options?: HistoryOptions]>(args)
  return readsOf(client).read(key, options)
}

import { checks } from '../../core/checks.js'
import { type ClientOption, clientOf } from '../../core/of-client.js'
import type { KnownKey, Payload, Topics } from '../../core/topics/topics.js'
import { readsOf } from './reads.js'
import type { HistoryOptions, HistoryResult } from './types.js'

export type * from './types.js'

/**
 * Reads the messages of a key from the broker's log, without listening: the newest `limit` messages (default 100),
 * oldest first. With `before`, the newest before that position. With `since` or `rewind`, the oldest after that. Waits for a connection if necessary, and
 * asks again after a lost one, for `ackTimeoutMs` in all.
 * @throws {WebMQError} `E_KEY_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`, `E_FORBIDDEN`, `E_CLOSED`;
 * `E_UNSUPPORTED` if nothing is logged; retryable: `E_TIMEOUT`, `E_QUEUE_FULL`, `E_BROKER_UNAVAILABLE`.
 */
export async function history<const K extends string, T = Topics>(
  key: KnownKey<T, K>,
  { client, ...options }: HistoryOptions & ClientOption<T> = {},
): Promise<HistoryResult<Payload<T, K>>> {
  checks.part?.('history', options)
  return readsOf(clientOf(client)).read(key, options) as Promise<HistoryResult<Payload<T, K>>>
}

import { checks } from '../../core/checks.js'
import { type ClientOption, clientOf } from '../../core/of-client.js'
import type { Topics } from '../../core/topics/topics.js'
import { IndexedDbStore } from './indexed-db.js'
import { LiveOutbox } from './outbox.js'
import type { Outbox, OutboxOptions } from './types.js'

export type * from './types.js'

/**
 * Makes an outbox: publishes that survive a reload, in IndexedDB. One per name and page; tabs with the same name share its
 * messages, and one of them sends.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option.
 */
export function outbox<T = Topics>({ client, ...options }: OutboxOptions & ClientOption<T> = {}): Outbox<T> {
  checks.part?.('outbox', options)
  const name = `webmq-outbox ${options.name ?? 'webmq'}`
  const box: unknown = new LiveOutbox(clientOf(client), options, name, {
    store: new IndexedDbStore(name),
    locks: globalThis.navigator?.locks,
    channel: typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel(name),
    nowMs: () => Date.now(),
  })
  return box as Outbox<T>
}

'use client'
import { scopeOf } from '../stores/client.js'
import { type Messages, type MessagesOptions, messagesStore } from '../stores/messages.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { useGivenClient } from './client.js'
import { useLoaded } from './use-loaded.js'
import { useSnapshot, useStore } from './use-store.js'

/** Options of {@link useMessages}. */
export interface UseMessagesOptions<P = unknown> extends MessagesOptions<P> {
  /** Suspends the component until the first messages, or an error, are here. Not on a server. */
  readonly suspense?: boolean
}

/**
 * The last messages of `pattern`, in their order and live; none if it is `null`. After a gap the list loads again.
 * Components with the same pattern and options share one list and render at most once per frame.
 */
export function useMessages<const K extends string>(
  pattern: KnownTopic<Topics, K> | null,
  { suspense, ...options }: UseMessagesOptions<Payload<Topics, K>> = {},
): Messages<Payload<Topics, K>> {
  const name = `${pattern} ${JSON.stringify(options)}`
  const store = useStore(name, (client) => messagesStore(client, pattern, options as MessagesOptions))
  const snapshot = useSnapshot(store)
  useLoaded(scopeOf(useGivenClient()), name, store, snapshot, suspense && pattern !== null)
  return snapshot as Messages<Payload<Topics, K>>
}

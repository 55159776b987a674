'use client'
import { useEffect, useInsertionEffect, useMemo, useRef } from 'react'
import type { ClientStatus } from '../events/events.js'
import type { StateSnapshot } from '../state/index.js'
import { scopeOf } from '../stores/client.js'
import { type Latest, type LatestOptions, latestStore } from '../stores/latest.js'
import { type Messages, type MessagesOptions, messagesStore } from '../stores/messages.js'
import { enter, type Present, presenceStore } from '../stores/presence.js'
import { type PublisherOptions, type PublishToAny, type PublishToKey, publisher } from '../stores/publish.js'
import { type StateTopicOptions, stateStore } from '../stores/state.js'
import { statusStore } from '../stores/status.js'
import { type TopicOptions, topic } from '../stores/topic.js'
import type { KnownKey, KnownTopic, Payload, Topics } from '../topics.js'
import type { MessageHandler } from '../types.js'
import { useGivenClient } from './client.js'
import { useLoaded } from './use-loaded.js'
import { useSnapshot, useStore } from './use-store.js'

/** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
export function useStatus(): ClientStatus {
  return useSnapshot(useStore('', statusStore))
}

/**
 * Calls `handler` with every message of `pattern` while the component is mounted; with none if it is `null`. The
 * handler may be another function at every render: always the last one is called.
 */
export function useTopic<const K extends string>(
  pattern: KnownTopic<Topics, K> | null,
  handler: MessageHandler<Payload<Topics, K>>,
  options?: TopicOptions<Payload<Topics, K>>,
): void {
  const client = useGivenClient()
  const last = useRef(handler)
  useInsertionEffect(() => {
    last.current = handler
  })
  // It survives what StrictMode does to effects.
  const owner = useMemo(() => ({ client }), [client])
  // biome-ignore lint/correctness/useExhaustiveDependencies: options are compared by what they say
  useEffect(
    () =>
      pattern === null
        ? undefined
        : topic(
            owner,
            owner.client,
            pattern,
            (payload, message) => last.current(payload as Payload<Topics, K>, message as never),
            options as TopicOptions | undefined,
          ),
    [owner, pattern, JSON.stringify(options)],
  )
}

/**
 * A function that publishes to `key` or, without one, to any key. It stays the same from render to render. A publish
 * goes on when the component ends.
 */
export function usePublish<const K extends string>(
  key: KnownKey<Topics, K>,
  options?: PublisherOptions,
): PublishToKey<K>
export function usePublish(key?: undefined, options?: PublisherOptions): PublishToAny
export function usePublish(key?: string, options?: PublisherOptions): PublishToKey<string> | PublishToAny {
  const client = useGivenClient()
  // biome-ignore lint/correctness/useExhaustiveDependencies: options are compared by what they say
  return useMemo(() => publisher(client, key, options), [client, key, JSON.stringify(options)])
}

/**
 * The newest message of each key of `pattern`; none if it is `null`. However many messages arrive, the component
 * renders at most once per frame.
 */
export function useLatest<const K extends string>(
  pattern: KnownTopic<Topics, K> | null,
  options?: LatestOptions,
): Latest<Payload<Topics, K>> {
  const store = useStore(`${pattern} ${JSON.stringify(options)}`, (client) => latestStore(client, pattern, options))
  return useSnapshot(store) as Latest<Payload<Topics, K>>
}

/**
 * The last message of each key of `pattern`, which the server must retain; of none if it is `null`. However many
 * messages arrive, the component renders at most once per frame.
 */
export function useStateTopic<const K extends string>(
  pattern: KnownTopic<Topics, K> | null,
  options?: StateTopicOptions,
): StateSnapshot<Payload<Topics, K>> {
  const store = useStore(`${pattern} ${JSON.stringify(options)}`, (client) => stateStore(client, pattern, options))
  return useSnapshot(store) as StateSnapshot<Payload<Topics, K>>
}

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

/**
 * Who is present at `key`; nobody if it is `null`. With `me`, a JSON value, this client is present too, while the
 * component is mounted.
 */
export function usePresence<D = unknown>(
  key: string | null,
  me?: D,
  options: { readonly graceMs?: number } = {},
): Present<D> {
  const client = useGivenClient()
  const { graceMs } = options
  const owner = useMemo(() => ({ client }), [client])
  // biome-ignore lint/correctness/useExhaustiveDependencies: `me` is compared by what it says
  useEffect(
    () => (key === null || me === undefined ? undefined : enter(owner, owner.client, key, me, graceMs)),
    [owner, key, JSON.stringify(me)],
  )
  return useSnapshot(useStore(key, (client) => presenceStore(client, key, graceMs))) as Present<D>
}

import { onMount } from 'svelte'
import type { Readable } from 'svelte/store'
import type { ClientStatus } from '../events/events.js'
import type { StateSnapshot } from '../state/index.js'
import { type Latest, type LatestOptions, latestStore } from '../stores/latest.js'
import { type Messages, type MessagesOptions, messagesStore } from '../stores/messages.js'
import { enter, type Present, presenceStore } from '../stores/presence.js'
import { type PublisherOptions, type PublishToAny, type PublishToKey, publisher } from '../stores/publish.js'
import { type StateTopicOptions, stateStore } from '../stores/state.js'
import { statusStore } from '../stores/status.js'
import { type TopicOptions, topic } from '../stores/topic.js'
import type { KnownKey, KnownTopic, Payload, Topics } from '../topics.js'
import type { MessageHandler } from '../types.js'
import { type ClientOption, givenClient } from './client.js'
import { type MaybeReadable, readable, whileValue } from './readable.js'

/** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
export function useStatus({ client: given }: ClientOption = {}): Readable<ClientStatus> {
  const client = givenClient(given)
  return readable(undefined, () => statusStore(client))
}

/** Calls `handler` with every message of `pattern` while the component is mounted; with none while it is `null`. */
export function useTopic<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  handler: MessageHandler<Payload<Topics, K>>,
  { client: given, ...options }: TopicOptions<Payload<Topics, K>> & ClientOption = {},
): void {
  const client = givenClient(given)
  onMount(() =>
    whileValue(pattern, (value) =>
      value === null
        ? undefined
        : topic({}, client, value, handler as MessageHandler<unknown>, options as TopicOptions),
    ),
  )
}

/** A function that publishes to `key` or, without one, to any key. A publish goes on when the component ends. */
export function usePublish<const K extends string>(
  key: KnownKey<Topics, K>,
  options?: PublisherOptions & ClientOption,
): PublishToKey<K>
export function usePublish(key?: undefined, options?: PublisherOptions & ClientOption): PublishToAny
export function usePublish(
  key?: string,
  { client, ...options }: PublisherOptions & ClientOption = {},
): PublishToKey<string> | PublishToAny {
  return publisher(givenClient(client), key, options)
}

/** The newest message of each key of `pattern`; none while it is `null`. It changes at most once per frame. */
export function useLatest<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  { client: given, ...options }: LatestOptions & ClientOption = {},
): Readable<Latest<Payload<Topics, K>>> {
  const client = givenClient(given)
  const make = (value: string | null) => latestStore(client, value, options)
  return readable(pattern, make) as Readable<Latest<Payload<Topics, K>>>
}

/**
 * The last message of each key of `pattern`, which the server must retain; of none while it is `null`. It changes at
 * most once per frame.
 */
export function useStateTopic<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  { client: given, ...options }: StateTopicOptions & ClientOption = {},
): Readable<StateSnapshot<Payload<Topics, K>>> {
  const client = givenClient(given)
  const make = (value: string | null) => stateStore(client, value, options)
  return readable(pattern, make) as Readable<StateSnapshot<Payload<Topics, K>>>
}

/**
 * The last messages of `pattern`, in their order and live; none while it is `null`. After a gap the list loads again.
 * Components with the same pattern and options share one list, which changes at most once per frame.
 */
export function useMessages<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  { client: given, ...options }: MessagesOptions<Payload<Topics, K>> & ClientOption = {},
): Readable<Messages<Payload<Topics, K>>> {
  const client = givenClient(given)
  const make = (value: string | null) => messagesStore(client, value, options as MessagesOptions)
  return readable(pattern, make) as Readable<Messages<Payload<Topics, K>>>
}

/**
 * Who is present at `key`; nobody while it is `null`. With `me`, a JSON value, this client is present too, while the
 * component is mounted.
 */
export function usePresence<D = unknown>(
  key: MaybeReadable<string | null>,
  me?: MaybeReadable<D>,
  { client: given, graceMs }: ClientOption & { readonly graceMs?: number } = {},
): Readable<Present<D>> {
  const client = givenClient(given)
  const owner = {}
  onMount(() =>
    whileValue(key, (key) =>
      key === null
        ? undefined
        : whileValue(me, (data) => (data === undefined ? undefined : enter(owner, client, key, data, graceMs))),
    ),
  )
  return readable(key, (key) => presenceStore(client, key, graceMs)) as Readable<Present<D>>
}

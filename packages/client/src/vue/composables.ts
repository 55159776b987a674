import { type MaybeRefOrGetter, type ToRefs, toValue } from 'vue'
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
import { useGivenClient } from './client.js'
import { useSnapshot, whileMounted } from './use-snapshot.js'

/** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
export function useStatus(): ToRefs<ClientStatus> {
  const client = useGivenClient()
  return useSnapshot(() => statusStore(client))
}

/** Calls `handler` with every message of `pattern` while the component is mounted; with none while it is `null`. */
export function useTopic<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  handler: MessageHandler<Payload<Topics, K>>,
  options?: TopicOptions<Payload<Topics, K>>,
): void {
  const client = useGivenClient()
  whileMounted(
    () => toValue(pattern),
    (pattern) =>
      pattern === null
        ? undefined
        : topic({}, client, pattern, handler as MessageHandler<unknown>, options as TopicOptions),
  )
}

/** A function that publishes to `key` or, without one, to any key. A publish goes on when the component ends. */
export function usePublish<const K extends string>(
  key: MaybeRefOrGetter<KnownKey<Topics, K>>,
  options?: PublisherOptions,
): PublishToKey<K>
export function usePublish(key?: undefined, options?: PublisherOptions): PublishToAny
export function usePublish(
  key?: MaybeRefOrGetter<string>,
  options?: PublisherOptions,
): PublishToKey<string> | PublishToAny {
  const client = useGivenClient()
  return (...args: unknown[]) => publisher(client, toValue(key), options)(...args)
}

/** The newest message of each key of `pattern`; none while it is `null`. It changes at most once per frame. */
export function useLatest<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  options?: LatestOptions,
): ToRefs<Latest<Payload<Topics, K>>> {
  const client = useGivenClient()
  const refs = useSnapshot(() => latestStore(client, toValue(pattern), options))
  return refs as ToRefs<Latest<Payload<Topics, K>>>
}

/**
 * The last message of each key of `pattern`, which the server must retain; of none while it is `null`. It changes at
 * most once per frame.
 */
export function useStateTopic<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  options?: StateTopicOptions,
): ToRefs<StateSnapshot<Payload<Topics, K>>> {
  const client = useGivenClient()
  const refs = useSnapshot(() => stateStore(client, toValue(pattern), options))
  return refs as ToRefs<StateSnapshot<Payload<Topics, K>>>
}

/** What {@link useMessages} returns: refs, and a function. */
export type UsedMessages<P> = Omit<ToRefs<Messages<P>>, 'loadOlder'> & Pick<Messages<P>, 'loadOlder'>

/**
 * The last messages of `pattern`, in their order and live; none while it is `null`. After a gap the list loads again.
 * Components with the same pattern and options share one list, which changes at most once per frame.
 */
export function useMessages<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  options?: MessagesOptions<Payload<Topics, K>>,
): UsedMessages<Payload<Topics, K>> {
  const client = useGivenClient()
  const { loadOlder, ...refs } = useSnapshot(() =>
    messagesStore(client, toValue(pattern), options as MessagesOptions | undefined),
  )
  return { ...refs, loadOlder: () => loadOlder.value() } as UsedMessages<Payload<Topics, K>>
}

/**
 * Who is present at `key`; nobody while it is `null`. With `me`, a JSON value, this client is present too, while the
 * component is mounted.
 */
export function usePresence<D = unknown>(
  key: MaybeRefOrGetter<string | null>,
  me?: MaybeRefOrGetter<D>,
  { graceMs }: { readonly graceMs?: number } = {},
): ToRefs<Present<D>> {
  const client = useGivenClient()
  const owner = {}
  whileMounted(
    () => [toValue(key), JSON.stringify(toValue(me))] as const,
    ([key, data]) =>
      key === null || data === undefined ? undefined : enter(owner, client, key, JSON.parse(data), graceMs),
  )
  return useSnapshot(() => presenceStore(client, toValue(key), graceMs)) as ToRefs<Present<D>>
}

'use client'
import { useEffect, useInsertionEffect, useMemo, useRef } from 'react'
import type { WebMQClient } from '../../core/client.js'
import type { ClientStatus } from '../../core/events/events.js'
import { type AnyClientOption, type ClientOption, clientOf, type GivenClient, scopeOf } from '../../core/of-client.js'
import type { Jsonified } from '../../core/topics/jsonified.js'
import type {
  KnownKey,
  KnownTopic,
  ListenTopic,
  Payload,
  PresenceInput,
  PresenceOf,
  StreamOf,
  TopicHandler,
  Topics,
} from '../../core/topics/topics.js'
import type { Message } from '../../core/types.js'
import type { StateSnapshot } from '../../parts/state/index.js'
import { bindable, bindHooks } from '../stores/bindable.js'
import { type Latest, type LatestOptions, latestStore } from '../stores/latest.js'
import { type Messages, type MessagesOptions, messagesStore } from '../stores/messages.js'
import { enter, type Present, presenceStore } from '../stores/presence.js'
import { type PublisherOptions, type PublishTo, publisher } from '../stores/publish.js'
import { type StateTopicOptions, stateStore } from '../stores/state.js'
import { statusStore } from '../stores/status.js'
import { type StreamOptions, type StreamSnapshot, streamStore } from '../stores/stream.js'
import { type TopicOptions, topic } from '../stores/topic.js'
import { useGivenClient } from './client.js'
import { useLoaded } from './use-loaded.js'
import { useSnapshot, useStore } from './use-store.js'

/** Options of {@link useMessages}. */
export interface UseMessagesOptions<P = unknown> extends MessagesOptions<P> {
  /** Suspends the component until the first messages, or an error, are here. Not on a server. */
  readonly suspense?: boolean
}

/** {@link Hooks.useStatus} */
export interface UseStatus {
  (options?: { readonly client?: GivenClient }): ClientStatus
  /** @param select Returns a value that `Object.is` compares: not a new object each time. */
  <S>(select: (status: ClientStatus) => S, options?: { readonly client?: GivenClient }): S
}

/** The hooks, for keys and payloads of the topics `D`, or of the client that is given in their options. */
export interface Hooks<D = Topics> {
  /** The client of the provider or, without one, of `setup`. Not while a server renders: there may be none. */
  readonly useClient: <T = D>(options?: ClientOption<T>) => WebMQClient<T>

  /**
   * The state of the client: connected, waiting for another attempt, closed. It does not connect. With `select`, the
   * component renders when that returns something else: `useStatus(({ lost }) => lost)`.
   */
  readonly useStatus: UseStatus

  /**
   * Calls `handler` with every message of `pattern` while the component is mounted; with none if it is `null`. The
   * handler may be another function at every render: always the last one is called.
   */
  readonly useTopic: <const K extends string, T = D>(
    pattern: ListenTopic<T, K> | null,
    handler: TopicHandler<T, K>,
    options?: TopicOptions<Payload<T, K>> & ClientOption<T>,
  ) => void

  /**
   * A function that publishes to `key` or, without one, to any key. It stays the same from render to render. A publish
   * goes on when the component ends.
   */
  readonly usePublish: <const K extends string = never, T = D>(
    key?: KnownKey<T, K>,
    options?: PublisherOptions & ClientOption<T>,
  ) => PublishTo<K, T>

  /**
   * The newest message of each key of `pattern`; none if it is `null`. However many messages arrive, the component
   * renders at most once per frame.
   */
  readonly useLatest: <const K extends string, T = D>(
    pattern: KnownTopic<T, K> | null,
    options?: LatestOptions & ClientOption<T>,
  ) => Latest<Payload<T, K>>

  /**
   * The last message of each key of `pattern`, which the server must retain; of none if it is `null`. However many
   * messages arrive, the component renders at most once per frame.
   */
  readonly useStateTopic: <const K extends string, T = D>(
    pattern: KnownTopic<T, K> | null,
    options?: StateTopicOptions & ClientOption<T>,
  ) => StateSnapshot<Payload<T, K>>

  /**
   * The last messages of `pattern`, in their order and live; none if it is `null`. After a gap the list loads again.
   * Components with the same pattern and options share one list and render at most once per frame.
   */
  readonly useMessages: <const K extends string, T = D>(
    pattern: KnownTopic<T, K> | null,
    options?: UseMessagesOptions<Payload<T, K>> & ClientOption<T>,
  ) => Messages<Payload<T, K>>

  /**
   * The last stream of `key`: its text so far, how far it is, and functions to stop and to steer it; none if it is `null`.
   * However fast it is written, the component renders at most once per frame.
   */
  readonly useStream: <const K extends string, T = D>(
    key: K | null,
    options?: StreamOptions & ClientOption<T>,
  ) => StreamSnapshot<StreamOf<T, K>>

  /**
   * Who is present at `key`; nobody if it is `null`. With `me`, a JSON value, this client is present too, while the
   * component is mounted.
   */
  readonly usePresence: <P extends PresenceInput<T, K> = never, const K extends string = string, T = D>(
    key: K | null,
    me?: P,
    options?: { readonly graceMs?: number } & AnyClientOption<T>,
  ) => Present<Jsonified<PresenceOf<P, T, K>>>
}

/** A hook: with the keys and payloads of declared topics, or by `of` with those of a client, which it then uses. */
export type Bindable<N extends keyof Hooks> = Hooks[N] & {
  readonly of: <T>(client: WebMQClient<T>) => Hooks<T>[N]
}

const hook = bindable as <N extends keyof Hooks>(call: Hooks[N]) => Bindable<N>

/** {@link Hooks.useClient} */
export const useClient = /* @__PURE__ */ hook<'useClient'>(function useClient<T>({ client }: ClientOption<T> = {}) {
  return clientOf(useGivenClient(client)) as unknown as WebMQClient<T>
})

/** {@link Hooks.useStatus} */
export const useStatus = /* @__PURE__ */ hook<'useStatus'>(function useStatus(first?: unknown, second: object = {}) {
  const isSelected = typeof first === 'function'
  const { client }: { client?: GivenClient } = isSelected ? second : { ...second, ...(first as object | undefined) }
  return useSnapshot(
    useStore('', statusStore, client),
    isSelected ? (first as (status: ClientStatus) => never) : undefined,
  )
} as Hooks['useStatus'])

/** {@link Hooks.useTopic} */
export const useTopic = /* @__PURE__ */ hook<'useTopic'>(function useTopic(
  pattern,
  handler,
  { client: given, ...options } = {},
) {
  const client = useGivenClient(given)
  const last = useRef(handler)
  useInsertionEffect(() => {
    last.current = handler
  })
  // It survives what StrictMode does to effects.
  const owner = useMemo(() => ({ client }), [client])
  const handle = (payload: unknown, message: Message<unknown>) => last.current(payload as never, message as never)
  // biome-ignore lint/correctness/useExhaustiveDependencies: options are compared by what they say
  useEffect(
    () => (pattern === null ? undefined : topic(owner, owner.client, pattern, handle, options as TopicOptions)),
    [owner, pattern, JSON.stringify(options)],
  )
})

/** {@link Hooks.usePublish} */
export const usePublish = /* @__PURE__ */ hook<'usePublish'>(function usePublish(
  key?: string,
  { client: given, ...options }: PublisherOptions & ClientOption = {},
) {
  const client = useGivenClient(given)
  // biome-ignore lint/correctness/useExhaustiveDependencies: options are compared by what they say
  return useMemo(() => publisher(client, key, options), [client, key, JSON.stringify(options)])
} as Hooks['usePublish'])

/** {@link Hooks.useLatest} */
export const useLatest = /* @__PURE__ */ hook<'useLatest'>(function useLatest(
  pattern,
  { client: given, ...options } = {},
) {
  const name = `${pattern} ${JSON.stringify(options)}`
  const store = useStore(name, (client) => latestStore(client, pattern, options), given)
  return useSnapshot(store) as Latest<never>
})

/** {@link Hooks.useStateTopic} */
export const useStateTopic = /* @__PURE__ */ hook<'useStateTopic'>(function useStateTopic(
  pattern,
  { client: given, ...options } = {},
) {
  const name = `${pattern} ${JSON.stringify(options)}`
  const store = useStore(name, (client) => stateStore(client, pattern, options), given)
  return useSnapshot(store) as StateSnapshot<never>
})

/** {@link Hooks.useMessages} */
export const useMessages = /* @__PURE__ */ hook<'useMessages'>(function useMessages(
  pattern,
  { client: given, suspense, ...options } = {},
) {
  const name = `${pattern} ${JSON.stringify(options)}`
  const store = useStore(name, (client) => messagesStore(client, pattern, options as MessagesOptions), given)
  const snapshot = useSnapshot(store)
  useLoaded(scopeOf(useGivenClient(given)), name, store, snapshot, suspense && pattern !== null)
  return snapshot as Messages<never>
})

/** {@link Hooks.useStream} */
export const useStream = /* @__PURE__ */ hook<'useStream'>(function useStream(
  key: string | null,
  { client: given, ...options }: StreamOptions & { readonly client?: GivenClient } = {},
) {
  const name = `${key} ${JSON.stringify(options)}`
  return useSnapshot(useStore(name, (client) => streamStore(client, key, options), given))
} as Hooks['useStream'])

/** {@link Hooks.usePresence} */
export const usePresence = /* @__PURE__ */ hook<'usePresence'>(function usePresence(
  key: string | null,
  me?: unknown,
  { client: given, graceMs }: { readonly graceMs?: number; readonly client?: GivenClient } = {},
) {
  const client = useGivenClient(given)
  const owner = useMemo(() => ({ client }), [client])
  // biome-ignore lint/correctness/useExhaustiveDependencies: `me` is compared by what it says
  useEffect(
    () => (key === null || me === undefined ? undefined : enter(owner, owner.client, key, me, graceMs)),
    [owner, key, JSON.stringify(me)],
  )
  return useSnapshot(useStore(key, (client) => presenceStore(client, key, graceMs), given))
} as Hooks['usePresence'])

const HOOKS = {
  useClient,
  useStatus,
  useTopic,
  usePublish,
  useLatest,
  useStateTopic,
  useMessages,
  useStream,
  usePresence,
}

/**
 * The hooks for the topics of `client`, once for an app: `export const { useTopic } = createHooks(client)`. They use this
 * client. Without one, `createHooks<Topics>()`, they use that of the provider or of `setup`.
 */
export function createHooks<T = Topics>(client?: WebMQClient<T>): Hooks<T> {
  return bindHooks(HOOKS, client) as Hooks<T>
}

import { onMount } from 'svelte'
import { get, type Readable } from 'svelte/store'
import type { WebMQClient } from '../../core/client.js'
import type { ClientStatus } from '../../core/events/events.js'
import type { AnyClientOption, ClientOption, GivenClient } from '../../core/of-client.js'
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
import type { MessageHandler } from '../../core/types.js'
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
import { givenClient } from './client.js'
import { isReadable, type MaybeReadable, readable, whileValue } from './readable.js'

/** The functions, for keys and payloads of the topics `D`, or of the client that is given in their options. */
export interface Hooks<D = Topics> {
  /** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
  readonly useStatus: (options?: { readonly client?: GivenClient }) => Readable<ClientStatus>

  /** Calls `handler` with every message of `pattern` while the component is mounted; with none while it is `null`. */
  readonly useTopic: <const K extends string, T = D>(
    pattern: MaybeReadable<ListenTopic<T, K> | null>,
    handler: TopicHandler<T, K>,
    options?: TopicOptions<Payload<T, K>> & ClientOption<T>,
  ) => void

  /** A function that publishes to `key` or, without one, to any key. A publish goes on when the component ends. */
  readonly usePublish: <const K extends string = never, T = D>(
    key?: MaybeReadable<KnownKey<T, K>>,
    options?: PublisherOptions & ClientOption<T>,
  ) => PublishTo<K, T>

  /** The newest message of each key of `pattern`; none while it is `null`. It changes at most once per frame. */
  readonly useLatest: <const K extends string, T = D>(
    pattern: MaybeReadable<KnownTopic<T, K> | null>,
    options?: LatestOptions & ClientOption<T>,
  ) => Readable<Latest<Payload<T, K>>>

  /**
   * The last message of each key of `pattern`, which the server must retain; of none while it is `null`. It changes at
   * most once per frame.
   */
  readonly useStateTopic: <const K extends string, T = D>(
    pattern: MaybeReadable<KnownTopic<T, K> | null>,
    options?: StateTopicOptions & ClientOption<T>,
  ) => Readable<StateSnapshot<Payload<T, K>>>

  /**
   * The last messages of `pattern`, in their order and live; none while it is `null`. After a gap the list loads again.
   * Components with the same pattern and options share one list, which changes at most once per frame.
   */
  readonly useMessages: <const K extends string, T = D>(
    pattern: MaybeReadable<KnownTopic<T, K> | null>,
    options?: MessagesOptions<Payload<T, K>> & ClientOption<T>,
  ) => Readable<Messages<Payload<T, K>>>

  /**
   * The last stream of `key`: its text so far, how far it is, and functions to stop and to steer it; none while it is `null`.
   * However fast it is written, it changes at most once per frame.
   */
  readonly useStream: <const K extends string, T = D>(
    key: MaybeReadable<K | null>,
    options?: StreamOptions & ClientOption<T>,
  ) => Readable<StreamSnapshot<StreamOf<T, K>>>

  /**
   * Who is present at `key`; nobody while it is `null`. With `me`, a JSON value, this client is present too, while the
   * component is mounted.
   */
  readonly usePresence: <P extends PresenceInput<T, K> = never, const K extends string = string, T = D>(
    key: MaybeReadable<K | null>,
    me?: MaybeReadable<P>,
    options?: { readonly graceMs?: number } & AnyClientOption<T>,
  ) => Readable<Present<Jsonified<PresenceOf<P, T, K>>>>
}

/**
 * A function of {@link Hooks}: with the keys and payloads of declared topics, or by `of` with those of a client, which it then
 * uses.
 */
export type Bindable<N extends keyof Hooks> = Hooks[N] & {
  readonly of: <T>(client: WebMQClient<T>) => Hooks<T>[N]
}

const hook = bindable as <N extends keyof Hooks>(call: Hooks[N]) => Bindable<N>

/** {@link Hooks.useStatus} */
export const useStatus = /* @__PURE__ */ hook<'useStatus'>(function useStatus({ client: given } = {}) {
  const client = givenClient(given)
  return readable(undefined, () => statusStore(client))
})

/** {@link Hooks.useTopic} */
export const useTopic = /* @__PURE__ */ hook<'useTopic'>(function useTopic(
  pattern,
  handler,
  { client: given, ...options } = {},
) {
  const client = givenClient(given)
  const handle = handler as MessageHandler<unknown>
  const listen = (value: string | null) =>
    value === null ? undefined : topic({}, client, value, handle, options as TopicOptions)
  onMount(() => whileValue<string | null>(pattern as MaybeReadable<string | null>, listen))
})

/** {@link Hooks.usePublish} */
export const usePublish = /* @__PURE__ */ hook<'usePublish'>(function usePublish(
  key?: MaybeReadable<string>,
  { client: given, ...options }: PublisherOptions & ClientOption = {},
) {
  const client = givenClient(given)
  return (...args: unknown[]) => publisher(client, isReadable(key) ? get(key) : key, options)(...args)
} as Hooks['usePublish'])

/** {@link Hooks.useLatest} */
export const useLatest = /* @__PURE__ */ hook<'useLatest'>(function useLatest(
  pattern,
  { client: given, ...options } = {},
) {
  const client = givenClient(given)
  const make = (value: string | null) => latestStore(client, value, options)
  return readable(pattern as MaybeReadable<string | null>, make) as Readable<Latest<never>>
})

/** {@link Hooks.useStateTopic} */
export const useStateTopic = /* @__PURE__ */ hook<'useStateTopic'>(function useStateTopic(
  pattern,
  { client: given, ...options } = {},
) {
  const client = givenClient(given)
  const make = (value: string | null) => stateStore(client, value, options)
  return readable(pattern as MaybeReadable<string | null>, make) as Readable<StateSnapshot<never>>
})

/** {@link Hooks.useMessages} */
export const useMessages = /* @__PURE__ */ hook<'useMessages'>(function useMessages(
  pattern,
  { client: given, ...options } = {},
) {
  const client = givenClient(given)
  const make = (value: string | null) => messagesStore(client, value, options as MessagesOptions)
  return readable(pattern as MaybeReadable<string | null>, make) as Readable<Messages<never>>
})

/** {@link Hooks.useStream} */
export const useStream = /* @__PURE__ */ hook<'useStream'>(function useStream(
  key: MaybeReadable<string | null>,
  { client: given, ...options }: StreamOptions & { readonly client?: GivenClient } = {},
) {
  const client = givenClient(given)
  return readable(key, (value) => streamStore(client, value, options))
} as Hooks['useStream'])

/** {@link Hooks.usePresence} */
export const usePresence = /* @__PURE__ */ hook<'usePresence'>(function usePresence(
  key: MaybeReadable<string | null>,
  me?: MaybeReadable<unknown>,
  { client: given, graceMs }: { readonly graceMs?: number; readonly client?: GivenClient } = {},
) {
  const client = givenClient(given)
  const owner = {}
  onMount(() =>
    whileValue(key, (key) =>
      key === null
        ? undefined
        : whileValue(me, (data) => (data === undefined ? undefined : enter(owner, client, key, data, graceMs))),
    ),
  )
  return readable(key, (key) => presenceStore(client, key, graceMs))
} as Hooks['usePresence'])

const HOOKS = { useStatus, useTopic, usePublish, useLatest, useStateTopic, useMessages, useStream, usePresence }

/**
 * The functions for the topics of `client`, once for an app: `export const { useTopic } = createHooks(client)`. They use
 * this client. Without one, `createHooks<Topics>()`, they use that of `provideClient` or of `setup`.
 */
export function createHooks<T = Topics>(client?: WebMQClient<T>): Hooks<T> {
  return bindHooks(HOOKS, client) as Hooks<T>
}

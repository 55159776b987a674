import { type MaybeRefOrGetter, type ToRefs, toValue } from 'vue'
import type { WebMQClient } from '../../core/client.js'
import type { ClientStatus } from '../../core/events/events.js'
import { type AnyClientOption, type ClientOption, clientOf, type GivenClient } from '../../core/of-client.js'
import type { Jsonified } from '../../core/topics/jsonified.js'
import type {
  KnownKey,
  KnownTopic,
  ListenTopic,
  Payload,
  PresenceInput,
  PresenceOf,
  StreamOf,
  StreamTypes,
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
import { useGivenClient } from './client.js'
import { useSnapshot, whileMounted } from './use-snapshot.js'

/** What {@link useMessages} returns: refs, and a function. */
export type UsedMessages<P> = Omit<ToRefs<Messages<P>>, 'loadOlder'> & Pick<Messages<P>, 'loadOlder'>

/** What {@link useStream} returns: refs, and functions. */
export type UsedStream<S = StreamTypes> = Omit<ToRefs<StreamSnapshot<S>>, 'stop' | 'send'> &
  Pick<StreamSnapshot<S>, 'stop' | 'send'>

/** The composables, for keys and payloads of the topics `D`, or of the client that is given in their options. */
export interface Hooks<D = Topics> {
  /** The provided client or, without one, that of `setup`. Not while a server renders: there may be none. */
  readonly useClient: <T = D>(options?: ClientOption<T>) => WebMQClient<T>

  /** The state of the client: connected, waiting for another attempt, closed. It does not connect. */
  readonly useStatus: (options?: { readonly client?: GivenClient }) => ToRefs<ClientStatus>

  /** Calls `handler` with every message of `pattern` while the component is mounted; with none while it is `null`. */
  readonly useTopic: <const K extends string, T = D>(
    pattern: MaybeRefOrGetter<ListenTopic<T, K> | null>,
    handler: TopicHandler<T, K>,
    options?: TopicOptions<Payload<T, K>> & ClientOption<T>,
  ) => void

  /** A function that publishes to `key` or, without one, to any key. A publish goes on when the component ends. */
  readonly usePublish: <const K extends string = never, T = D>(
    key?: MaybeRefOrGetter<KnownKey<T, K>>,
    options?: PublisherOptions & ClientOption<T>,
  ) => PublishTo<K, T>

  /** The newest message of each key of `pattern`; none while it is `null`. It changes at most once per frame. */
  readonly useLatest: <const K extends string, T = D>(
    pattern: MaybeRefOrGetter<KnownTopic<T, K> | null>,
    options?: LatestOptions & ClientOption<T>,
  ) => ToRefs<Latest<Payload<T, K>>>

  /**
   * The last message of each key of `pattern`, which the server must retain; of none while it is `null`. It changes at
   * most once per frame.
   */
  readonly useStateTopic: <const K extends string, T = D>(
    pattern: MaybeRefOrGetter<KnownTopic<T, K> | null>,
    options?: StateTopicOptions & ClientOption<T>,
  ) => ToRefs<StateSnapshot<Payload<T, K>>>

  /**
   * The last messages of `pattern`, in their order and live; none while it is `null`. After a gap the list loads again.
   * Components with the same pattern and options share one list, which changes at most once per frame.
   */
  readonly useMessages: <const K extends string, T = D>(
    pattern: MaybeRefOrGetter<KnownTopic<T, K> | null>,
    options?: MessagesOptions<Payload<T, K>> & ClientOption<T>,
  ) => UsedMessages<Payload<T, K>>

  /**
   * The last stream of `key`: its text so far, how far it is, and functions to stop and to steer it; none while it is `null`.
   * However fast it is written, it changes at most once per frame.
   */
  readonly useStream: <const K extends string, T = D>(
    key: MaybeRefOrGetter<K | null>,
    options?: StreamOptions & ClientOption<T>,
  ) => UsedStream<StreamOf<T, K>>

  /**
   * Who is present at `key`; nobody while it is `null`. With `me`, a JSON value, this client is present too, while the
   * component is mounted.
   */
  readonly usePresence: <P extends PresenceInput<T, K> = never, const K extends string = string, T = D>(
    key: MaybeRefOrGetter<K | null>,
    me?: MaybeRefOrGetter<P>,
    options?: { readonly graceMs?: number } & AnyClientOption<T>,
  ) => ToRefs<Present<Jsonified<PresenceOf<P, T, K>>>>
}

/** A composable: with the keys and payloads of declared topics, or by `of` with those of a client, which it then uses. */
export type Bindable<N extends keyof Hooks> = Hooks[N] & {
  readonly of: <T>(client: WebMQClient<T>) => Hooks<T>[N]
}

const hook = bindable as <N extends keyof Hooks>(call: Hooks[N]) => Bindable<N>

/** {@link Hooks.useClient} */
export const useClient = /* @__PURE__ */ hook<'useClient'>(function useClient<T>({ client }: ClientOption<T> = {}) {
  return clientOf(useGivenClient(client)) as unknown as WebMQClient<T>
})

/** {@link Hooks.useStatus} */
export const useStatus = /* @__PURE__ */ hook<'useStatus'>(function useStatus({ client: given } = {}) {
  const client = useGivenClient(given)
  return useSnapshot(() => statusStore(client))
})

/** {@link Hooks.useTopic} */
export const useTopic = /* @__PURE__ */ hook<'useTopic'>(function useTopic(
  pattern,
  handler,
  { client: given, ...options } = {},
) {
  const client = useGivenClient(given)
  const handle = handler as MessageHandler<unknown>
  whileMounted(
    () => toValue(pattern) as string | null,
    (value) => (value === null ? undefined : topic({}, client, value, handle, options as TopicOptions)),
  )
})

/** {@link Hooks.usePublish} */
export const usePublish = /* @__PURE__ */ hook<'usePublish'>(function usePublish(
  key?: MaybeRefOrGetter<string>,
  { client: given, ...options }: PublisherOptions & ClientOption = {},
) {
  const client = useGivenClient(given)
  return (...args: unknown[]) => publisher(client, toValue(key), options)(...args)
} as Hooks['usePublish'])

/** {@link Hooks.useLatest} */
export const useLatest = /* @__PURE__ */ hook<'useLatest'>(function useLatest(
  pattern,
  { client: given, ...options } = {},
) {
  const client = useGivenClient(given)
  const refs = useSnapshot(() => latestStore(client, toValue(pattern) as string | null, options))
  return refs as ToRefs<Latest<never>>
})

/** {@link Hooks.useStateTopic} */
export const useStateTopic = /* @__PURE__ */ hook<'useStateTopic'>(function useStateTopic(
  pattern,
  { client: given, ...options } = {},
) {
  const client = useGivenClient(given)
  const refs = useSnapshot(() => stateStore(client, toValue(pattern) as string | null, options))
  return refs as ToRefs<StateSnapshot<never>>
})

/** {@link Hooks.useMessages} */
export const useMessages = /* @__PURE__ */ hook<'useMessages'>(function useMessages(
  pattern,
  { client: given, ...options } = {},
) {
  const client = useGivenClient(given)
  const { loadOlder, ...refs } = useSnapshot(() =>
    messagesStore(client, toValue(pattern) as string | null, options as MessagesOptions),
  )
  return { ...refs, loadOlder: () => loadOlder.value() } as UsedMessages<never>
})

/** {@link Hooks.useStream} */
export const useStream = /* @__PURE__ */ hook<'useStream'>(function useStream(
  key: MaybeRefOrGetter<string | null>,
  { client: given, ...options }: StreamOptions & { readonly client?: GivenClient } = {},
): UsedStream {
  const client = useGivenClient(given)
  const { stop, send, ...refs } = useSnapshot(() => streamStore(client, toValue(key), options))
  return { ...refs, stop: (reason) => stop.value(reason), send: (data) => send.value(data) }
} as Hooks['useStream'])

/** {@link Hooks.usePresence} */
export const usePresence = /* @__PURE__ */ hook<'usePresence'>(function usePresence(
  key: MaybeRefOrGetter<string | null>,
  me?: MaybeRefOrGetter<unknown>,
  { client: given, graceMs }: { readonly graceMs?: number; readonly client?: GivenClient } = {},
) {
  const client = useGivenClient(given)
  const owner = {}
  whileMounted(
    () => [toValue(key), JSON.stringify(toValue(me))] as const,
    ([key, data]) =>
      key === null || data === undefined ? undefined : enter(owner, client, key, JSON.parse(data), graceMs),
  )
  return useSnapshot(() => presenceStore(client, toValue(key), graceMs))
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
 * The composables for the topics of `client`, once for an app: `export const { useTopic } = createHooks(client)`. They use
 * this client. Without one, `createHooks<Topics>()`, they use the provided one or that of `setup`.
 */
export function createHooks<T = Topics>(client?: WebMQClient<T>): Hooks<T> {
  return bindHooks(HOOKS, client) as Hooks<T>
}

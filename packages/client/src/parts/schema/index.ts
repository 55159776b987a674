import { checks } from '../../core/checks.js'
import type { WebMQClient } from '../../core/client.js'
import type { ClientOptions } from '../../core/client-options.js'
import type { ClientCore, ClientPart } from '../../core/client-part.js'
import { setup as setupClient } from '../../core/default-instance.js'
import type { Receiver, Receiving } from '../../core/listening/receiver.js'
import { Wrapper } from '../../core/listening/wrapper.js'
import type { AnyClient } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import { REMOVAL } from '../../core/publishing/payload.js'
import type { StandardSchema } from '../../core/topics/standard-schema.js'
import type { InputOf, NamedTopics, OutputOf, Topic as TopicEntry } from '../../core/topics/topics.js'
import type { ListenOptions, Message, PublishOptions } from '../../core/types.js'
import { CheckedTopics } from './checked-topics.js'
import { NamedPattern, type Topic } from './topic.js'

export type * from '../../core/topics/standard-schema.js'

/** Topics and the Standard Schemas of their payloads: `{ 'chat.{room}.message': z.object({ text: z.string() }) }`. */
export interface TopicSchemas {
  readonly [pattern: string]: StandardSchema
}

/** What happens to received messages. `report`: they are checked. `off`: they are handed over as they were sent. */
export type OnReceive = 'report' | 'off'

/** Options of {@link withTopics}. */
export interface SchemaOptions<R extends OnReceive = OnReceive> {
  /**
   * `report` (default): payloads are checked, and handlers get what the schema makes of them. An invalid message goes to
   * the `error` event, and is not handed over. `off`: payloads are those that were published.
   */
  readonly receive?: R
}

/** The `T` of a client with schemas. */
export type SchemaTopics<M, R extends OnReceive = 'report'> = NamedTopics &
  (R extends 'off' ? { readonly [P in keyof M]: InputOf<M[P]> } : M)

/** Clients that have topics. */
const clients = new WeakSet<AnyClient>()

/**
 * The `setup` of `webmq-client` with topics whose payloads are checked: see {@link withTopics}.
 * @throws {WebMQError} `E_OPTION_INVALID`, `E_PATTERN_INVALID`.
 */
export function setup<const M extends TopicSchemas, R extends OnReceive = 'report'>({
  topics,
  receive,
  ...options
}: ClientOptions & SchemaOptions<R> & { readonly topics: M }): WebMQClient<SchemaTopics<M, R>> {
  return checking(setupClient(options), new CheckedTopics(topics), receive)
}

/**
 * Gives a client topics, and returns it. From then on `publish` checks a payload before it is sent, with the schema of
 * its key's topic, and rejects with `E_PAYLOAD_INVALID`. What is sent is the payload as given. Every listener checks it
 * again, and gets what the schema makes of it: defaults and transforms apply there.
 *
 * Patterns may have named words (`chat.{room}.message`, `files.{#path}`), which messages have as `params`. Schemas must
 * be synchronous. A key that fits no topic is refused.
 * @throws {WebMQError} `E_OPTION_INVALID`, also if the client has topics already; `E_PATTERN_INVALID`.
 */
export function withTopics<const M extends TopicSchemas, R extends OnReceive = 'report'>(
  client: AnyClient,
  topics: M,
  options: SchemaOptions<R> = {},
): WebMQClient<SchemaTopics<M, R>> {
  checks.part?.('withTopics', options)
  return checking(client, new CheckedTopics(topics), options.receive)
}

/** What {@link typed} returns: a schema, and the other types of a `Topic`. */
export type TypedSchema<P> = StandardSchema<InputOf<P>, OutputOf<P>> &
  (P extends TopicEntry<infer E> ? TopicEntry<E> : unknown)

/**
 * A schema for topics whose payloads are not checked: `{ 'cursors.{user}': typed<{ x: number; y: number }>() }`. `P` may be a
 * `Topic`.
 */
export function typed<P>(): TypedSchema<P> {
  const schema: StandardSchema = { '~standard': { version: 1, vendor: 'webmq', validate: (value) => ({ value }) } }
  return schema as TypedSchema<P>
}

function checking<T>(client: AnyClient, topics: CheckedTopics, receive: OnReceive = 'report'): WebMQClient<T> {
  if (receive !== 'report' && receive !== 'off') throw invalid('receive')
  if (clients.has(client)) throw invalid('topics: this client has topics already')
  clients.add(client)
  const isChecked = receive === 'report'
  const add = client.add.bind(client)
  const listen = client.listen.bind(client)
  const unlisten = client.unlisten.bind(client)
  const publish = client.publish.bind(client)
  /** The subscription's receivers, by those that the app has given. */
  const receivers = new WeakMap<object, Receiver>()

  /** Several subscriptions get the same message, which is checked once. */
  let last:
    | { readonly message: Message<unknown>; readonly topic: Topic | undefined; readonly value: unknown }
    | undefined

  /** The message as handlers get it. Throws what {@link CheckedTopics.check} throws. */
  function accept(message: Message<unknown>, pattern?: NamedPattern): Message<unknown> {
    const { key, payload } = message
    if (last?.message !== message) {
      // A removed key has no payload.
      last = {
        message,
        ...(isChecked && payload !== undefined
          ? topics.check(key, payload)
          : { topic: topics.topicOf(key), value: payload }),
      }
    }
    const { topic, value } = last
    const params = {}
    for (const named of [topic, pattern]) if (named?.hasNames) Object.assign(params, named.paramsOf(key))
    return { ...message, payload: value, topic: topic?.text, params } as Message<unknown>
  }

  return Object.assign(client, {
    add<P extends ClientPart>(make: (core: ClientCore) => P): P {
      return add((core) => make({ ...core, accept }))
    },
    listen(text: string, receiving: Receiving<unknown>, options?: ListenOptions) {
      const pattern = new NamedPattern(text)
      const receiver = new Checking(receiving, (message) => accept(message, pattern))
      if (typeof receiving !== 'function') receivers.set(receiving, receiver)
      return listen(pattern.pattern, receiver, options)
    },
    unlisten(text: string, receiving?: Receiving<never>) {
      return unlisten(new NamedPattern(text).pattern, (receiving && receivers.get(receiving)) ?? receiving)
    },
    async publish(key: string, payload: unknown, options?: PublishOptions) {
      if (payload !== REMOVAL) topics.check(key, payload)
      return publish(key, payload, options)
    },
  }) as unknown as WebMQClient<T>
}

/** Passes on messages as `accept` returns them. The client reports what it throws, with the key. */
class Checking extends Wrapper {
  readonly #accept: (message: Message<unknown>) => Message<unknown>

  constructor(receiving: Receiving<unknown>, accept: (message: Message<unknown>) => Message<unknown>) {
    super(receiving)
    this.#accept = accept
  }

  override deliver(message: Message<unknown>, size?: number): unknown {
    // A handler gets payloads of topics alone; a reader of streams gets their parts.
    const isPart = message.stream && typeof this.handler !== 'function'
    return super.deliver(isPart ? message : this.#accept(message), size)
  }
}

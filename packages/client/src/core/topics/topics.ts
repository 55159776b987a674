import type { Message } from '../types.js'
import type { Jsonified } from './jsonified.js'
import type { StandardSchema } from './standard-schema.js'
import type { KeyOf, Meet, ParamsOf, Prefix, Prefixes, Words } from './words.js'

/**
 * Patterns and the payloads of the keys that match them. Empty here: an app names its own, either for one client
 * (`setup<MyTopics>()`) or, by augmentation, for the functions of the default instance:
 *
 * ```ts
 * declare module 'webmq-client' {
 *   interface Topics { 'chat.*.message': { text: string }; 'orders.#': { id: number } }
 * }
 * ```
 *
 * A payload may be a Standard Schema. Then its output is what a handler gets, and its input what `publish` takes. An entry
 * may also be a {@link Topic}, with the types of presence, replies and streams.
 */
// biome-ignore lint/suspicious/noEmptyInterface: apps augment it, which only an interface allows
export interface Topics {}

/** Only types have it: no object has this property. */
declare const named: unique symbol

/** What {@link Topic} gives types to. All of it is optional. */
export interface TopicTypes {
  /** The payload: of messages, requests and tasks. Without it, nothing can be published to the keys. */
  readonly message?: unknown
  /** The data of present members. */
  readonly presence?: unknown
  /** What a responder returns. */
  readonly reply?: unknown
  readonly stream?: StreamTypes
}

/** The types of a stream, each of which is `unknown` by default. */
export interface StreamTypes {
  /** What `openStream` takes, and readers get with the stream. */
  readonly meta?: unknown
  /** What `end` of the writer takes. */
  readonly result?: unknown
  /** What readers `send` to the writer. */
  readonly message?: unknown
  /** What the writer answers to that. */
  readonly reply?: unknown
}

/** Only types have it: no object has this property. */
declare const types: unique symbol

/**
 * A topic whose keys have more than messages, in the place of a plain payload:
 * `'room.*': Topic<{ message: { text: string }; presence: { name: string } }>`.
 */
export interface Topic<E extends TopicTypes> {
  readonly [types]: E
}

/** Only types have it: no object has this property. */
declare const kept: unique symbol

/**
 * Topics of a client whose codec keeps what JSON does not, such as `Date`: `setup<Topics & AsPublished>({ url,
 * codec: msgpack })`. Handlers then get payloads and replies with the types that were published. All clients of these keys
 * have to use the codec.
 */
export interface AsPublished {
  readonly [kept]: true
}

/** Topics of a client that knows named words (`chat.{room}.message`) at run time: see `webmq-client/schema`. */
export interface NamedTopics {
  readonly [named]: true
}

/** Whether `T` says nothing: it has no topics, or is `any`, as in `AnyClient`. */
type HasTopics<T> = 0 extends 1 & T ? false : [keyof T] extends [never] ? false : true

/** The topics of `T` by their literal first words, so that few of many are compared with a key. */
type ByPrefix<T> = { [P in keyof T & string as Prefix<Words<P>>]: P }

/** Conditional, because a compiler computes a conditional type once for each `T`, and a `keyof` at each use. */
type AllPrefixes<T> = T extends unknown ? keyof ByPrefix<T> : never

/** The topics of `T` whose literal first words do not exclude those of `K`. */
type Near<T, W extends readonly string[]> = ByPrefix<T>[AllPrefixes<T> & (Prefixes<W> | `${Prefix<W>}${string}`)]

/** The topics of `T` that have a key in common with `K`. One type for all uses below, so that compilers cache it. */
type Meeting<T, K extends string> = string extends K ? keyof T & string : Met<Near<T, Words<K>>, Words<K>>

/** Those of the topics `P` that have a key in common with the words. */
type Met<P, W extends readonly string[]> = P extends string ? (true extends Meet<Words<P>, W> ? P : never) : never

/** The payload of a handler: the result of the topic's schema, otherwise the payload as it comes over JSON. */
export type OutputOf<V, T = unknown> =
  V extends StandardSchema<infer _, infer Output> ? Output : Received<T, MessageType<V>>
/** What `publish` takes for a topic. */
export type InputOf<V> = V extends StandardSchema<infer Input, infer _> ? Input : MessageType<V>

type MessageType<V> = V extends Topic<infer E> ? Member<E, 'message', never> : V

/** What arrives of a value that a client of `T` has encoded. */
type Received<T, V> = T extends AsPublished ? V : Jsonified<V>

/** The type of a member, or `Else` if `E` does not have it. */
type Member<E, N extends string, Else = unknown> = E extends { readonly [M in N]: infer V } ? V : Else

/** The types that the topics of the keys `K` have for `N`: their union, or `unknown` if none has one. */
type Declared<T, K extends string, N extends keyof TopicTypes, Else = unknown> =
  HasTopics<T> extends true ? OrElse<DeclaredBy<T[Meeting<T, K> & keyof T], N>, Else> : Else

type DeclaredBy<V, N extends keyof TopicTypes> = V extends Topic<infer E> ? Member<E, N, never> : never

type OrElse<V, Else> = [V] extends [never] ? Else : V

/** The data with which a client may be present at the keys `K`. */
export type PresenceInput<T, K extends string> = Declared<T, K, 'presence'>

/** That of a `presence` of `K`: `D`, if the topics do not say it and something else does. */
export type PresenceOf<D, T, K extends string> = Declared<T, K, 'presence', [D] extends [never] ? unknown : D>

/** What a responder to the keys `K` returns. */
export type ReplyInput<T, K extends string> = Declared<T, K, 'reply'>

/** What a request to the keys `K` resolves with. */
export type Reply<T, K extends string> = Received<T, ReplyInput<T, K>>

/** The types of a stream at the keys `K`. */
export type StreamOf<T, K extends string> = Declared<T, K, 'stream', StreamTypes>

/** One of the types of a stream, as it is given. */
export type StreamInput<S, N extends keyof StreamTypes> = Member<S, N>

/** The same, as it arrives: streams are always JSON. */
export type StreamOutput<S, N extends keyof StreamTypes> = Jsonified<Member<S, N>>

/**
 * Payload of the keys that `K` stands for, as handlers get it: the union over all patterns of `T` that have a key in
 * common with `K`. `K` is a key, a pattern or a template (`chat.${string}.message`). `unknown` if `T` has no topics,
 * `never` if no topic fits.
 */
export type Payload<T, K extends string> = HasTopics<T> extends true ? OutputOf<T[Meeting<T, K> & keyof T], T> : unknown

/** The same, as `publish` takes it. It differs from {@link Payload} where a schema transforms. */
export type PayloadInput<T, K extends string> =
  HasTopics<T> extends true ? InputOf<T[Meeting<T, K> & keyof T]> : unknown

/**
 * The messages that a listen to `K` delivers: one type for each topic of `T` that fits, told apart by `key` and, with
 * `webmq-client/schema`, by `topic`.
 */
export type TopicMessage<T, K extends string> =
  HasTopics<T> extends true ? MessageOf<T, K, Meeting<T, K>> : Message<unknown, KeyOf<K>>

type MessageOf<T, K extends string, P extends string> = P extends keyof T
  ? Message<OutputOf<T[P], T>, KeyOf<K> extends K ? K : KeyOf<P>> &
      (T extends NamedTopics ? NamedMessage<P, K> : unknown)
  : never

/** What `webmq-client/schema` adds to a message. */
export interface NamedMessage<P extends string, K extends string = P> {
  /** The topic whose schema has accepted the payload. */
  readonly topic: P
  /** The words of the key that stand for `{name}` in the topic, and in the pattern of the listen. */
  readonly params: ParamsOf<P> & ParamsOf<K>
}

/** Handles a message of a topic of `T` that fits `K`. */
export type TopicHandler<T, K extends string> = (payload: Payload<T, K>, message: TopicMessage<T, K>) => unknown

/** `K` itself if a topic of `T` fits, otherwise a type whose text explains the compiler's error. */
export type KnownTopic<T, K extends string> = K extends `${string}{${string}}${string}`
  ? `'${K}' has named words: only listen takes them, of a client of webmq-client/schema`
  : SomeTopic<T, K>

/** The same for `listen`, to which a client of `webmq-client/schema` takes named words. */
export type ListenTopic<T, K extends string> = T extends NamedTopics ? SomeTopic<T, K> : KnownTopic<T, K>

type SomeTopic<T, K extends string> =
  HasTopics<T> extends true ? ([Meeting<T, K>] extends [never] ? `'${K}' is not a known topic` : K) : K

/** `K` itself if it is a key for which a topic of `T` fits; otherwise, as for a pattern, a text for the compiler. */
export type KnownKey<T, K extends string> = K extends `${string}${'*' | '#'}${string}`
  ? `'${K}' is a pattern, not a key`
  : KnownTopic<T, K>

import type { StandardSchema } from './standard-schema.js'
import type { KeyOf, Meet, ParamsOf, Prefix, Prefixes, Words } from './topic-words.js'
import type { Message } from './types.js'

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
 * A payload may be a Standard Schema. Then its output is what a handler gets, and its input what `publish` takes.
 */
// biome-ignore lint/suspicious/noEmptyInterface: apps augment it, which only an interface allows
export interface Topics {}

/** Only types have it: no object has this property. */
declare const named: unique symbol

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

/** What a handler gets of a topic. */
export type OutputOf<V> = V extends StandardSchema<infer _, infer Output> ? Output : V
/** What `publish` takes for a topic. */
export type InputOf<V> = V extends StandardSchema<infer Input, infer _> ? Input : V

/**
 * Payload of the keys that `K` stands for, as handlers get it: the union over all patterns of `T` that have a key in
 * common with `K`. `K` is a key, a pattern or a template (`chat.${string}.message`). `unknown` if `T` has no topics,
 * `never` if no topic fits.
 */
export type Payload<T, K extends string> = HasTopics<T> extends true ? OutputOf<T[Meeting<T, K> & keyof T]> : unknown

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
  ? Message<OutputOf<T[P]>, KeyOf<K> extends K ? K : KeyOf<P>> & (T extends NamedTopics ? NamedMessage<P, K> : unknown)
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

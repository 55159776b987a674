/**
 * Patterns and the payloads of the keys that match them. Empty here: an app names its own, either for one client
 * (`setup<MyTopics>()`) or, by augmentation, for the functions of the default instance:
 *
 * ```ts
 * declare module 'webmq-client' {
 *   interface Topics { 'chat.*.message': { text: string }; 'orders.#': { id: number } }
 * }
 * ```
 */
// biome-ignore lint/suspicious/noEmptyInterface: apps augment it, which only an interface allows
export interface Topics {}

type Words<K extends string> = K extends `${infer Head}.${infer Rest}` ? [Head, ...Words<Rest>] : [K]

/** Whether two words can be equal: `*` is any word, and so is a word known only as `string` (`chat.${string}`). */
type WordsMeet<A extends string, B extends string> = A extends '*'
  ? true
  : B extends '*'
    ? true
    : A extends B
      ? true
      : B extends A
        ? true
        : false

type IsHash<W extends string> = [W] extends ['#'] ? true : false

/**
 * Whether some key matches both lists of words; either may contain wildcards. `true`, `false`, or `boolean` for "yes".
 */
type Meet<A extends readonly string[], B extends readonly string[]> = A extends [
  infer A0 extends string,
  ...infer ARest extends string[],
]
  ? IsHash<A0> extends true
    ? ARest extends []
      ? true
      : Meet<ARest, B> | (B extends [string, ...infer BRest extends string[]] ? Meet<A, BRest> : false)
    : B extends [infer B0 extends string, ...infer BRest extends string[]]
      ? IsHash<B0> extends true
        ? BRest extends []
          ? true
          : Meet<A, BRest> | Meet<ARest, B>
        : WordsMeet<A0, B0> extends true
          ? Meet<ARest, BRest>
          : false
      : false
  : B extends ['#', ...infer BRest extends string[]]
    ? Meet<[], BRest>
    : B extends []
      ? true
      : false

/** The topics of `T` that have a key in common with `K`. One type for both uses below, so that compilers cache it. */
type Meeting<T, K extends string> = string extends K
  ? keyof T
  : { [P in keyof T & string]: true extends Meet<Words<P>, Words<K>> ? P : never }[keyof T & string]

/**
 * Payload of the keys that `K` stands for: the union over all patterns of `T` that have a key in common with `K`. `K`
 * is a key, a pattern or a template (`chat.${string}.message`). `unknown` if `T` has no topics, `never` if no topic
 * fits.
 */
export type Payload<T, K extends string> = [keyof T] extends [never] ? unknown : T[Meeting<T, K>]

/** `K` itself if a topic of `T` fits, otherwise a type whose text explains the compiler's error. */
export type KnownTopic<T, K extends string> = [keyof T] extends [never]
  ? K
  : [Meeting<T, K>] extends [never]
    ? `'${K}' is not a known topic`
    : K

/** `K` itself if it is a key for which a topic of `T` fits; otherwise, as for a pattern, a text for the compiler. */
export type KnownKey<T, K extends string> = K extends `${string}${'*' | '#'}${string}`
  ? `'${K}' is a pattern, not a key`
  : KnownTopic<T, K>

/** A word of a pattern: `{name}` is `*` with a name, and `{#name}` is `#`. */
type Word<W extends string> = W extends `{#${string}}` ? '#' : W extends `{${string}}` ? '*' : W

/** The words of a key or pattern. */
export type Words<K extends string> = K extends `${infer Head}.${infer Rest}` ? [Word<Head>, ...Words<Rest>] : [Word<K>]

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
export type Meet<A extends readonly string[], B extends readonly string[]> = A extends [
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

/** Whether a word is known: neither a wildcard nor a template such as `${number}`. */
type IsLiteral<W extends string> = W extends '*' | '#' ? false : Record<never, 1> extends { [N in W]: 1 } ? false : true

/** The literal words at the beginning, with a dot after each: `chat.` of `chat.*.message`. */
export type Prefix<W extends readonly string[]> = W extends [infer Head extends string, ...infer Rest extends string[]]
  ? IsLiteral<Head> extends true
    ? `${Head}.${Prefix<Rest>}`
    : ''
  : ''

/** All beginnings of the literal words: none, the first one, … */
export type Prefixes<W extends readonly string[], Before extends string = ''> =
  | Before
  | (W extends [infer Head extends string, ...infer Rest extends string[]]
      ? IsLiteral<Head> extends true
        ? Prefixes<Rest, `${Before}${Head}.`>
        : never
      : never)

/** The keys that match a pattern, as a template: `chat.${string}.message`; `orders` or `orders.${string}`. */
export type KeyOf<K extends string> = K extends `${string}${'*' | '#' | '{'}${string}` ? KeyOfWords<Words<K>> : K

type KeyOfWords<W extends readonly string[]> = W extends ['#', ...infer Rest extends string[]]
  ? Rest extends []
    ? string
    : WithoutDot<Tail<Rest>> | `${string}${Tail<Rest>}`
  : WithoutDot<Tail<W>>

/** The words, with a dot before each. `#` may be none. */
type Tail<W extends readonly string[]> = W extends [infer Head extends string, ...infer Rest extends string[]]
  ? Head extends '#'
    ? Tail<Rest> | `.${string}${Tail<Rest>}`
    : `.${Head extends '*' ? string : Head}${Tail<Rest>}`
  : ''

type WithoutDot<K extends string> = K extends `.${infer Rest}` ? Rest : never

/** The named words of a pattern: `{ room: string }` of `chat.{room}.message`. */
export type ParamsOf<K extends string> = string extends K ? unknown : { readonly [N in NamesOf<K>]: string }

type NamesOf<K extends string> = K extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `#${infer Rest}` ? Rest : Name) | NamesOf<Rest>
  : never

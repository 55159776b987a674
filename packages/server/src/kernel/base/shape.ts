import { isObject } from './is-object.js'

/** A part of a JSON Schema (2020-12), as OpenAPI 3.1 has it. */
export type JsonSchema = { readonly [member: string]: unknown }

/** The shape of a value: documents it, and checks it. */
export interface Shape<T> {
  readonly json: JsonSchema
  /** What is wrong with a value, in words that follow its name; `undefined` when nothing is. */
  defect(value: unknown): string | undefined
  /** Reads the text of a query parameter; the result is checked next. Absent: the text itself. */
  readonly fromText?: (text: string) => unknown
  /** The member of an object may be absent. */
  readonly isOptional?: boolean
  /** Never set: it carries the type. */
  readonly type?: T
}

export type ValueOf<S> = S extends Shape<infer T> ? T : never

export type Members = Readonly<Record<string, Shape<unknown>>>

type OptionalNames<M extends Members> = { [N in keyof M]: M[N] extends { isOptional: true } ? N : never }[keyof M]

export type ObjectOf<M extends Members> = { readonly [N in Exclude<keyof M, OptionalNames<M>>]: ValueOf<M[N]> } & {
  readonly [N in OptionalNames<M>]?: ValueOf<M[N]>
}

interface Documented {
  readonly description?: string
  readonly examples?: readonly unknown[]
}

/** A text. Its length is counted in code points, as JSON Schema does. */
export function text(
  rules: Documented & { minLength?: number; maxLength: number; pattern?: string; format?: string },
): Shape<string> {
  const { minLength = 1, maxLength, pattern } = rules
  const regex = pattern === undefined ? undefined : new RegExp(pattern, 'u')
  return {
    json: { type: 'string', minLength, ...rules },
    defect(value) {
      if (typeof value !== 'string') return 'is not a text'
      // A text has at most as many code points as UTF-16 units.
      if (value.length > maxLength && (value.length > 2 * maxLength || Array.from(value).length > maxLength)) {
        return `has more than ${maxLength} characters`
      }
      if (value.length < minLength) return value === '' ? 'is empty' : `has fewer than ${minLength} characters`
      return regex?.test(value) === false ? `does not match ${pattern}` : undefined
    },
  }
}

export function integer(rules: Documented & { minimum: number; maximum: number; default?: number }): Shape<number> {
  const { minimum, maximum } = rules
  return {
    json: { type: 'integer', ...rules },
    fromText: (text) => (/^-?\d{1,16}$/.test(text) ? Number(text) : text),
    defect: (value) =>
      Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum
        ? undefined
        : `is not a whole number from ${minimum} to ${maximum}`,
  }
}

/** A number from 0 on. */
export function amount(rules: Documented = {}): Shape<number> {
  return {
    json: { type: 'number', minimum: 0, ...rules },
    defect: (value) => (Number.isFinite(value) && Number(value) >= 0 ? undefined : 'is not a number from 0 on'),
  }
}

/** A whole number from 0 on. */
export function count(rules: Documented = {}): Shape<number> {
  return integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, ...rules })
}

/** The name of something, or another text of moderate length. */
export function name(description: string): Shape<string> {
  return text({ maxLength: 1_024, description })
}

export function flag(rules: Documented & { default?: boolean } = {}): Shape<boolean> {
  return {
    json: { type: 'boolean', ...rules },
    fromText: (text) => (text === 'true' ? true : text === 'false' ? false : text),
    defect: (value) => (typeof value === 'boolean' ? undefined : 'is not true or false'),
  }
}

export function choice<const W extends string>(
  words: readonly W[],
  rules: Documented & { default?: W } = {},
): Shape<W> {
  return {
    json: { type: 'string', enum: words, ...rules },
    defect: (value) => (words.some((word) => word === value) ? undefined : `is not one of ${words.join(', ')}`),
  }
}

export function anything(rules: Documented = {}): Shape<unknown> {
  return { json: { ...rules }, defect: () => undefined }
}

export function list<T>(
  item: Shape<T>,
  rules: Documented & { minItems?: number; maxItems?: number } = {},
): Shape<readonly T[]> {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = rules
  return {
    json: { type: 'array', items: item.json, ...rules },
    defect(value) {
      if (!Array.isArray(value)) return 'is not a list'
      if (value.length < minItems || value.length > maxItems) return `does not have ${minItems} to ${maxItems} items`
      for (const [index, entry] of value.entries()) {
        const defect = item.defect(entry)
        if (defect !== undefined) return `[${index}] ${defect}`
      }
      return undefined
    },
  }
}

export function optional<S extends Shape<unknown>>(shape: S): S & { readonly isOptional: true } {
  return { ...shape, isOptional: true }
}

/** An object with these members and no other. */
export function object<const M extends Members>(members: M, rules: Documented = {}): Shape<ObjectOf<M>> {
  return objectOf(members, rules, false)
}

/** An object of an answer: later versions may add members, so readers ignore those that they do not know. */
export function answer<const M extends Members>(members: M, rules: Documented = {}): Shape<ObjectOf<M>> {
  return objectOf(members, rules, true)
}

/** One of several objects, which differ in the members that they require. */
export function oneOf<const S extends readonly Shape<unknown>[]>(
  shapes: S,
  rules: Documented = {},
): Shape<ValueOf<S[number]>> {
  return {
    json: { oneOf: shapes.map(({ json }) => json), ...rules },
    defect(value) {
      const defects = shapes.map((shape) => shape.defect(value))
      if (defects.includes(undefined)) return undefined
      // The shape that was meant has all members that it requires.
      return (
        defects.find((defect) => defect?.startsWith('has no member') === false) ?? [...new Set(defects)].join(', and ')
      )
    },
  }
}

function objectOf<M extends Members>(members: M, rules: Documented, isOpen: boolean): Shape<ObjectOf<M>> {
  const properties = Object.fromEntries(Object.entries(members).map(([name, { json }]) => [name, json]))
  const required = Object.keys(members).filter((name) => members[name]?.isOptional !== true)
  return {
    json: {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : undefined),
      ...(isOpen ? undefined : { additionalProperties: false }),
      ...rules,
    },
    defect: (value) => objectDefect(members, value, isOpen),
  }
}

function objectDefect(members: Members, value: unknown, isOpen: boolean): string | undefined {
  if (!isObject(value)) return 'is not an object'
  for (const [name, shape] of Object.entries(members)) {
    const member = Object.hasOwn(value, name) ? value[name] : undefined
    if (member === undefined) {
      if (shape.isOptional !== true) return `has no member ${name}`
      continue
    }
    const defect = shape.defect(member)
    if (defect !== undefined) return `${name}: ${defect}`
  }
  const unknown = isOpen ? undefined : Object.keys(value).find((name) => !Object.hasOwn(members, name))
  return unknown === undefined ? undefined : `has the unknown member ${JSON.stringify(unknown.slice(0, 64))}`
}

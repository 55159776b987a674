import { createHash } from 'node:crypto'

/** A table of Lua: a list from 1 on, and named fields. */
export class LuaTable {
  readonly list: unknown[]
  readonly fields = new Map<string, unknown>()

  constructor(list: unknown[] = []) {
    this.list = list
  }
}

/** What compiled scripts call. */
export const OPERATORS = {
  isTrue: (value: unknown) => value !== undefined && value !== false,
  first: (value: unknown) => (Array.isArray(value) ? value[0] : value),
  all: (value: unknown) => (Array.isArray(value) ? value : [value]),
  get(table: unknown, key: unknown): unknown {
    if (table instanceof LuaTable) return typeof key === 'number' ? table.list[key - 1] : table.fields.get(String(key))
    if (typeof table === 'object' && table !== null) return (table as Record<string, unknown>)[String(key)]
    throw new TypeError(`attempt to index a ${typeof table} value`)
  },
  set(table: unknown, key: unknown, value: unknown): void {
    if (!(table instanceof LuaTable)) throw new TypeError(`attempt to index a ${typeof table} value`)
    if (typeof key === 'number') table.list[key - 1] = value
    else table.fields.set(String(key), value)
  },
  lengthOf(value: unknown): number {
    if (typeof value === 'string') return value.length
    if (value instanceof LuaTable) return value.list.length
    throw new TypeError(`attempt to get length of a ${typeof value} value`)
  },
  add: (left: unknown, right: unknown) => numberOf(left) + numberOf(right),
  subtract: (left: unknown, right: unknown) => numberOf(left) - numberOf(right),
  multiply: (left: unknown, right: unknown) => numberOf(left) * numberOf(right),
  divide: (left: unknown, right: unknown) => numberOf(left) / numberOf(right),
  modulo(left: unknown, right: unknown): number {
    const [one, other] = [numberOf(left), numberOf(right)]
    return one - Math.floor(one / other) * other
  },
  power: (left: unknown, right: unknown) => numberOf(left) ** numberOf(right),
  join: (left: unknown, right: unknown) => textOf(left) + textOf(right),
  isLess(left: unknown, right: unknown): boolean {
    const [one, other] = alike(left, right)
    return one < other
  },
  isAtMost(left: unknown, right: unknown): boolean {
    const [one, other] = alike(left, right)
    return one <= other
  },
  *range(from: number, to: number, step: number): Generator<number> {
    for (let at = from; step > 0 ? at <= to : at >= to; at += step) yield at
  },
  *eachOf(table: unknown): Generator<[number, unknown]> {
    if (!(table instanceof LuaTable)) throw new TypeError('ipairs of no table')
    for (const [at, value] of table.list.entries()) {
      if (value === undefined) return
      yield [at + 1, value]
    }
  },
}

/** Two numbers, or two texts. */
function alike(left: unknown, right: unknown): readonly [number, number] | readonly [string, string] {
  if (typeof left === 'number' && typeof right === 'number') return [left, right]
  if (typeof left === 'string' && typeof right === 'string') return [left, right]
  throw new TypeError(`attempt to compare ${typeof left} with ${typeof right}`)
}

/** As Lua's arithmetic, which takes numbers in texts too. */
function numberOf(value: unknown): number {
  const number = typeof value === 'number' ? value : toNumber(value)
  if (number === undefined) throw new TypeError(`attempt to perform arithmetic on a ${typeof value} value`)
  return number
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  // As %.14g, for what needs no more digits.
  if (typeof value === 'number') return String(Number(value.toPrecision(14)))
  throw new TypeError(`attempt to concatenate a ${value === undefined ? 'nil' : typeof value} value`)
}

function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || !/^\s*-?(0x[\da-fA-F]+|\d+\.?\d*(e[+-]?\d+)?)\s*$/i.test(value)) return undefined
  return Number(value)
}

const PATTERNS = new Map<string, RegExp>()

/** Patterns of classes, repetitions, anchors and groups. */
function patternOf(pattern: string): RegExp {
  const known = PATTERNS.get(pattern)
  if (known !== undefined) return known
  const regexp = new RegExp(
    pattern.replace(
      /%(.)/g,
      (_, letter: string) => ({ d: '[0-9]', w: '[0-9A-Za-z]', S: '[^\\s]', s: '\\s' })[letter] ?? `\\${letter}`,
    ),
  )
  PATTERNS.set(pattern, regexp)
  return regexp
}

const BYTES_OF_BITS = 4

/** The globals of Redis's scripts, but `redis`, `KEYS` and `ARGV`. */
export const LIBRARY: Readonly<Record<string, unknown>> = {
  tonumber: toNumber,
  type: (value: unknown) =>
    value === undefined ? 'nil' : value instanceof LuaTable ? 'table' : (typeof value as string),
  string: {
    match(text: unknown, pattern: string): unknown {
      const match = patternOf(pattern).exec(textOf(text))
      return match === null ? undefined : match.length > 1 ? match.slice(1) : match[0]
    },
    format(format: string, number: unknown): string {
      if (format !== '%.0f') throw new TypeError(`string.format of ${format}`)
      return BigInt(Math.round(numberOf(number))).toString()
    },
    sub: (text: unknown, from: number, to = -1) => {
      const string = textOf(text)
      return string.slice(
        from < 0 ? Math.max(0, string.length + from) : Math.max(1, from) - 1,
        to < 0 ? string.length + to + 1 : to,
      )
    },
    char: (...codes: number[]) => String.fromCharCode(...codes),
    rep: (text: string, count: number) => text.repeat(count),
  },
  table: { concat: (table: LuaTable, separator = '') => table.list.map(textOf).join(separator) },
  math: { huge: Number.POSITIVE_INFINITY, floor: (number: unknown) => Math.floor(numberOf(number)), max: Math.max },
  struct: {
    pack(format: string, number: number): string {
      if (format !== '>I4') throw new TypeError(`struct.pack of ${format}`)
      return Array.from({ length: BYTES_OF_BITS }, (_, at) =>
        String.fromCharCode((number >>> (24 - 8 * at)) & 255),
      ).join('')
    },
  },
  bit: {
    tobit: (number: number) => toBits(number),
    band: (one: number, other: number) => toBits(one) & toBits(other),
    bxor: (one: number, other: number) => toBits(one) ^ toBits(other),
    lshift: (bits: number, count: number) => toBits(bits) << count,
    rshift: (bits: number, count: number) => (toBits(bits) >>> count) | 0,
    rol: (bits: number, count: number) => (toBits(bits) << count) | (toBits(bits) >>> (32 - count)),
  },
}

/** As LuaBitOp: modulo 2^32. */
function toBits(number: number): number {
  return (Math.round(number) % 2 ** 32) | 0
}

export function sha1Of(text: string): string {
  return createHash('sha1').update(text, 'latin1').digest('hex')
}

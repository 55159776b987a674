import { isUtf8 } from 'node:buffer'

/** Levels of lists and objects that the server looks into. */
export const MAX_DEPTH = 256
/** More than any parser or writer with a stack of calls can bear. */
const DEEP = 100_000
const MEGABYTE = 1_000_000

/** A text that somebody may send in place of an honest one. */
export interface HostileText {
  readonly name: string
  readonly bytes: Buffer
  readonly isUtf8: boolean
  /** It is one JSON text, without a byte order mark. */
  readonly isJson: boolean
  /** Levels of lists and objects. */
  readonly depth: number
  /** JavaScript's numbers, objects and texts say all of it, so that parsing and writing it again changes spaces at most. */
  readonly isPlain: boolean
}

function textOf(name: string, content: string | Buffer, isPlain = true): HostileText {
  const bytes = Buffer.from(content)
  const valid = isUtf8(bytes)
  return { name, bytes, isUtf8: valid, isJson: valid && isJson(bytes.toString()), depth: depthOf(bytes), isPlain }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Of texts without brackets in strings. */
function depthOf(bytes: Buffer): number {
  let [depth, deepest] = [0, 0]
  for (const byte of bytes) {
    if (byte === 0x5b || byte === 0x7b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return deepest
}

const lists = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

/** One list for every door: what has ended, filled or fooled a server or a client before. */
export const TEXTS: readonly HostileText[] = [
  textOf('an honest text', '{"text":"hello"}'),
  textOf('100,000 nested lists', lists(DEEP)),
  textOf('100,000 nested objects', objects(DEEP)),
  textOf('257 nested lists', lists(MAX_DEPTH + 1)),
  textOf('257 nested objects', objects(MAX_DEPTH + 1)),
  textOf('256 nested lists', lists(MAX_DEPTH)),
  textOf('256 nested objects', objects(MAX_DEPTH)),
  textOf('a megabyte of ones', `[${'1,'.repeat(MEGABYTE / 2 - 1)}1]`),
  textOf('half a character, escaped', '"half \\ud83d"'),
  textOf('half a character, raw', Buffer.from([0x22, 0xed, 0xa0, 0xbd, 0x22])),
  textOf('NUL, escaped', '"a\\u0000b"'),
  textOf('NUL, raw', '"a\u0000b"'),
  textOf('a number of 64 bits', '1724442618569203714', false),
  textOf('numbers with their digits', '{"id":1724442618569203714,"zero":-0,"one":1.0,"ten":1E1}', false),
  textOf('1e400', '1e400', false),
  textOf('__proto__ and constructor', '{"__proto__":{"a":1},"constructor":{"prototype":{"b":2}}}'),
  textOf('a member twice', '{"a":1,"a":2}', false),
  textOf('no JSON', "{'a': 1}"),
  textOf('nothing', ''),
  textOf('a byte order mark', '\ufeff{"a":1}'),
  textOf('no UTF-8', Buffer.from([0x22, 0xff, 0x22])),
]

/** Of the texts that are JSON, those that are a string. */
export function isString({ isJson, bytes }: HostileText): boolean {
  return isJson && bytes[0] === 0x22
}

/** How a reader that should have a text got it. `rewritten`: the same value for JavaScript, in other bytes. */
export function comparison({ bytes, isJson: hasValue }: HostileText, got: Uint8Array | string | undefined): string {
  if (got === undefined) return 'nothing came'
  const read = Buffer.from(got)
  if (read.equals(bytes)) return 'as written'
  const isSame = hasValue && isJson(read.toString()) && isSameValue(read, bytes)
  return isSame ? 'rewritten' : `other: ${read.toString('utf8', 0, 60)}`
}

/** Written as the one and the other: `undefined` for what is too deep to be written again. */
function isSameValue(one: Buffer, other: Buffer): boolean {
  try {
    return JSON.stringify(JSON.parse(one.toString())) === JSON.stringify(JSON.parse(other.toString()))
  } catch {
    return false
  }
}

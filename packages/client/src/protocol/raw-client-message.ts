import type { ErrorCode, WebMQError } from './errors.js'
import { isGroup, isId, isPosition, parseCount } from './fields.js'
import { keyDefect, patternDefect } from './keys.js'
import { MAX_HEADER_BYTES } from './limits.js'
import type { ListenOverflow } from './messages.js'
import { ownText } from './own-text.js'
import { refusalOf } from './refusal.js'
import { decodeUtf8 } from './utf8.js'

const NEWLINE = 0x0a

/** A message that was split into fields, but not interpreted. */
export interface RawClientMessage {
  readonly verb: string
  /** The second field, if it is an id: an error answers to it. */
  readonly id: string | undefined
  readonly fields: readonly string[]
  readonly body: Uint8Array | undefined
}

export function split(data: Uint8Array): RawClientMessage {
  const newline = data.subarray(0, MAX_HEADER_BYTES + 1).indexOf(NEWLINE)
  const header = newline < 0 ? data : data.subarray(0, newline)
  if (header.length > MAX_HEADER_BYTES) throw malformed(header, `header is longer than ${MAX_HEADER_BYTES} bytes`)
  const text = decodeUtf8(header)
  if (text === undefined) throw malformed(header, 'header is not UTF-8')
  const fields = text.split(' ')
  if (fields.includes('')) throw malformed(header, 'fields are separated by exactly one space')
  const [verb = '', id = ''] = fields
  const body = newline < 0 ? undefined : data.subarray(newline + 1)
  return { verb, id: isId(id) ? ownText(id) : undefined, fields, body }
}

function malformed(header: Uint8Array, why: string): WebMQError {
  return refusal({ id: readId(header) }, 'E_MESSAGE_INVALID', why)
}

/** The id of a message that is malformed. Ids and the verbs before them are short, and ASCII. */
function readId(header: Uint8Array): string | undefined {
  const [, id = ''] = String.fromCharCode(...header.subarray(0, 64)).split(' ')
  return isId(id) ? id : undefined
}

export function requireId(raw: RawClientMessage): string {
  if (raw.id === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'id')
  return raw.id
}

export function requireKey(raw: RawClientMessage): string {
  const [, , key = ''] = raw.fields
  const defect = keyDefect(key)
  if (defect !== undefined) throw refusal(raw, 'E_KEY_INVALID', defect)
  return ownText(key)
}

export function requirePattern(raw: RawClientMessage): string {
  const [, , pattern = ''] = raw.fields
  const defect = patternDefect(pattern)
  if (defect !== undefined) throw refusal(raw, 'E_PATTERN_INVALID', defect)
  return ownText(pattern)
}

/** The value of an option without a value. */
const FLAG = ''

type Options = ReadonlyMap<string, string>

/** Options by name, including those of later versions [P-11.2]: all fields from index `start` on. */
export function readOptions(raw: RawClientMessage, start: number): Options {
  const options = new Map<string, string>()
  for (const field of raw.fields.slice(start)) {
    const [, name, value = FLAG] = /^([a-z][a-z0-9-]*)(?:=([!-~]+))?$/.exec(field) ?? []
    if (name === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'option')
    if (options.has(name)) throw refusal(raw, 'E_MESSAGE_INVALID', `option ${name} is given twice`)
    options.set(name, value)
  }
  return options
}

/** Where a replay begins, for `listen` and `history`. */
export function readRange(
  raw: RawClientMessage,
  options: Options,
): { readonly since?: string; readonly last?: number; readonly rewindMs?: number } {
  const since = options.get('since')
  if (since !== undefined && !isPosition(since)) throw refusal(raw, 'E_POSITION_INVALID')
  const last = readCount(raw, options, 'last')
  const rewindMs = readCount(raw, options, 'rewind')
  return {
    ...(since === undefined ? {} : { since: ownText(since) }),
    ...(last === undefined ? {} : { last }),
    ...(rewindMs === undefined ? {} : { rewindMs }),
  }
}

/** A queue group [P-16.1]. */
export function readMembership(
  raw: RawClientMessage,
  options: Options,
): { readonly group?: string; readonly respond?: true } {
  const group = options.get('group')
  const isResponder = readFlag(raw, options, 'respond')
  if (group === undefined && isResponder) throw refusal(raw, 'E_MESSAGE_INVALID', 'respond needs a group')
  if (group === undefined) return {}
  if (!isGroup(group)) throw refusal(raw, 'E_MESSAGE_INVALID', 'group')
  return { group: ownText(group), ...(isResponder ? { respond: true } : {}) }
}

/** The id of a stream [P-18.2]. */
export function requireStream(raw: RawClientMessage, options: Options): string {
  const stream = options.get('of')
  if (stream === undefined || !isId(stream)) throw refusal(raw, 'E_MESSAGE_INVALID', 'of')
  return ownText(stream)
}

/** A value of a later version is as absent [P-6.12]. */
export function readOverflow(options: Options): { readonly overflow?: ListenOverflow } {
  const overflow = OVERFLOWS.find((known) => known === options.get('overflow'))
  return overflow === undefined ? {} : { overflow }
}

export function readCount(raw: RawClientMessage, options: Options, name: string): number | undefined {
  const text = options.get(name)
  if (text === undefined) return undefined
  const count = parseCount(text)
  if (count === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', name)
  return count
}

export function readFlag(raw: RawClientMessage, options: Options, name: string): boolean {
  const value = options.get(name)
  if (value !== undefined && value !== FLAG) throw refusal(raw, 'E_MESSAGE_INVALID', `${name} has no value`)
  return value !== undefined
}

export function assertAtMostOne(raw: RawClientMessage, options: Options, ...names: readonly string[]): void {
  const given = names.filter((name) => options.has(name))
  if (given.length > 1) throw refusal(raw, 'E_MESSAGE_INVALID', `${given.join(' and ')} exclude each other`)
}

const OVERFLOWS = ['disconnect', 'drop-oldest', 'latest', 'latest-told'] as const satisfies ListenOverflow[]

export function refusal({ id }: Pick<RawClientMessage, 'id'>, code: ErrorCode, detail?: string): WebMQError {
  return refusalOf(code, { ...(detail === undefined ? {} : { detail }), requestId: id })
}

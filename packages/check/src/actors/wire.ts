import type { Answer, Selection } from '../judging/record.js'

/** What the server has sent, read strictly: the server of a run is of the same version as this document. */
export type ServerMessage =
  | { readonly verb: 'welcome'; readonly node: string; readonly body: Readonly<Record<string, unknown>> }
  | {
      readonly verb: 'ok'
      readonly id: string
      readonly answer: Answer
      readonly isDuplicate: boolean
      /** Its JSON. */
      readonly result?: Readonly<Record<string, unknown>>
    }
  | { readonly verb: 'error'; readonly id: string; readonly code: string; readonly isRetryable: boolean }
  | {
      readonly verb: 'message'
      readonly key: string
      readonly position: string
      readonly isReplay: boolean
      readonly payload: string
      /** Its place in a stream. */
      readonly stream?: string
    }
  /** `group`: its name and its pattern. */
  | {
      readonly verb: 'task'
      readonly group: string
      readonly key: string
      readonly payload: string
      readonly request?: string
    }
  | { readonly verb: 'reply'; readonly id: string; readonly isError: boolean }
  | { readonly verb: 'gap'; readonly pattern: string; readonly reason: string }
  | { readonly verb: 'expiring'; readonly inMs: number }
  | { readonly verb: 'pong'; readonly position: string | undefined }
  | { readonly verb: 'bye'; readonly code: number; readonly retryAfterMs: number | undefined }

/** The server has sent what `webmq.v1` does not allow. */
export class Breach extends Error {}

/** Number of required fields, names of the options (true: has a value), and whether there is a body. */
interface Form {
  readonly fields: readonly [min: number, max: number]
  readonly options: Readonly<Record<string, boolean>>
  readonly hasBody: boolean | 'maybe'
}

const OK_OPTIONS = { position: true, recovered: false, gap: true, replayed: true, more: false, duplicate: false }
const FORMS: Readonly<Record<ServerMessage['verb'], Form>> = {
  welcome: { fields: [0, 0], options: {}, hasBody: true },
  ok: { fields: [1, 1], options: OK_OPTIONS, hasBody: 'maybe' },
  error: { fields: [2, 2], options: {}, hasBody: true },
  message: { fields: [2, 2], options: { replay: false, stream: true }, hasBody: true },
  task: { fields: [3, 3], options: { request: true, within: true }, hasBody: true },
  reply: { fields: [1, 1], options: { error: false }, hasBody: true },
  gap: { fields: [2, 2], options: {}, hasBody: false },
  expiring: { fields: [1, 1], options: {}, hasBody: false },
  pong: { fields: [0, 0], options: { position: true }, hasBody: false },
  bye: { fields: [1, 2], options: {}, hasBody: false },
}

const MAX_HEADER_BYTES = 2_048
const NUMBER = /^\d{1,15}$/
const CODE = /^E_[A-Z0-9_]+$/
const REASON = /^[a-z-]+$/

/**
 * Reads one message of the server.
 * @throws {Breach} if it is not of the form that the document gives it.
 */
export function parse(text: string, isBinary: boolean): ServerMessage {
  const end = text.indexOf('\n')
  const header = end < 0 ? text : text.slice(0, end)
  const body = end < 0 ? undefined : text.slice(end + 1)
  if (Buffer.byteLength(header) > MAX_HEADER_BYTES) throw new Breach('the header is too long')
  const [verb = '', ...words] = header.split(' ')
  if (!isVerb(verb)) throw new Breach(`unexpected verb: ${header}`)
  if (words.includes('')) throw new Breach(`empty field: ${header}`)
  if (isBinary && verb !== 'message' && verb !== 'task') throw new Breach(`${verb} in a binary frame`)
  const form = FORMS[verb]
  if (form.hasBody !== 'maybe' && form.hasBody !== (body !== undefined)) throw new Breach(`body of ${header}`)
  const { fields, options } = split(header, words, form)
  const [first = '', second = '', third = ''] = fields
  switch (verb) {
    case 'welcome': {
      const welcome = json(body)
      return { verb, node: textIn(welcome, 'node'), body: welcome }
    }
    case 'expiring':
      return { verb, inMs: number(header, first) }
    case 'ok':
      return { verb, id: first, ...answerOf(header, options), ...(body === undefined ? {} : { result: json(body) }) }
    case 'error': {
      if (!CODE.test(second)) throw new Breach(`code: ${header}`)
      const { retryable } = json(body)
      if (typeof retryable !== 'boolean') throw new Breach(`retryable of ${header}`)
      return { verb, id: first, code: second, isRetryable: retryable }
    }
    case 'message':
      return {
        verb,
        key: first,
        position: second,
        isReplay: options.has('replay'),
        payload: body ?? '',
        ...optional('stream', options),
      }
    case 'task':
      return { verb, group: `${first} ${second}`, key: third, payload: body ?? '', ...optional('request', options) }
    case 'reply':
      return { verb, id: first, isError: options.has('error') }
    case 'gap':
      if (!REASON.test(second)) throw new Breach(`reason: ${header}`)
      return { verb, pattern: first, reason: second }
    case 'pong':
      return { verb, position: options.get('position') }
    case 'bye':
      return { verb, code: number(header, first), retryAfterMs: second === '' ? undefined : number(header, second) }
  }
}

/** The options of `listen` and `history`, each with a space before it. */
export function selectionOptions({ since, rewindMs, last, limit, isReverse }: Selection): string {
  const values = { since, rewind: rewindMs, last, limit }
  const pairs = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [` ${name}=${value}`]))
  return `${pairs.join('')}${isReverse ? ' reverse' : ''}`
}

function optional<Name extends string>(name: Name, options: ReadonlyMap<string, string>): { [Key in Name]?: string } {
  const value = options.get(name)
  return value === undefined ? {} : ({ [name]: value } as { [Key in Name]: string })
}

function isVerb(verb: string): verb is ServerMessage['verb'] {
  return Object.hasOwn(FORMS, verb)
}

/** Required fields come first: an option may not stand among them, and a field may look like an option. */
function split(header: string, words: readonly string[], form: Form) {
  const isNumber = (word: string | undefined) => word !== undefined && NUMBER.test(word)
  const [min, max] = form.fields
  const fieldCount = max > min && isNumber(words[min]) ? max : min
  if (words.length < fieldCount) throw new Breach(`fields are missing: ${header}`)
  const options = new Map<string, string>()
  for (const word of words.slice(fieldCount)) {
    const [name = '', ...rest] = word.split('=')
    const value = rest.length === 0 ? undefined : rest.join('=')
    if (form.options[name] !== (value !== undefined)) throw new Breach(`unexpected option ${word}: ${header}`)
    if (options.has(name)) throw new Breach(`option twice: ${header}`)
    options.set(name, value ?? '')
  }
  return { fields: words.slice(0, fieldCount), options }
}

function answerOf(header: string, options: ReadonlyMap<string, string>): { answer: Answer; isDuplicate: boolean } {
  const replayed = options.get('replayed')
  const answer: Answer = {
    position: options.get('position'),
    isRecovered: options.has('recovered'),
    gap: options.get('gap'),
    replayed: replayed === undefined ? 0 : number(header, replayed),
    isMore: options.has('more'),
  }
  return { answer, isDuplicate: options.has('duplicate') }
}

function number(header: string, word: string): number {
  if (!NUMBER.test(word)) throw new Breach(`number: ${header}`)
  return Number(word)
}

function json(body: string | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body ?? '')
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // The same breach as JSON that is no object.
  }
  throw new Breach(`no JSON object: ${body?.slice(0, 80)}`)
}

function textIn(object: Record<string, unknown>, member: string): string {
  const value = object[member]
  if (typeof value !== 'string') throw new Breach(`${member} is missing`)
  return value
}

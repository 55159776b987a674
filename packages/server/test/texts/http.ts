import { ROUTES, type RouteName } from '../../src/doors/http/api/routes.js'
import { type Door, type Expected, isTooDeep, memberOutcome, type NodeAccess, opaque } from './door.js'
import type { RawAnswer } from './raw-http.js'
import { comparison, type HostileText, isString } from './texts.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const TEXT_TYPE = { 'content-type': 'text/plain' }
const BYTES_TYPE = { 'content-type': 'application/octet-stream' }

/** Not supported, and no room: what is asked for, not a bug. */
const REFUSING = new Set([501, 507])

/** What a refusal says; `undefined` for an answer that is none. A bug answers 5xx. */
export function refusalOver({ status, body }: RawAnswer): string | undefined {
  if (status < 400) return undefined
  const [, code = 'without a code'] = /"code":"(\w+)"/.exec(body.toString('latin1')) ?? []
  return status < 500 || REFUSING.has(status) ? `refused ${code}` : `failed with ${status} ${code}`
}

export const HANDLED = 'served, or refused'

/** Any answer but that of a bug. */
export function handled(answer: RawAnswer): string {
  const refusal = refusalOver(answer)
  return refusal?.startsWith('failed') ? refusal : HANDLED
}

function door(
  name: string,
  give: (house: NodeAccess, text: HostileText, key: string) => Promise<string>,
  expected: Expected,
): Door {
  return { name: `HTTP: ${name}`, expected, give: (house, text) => give(house, text, house.key()) }
}

const refusals = ['refused E_REQUEST_INVALID', 'refused E_PAYLOAD_INVALID']

/** Within the levels of a body that the server looks into. Whether its own levels count is not promised. */
const inBody: Expected = (text) => {
  if (!text.isJson || isTooDeep(text)) return refusals
  return text.depth > 200 ? ['as written', ...refusals] : 'as written'
}
const stringInBody: Expected = (text) => (isString(text) ? 'as written' : refusals)
/** Members of a request are optional: without a value it is no JSON. */

/** JSON around a text, whose bytes are not changed. */
function around(head: object, name: string, { bytes }: HostileText, tail = '}'): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head).slice(0, -1)},"${name}":`), bytes, Buffer.from(tail)])
}

function streamDoor(kind: 'start' | 'append' | 'end' | 'fail', expected: Expected): Door {
  return door(
    `POST /api/streams, the payload of ${kind}`,
    async (house, text, key) => {
      const head = { key, stream: `S${key.replaceAll('.', '-')}` }
      const post = (body: Uint8Array) => house.http('POST', '/api/streams', body, JSON_TYPE)
      if (kind !== 'start') await post(Buffer.from(JSON.stringify({ ...head, sequence: 0, kind: 'start' })))
      const sequence = kind === 'start' ? 0 : 1
      const refusal = refusalOver(await post(around({ ...head, sequence, kind }, 'payload', text)))
      if (refusal !== undefined) return refusal
      const { body } = await house.http('GET', `/api/streams?key=${key}`)
      const member = { start: 'meta', append: 'text', end: 'result', fail: 'result' }[kind]
      return memberOutcome(text, body, member)
    },
    expected,
  )
}

/** The body is a whole stream, read back as its type. */
function wholeDoor(type: Record<string, string>, expected: Expected): Door {
  return door(
    `POST /api/streams, a body of ${type['content-type']}`,
    async (house, text, key) => {
      const refusal = refusalOver(await house.http('POST', `/api/streams?key=${key}`, text.bytes, type))
      if (refusal !== undefined) return refusal
      const read = await house.http('GET', `/api/streams?key=${key}`, undefined, { accept: type['content-type'] ?? '' })
      return refusalOver(read) ?? comparison(text, read.body)
    },
    expected,
  )
}

const metaDoor = door(
  'POST /api/streams, meta in the query',
  async (house, text, key) => {
    const path = `/api/streams?key=${key}&meta=${encoded(text)}`
    const refusal = refusalOver(await house.http('POST', path, Buffer.from('x'), TEXT_TYPE))
    if (refusal !== undefined) return refusal
    const { body } = await house.http('GET', `/api/streams?key=${key}`)
    return memberOutcome(text, body, 'meta')
  },
  (text) => {
    if (text.bytes.length > 2_000) return [...refusals, 'refused E_HEADERS_TOO_LARGE', 'refused without a code']
    // Bytes that are no UTF-8 are replaced in a query.
    if (!text.isUtf8) return ['rewritten', 'other: "\ufffd"', 'other: "\ufffd\ufffd\ufffd"', ...refusals]
    return text.isJson && !isTooDeep(text) ? 'as written' : refusals
  },
)

/** Percent-encoded, byte by byte. */
export function encoded({ bytes }: HostileText, maxBytes = bytes.length): string {
  return [...bytes.subarray(0, maxBytes)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

const published = async (house: NodeAccess, text: HostileText, key: string, answer: RawAnswer) =>
  refusalOver(answer) ?? comparison(text, await house.arrived(key))

const publishDoors = [
  door(
    'POST /api/publish, the payload',
    async (house, text, key) =>
      await published(
        house,
        text,
        key,
        await house.http('POST', '/api/publish', around({ key }, 'payload', text), JSON_TYPE),
      ),
    inBody,
  ),
  door(
    'POST /api/publish, bytes',
    async (house, text, key) =>
      await published(house, text, key, await house.http('POST', `/api/publish?key=${key}`, text.bytes, BYTES_TYPE)),
    opaque,
  ),
]

const batchDoor = door(
  'POST /api/publish/batch, a payload',
  async (house, text, key) => {
    const body = Buffer.concat([Buffer.from('{"messages":['), around({ key }, 'payload', text), Buffer.from(']}')])
    return await published(house, text, key, await house.http('POST', '/api/publish/batch', body, JSON_TYPE))
  },
  // It has too many values for a batch.
  (text) => (text.bytes.length > 900_000 ? [...refusals, 'refused E_PAYLOAD_TOO_LARGE'] : inBody(text)),
)

/** The doors of each route that are for texts. A route without a row does not compile. */
const BY_ROUTE = {
  publish: publishDoors,
  publishBatch: [batchDoor],
  writeStream: [
    streamDoor('start', inBody),
    streamDoor('append', stringInBody),
    streamDoor('end', inBody),
    streamDoor('fail', inBody),
    metaDoor,
    wholeDoor(TEXT_TYPE, ({ isUtf8 }) => (isUtf8 ? 'as written' : 'refused E_PAYLOAD_INVALID')),
    wholeDoor(BYTES_TYPE, opaque),
  ],
  // What they answer is in the table of readers.
  readStream: [],
  history: [],
  presence: [],
  // They have no text but those of the two doors below.
  connections: [],
  user: [],
  patterns: [],
  disconnect: [],
  revoke: [],
  info: [],
  config: [],
  openapi: [],
} as const satisfies Record<RouteName, readonly Door[]>

/** Every route, with the text as its whole body, and in each parameter: never a 5xx. */
const OF_ALL_ROUTES = Object.entries(ROUTES).flatMap(([name, route]): Door[] => {
  const { method, path, parameters } = route as { method: string; path: string; parameters: object }
  const inBody = door(
    `${method} ${path} (${name}), the text as its body`,
    async (house, { bytes }) => handled(await house.http(method, path, bytes, JSON_TYPE)),
    () => HANDLED,
  )
  const inQuery = door(
    `${method} ${path} (${name}), the text in its query`,
    async (house, text) => {
      const outcomes: string[] = []
      for (const parameter of Object.keys(parameters)) {
        const others = parameter === 'key' ? '' : '&key=cell.0'
        outcomes.push(handled(await house.http(method, `${path}?${parameter}=${encoded(text, 900)}${others}`)))
      }
      return [...new Set(outcomes)].join(', then ') || HANDLED
    },
    () => HANDLED,
  )
  return Object.keys(parameters).length === 0 ? [inBody] : [inBody, inQuery]
})

export const HTTP_DOORS: readonly Door[] = [...Object.values(BY_ROUTE).flat(), ...OF_ALL_ROUTES]

import { type Door, type Expected, isTooDeep, type NodeAccess, opaque } from './door.js'
import { HANDLED, handled, refusalOver } from './http.js'
import { comparison, type HostileText, MAX_DEPTH } from './texts.js'

const TYPES = ['text/plain', 'application/json', 'application/octet-stream'] as const

type ContentType = (typeof TYPES)[number]

const refusals = ['refused E_REQUEST_INVALID', 'refused E_PAYLOAD_INVALID']

/** A stream of JSON is a list of values. Of a list that is sent, it has the items. */
const ofJson: Expected = (text) => {
  if (text.bytes.length === 0) return ['as written', ...refusals]
  if (!text.isJson || isTooDeep(text)) return refusals
  // Values are counted, and brackets around them may be.
  return text.bytes.length > 900_000 || text.depth === MAX_DEPTH ? ['as written', ...refusals] : 'as written'
}

function expectedOf(type: ContentType, method: string): Expected {
  if (type === 'application/json') return ofJson
  // An append has a body.
  return (text) => (method === 'POST' && text.bytes.length === 0 ? 'refused E_REQUEST_INVALID' : opaque(text))
}

/** What a stream is that has a text as its only content. */
function contentOf({ bytes, isJson }: HostileText, type: ContentType): Buffer {
  if (type !== 'application/json') return bytes
  if (bytes.length === 0) return Buffer.from('[]')
  const isList = isJson && bytes[0] === 0x5b
  return isList ? bytes : Buffer.concat([Buffer.from('['), bytes, Buffer.from(']')])
}

async function readBack(house: NodeAccess, path: string, text: HostileText, type: ContentType): Promise<string> {
  const read = await house.http('GET', path)
  return refusalOver(read) ?? comparison({ ...text, bytes: contentOf(text, type) }, read.body)
}

/** The ways in which a body comes to the addresses of streams. */
const METHODS = {
  PUT: async (house: NodeAccess, path: string, { bytes }: HostileText, headers: Record<string, string>) =>
    await house.http('PUT', path, bytes, headers),
  POST: async (house: NodeAccess, path: string, { bytes }: HostileText, headers: Record<string, string>) => {
    await house.http('PUT', path, undefined, headers)
    return await house.http('POST', path, bytes, headers)
  },
  'POST, which closes': async (
    house: NodeAccess,
    path: string,
    { bytes }: HostileText,
    headers: Record<string, string>,
  ) => {
    await house.http('PUT', path, undefined, headers)
    return await house.http('POST', path, bytes, { ...headers, 'stream-closed': 'true' })
  },
}

const BODIES = Object.entries(METHODS).flatMap(([method, send]) =>
  TYPES.map(
    (type): Door => ({
      name: `/streams: ${method} of ${type}`,
      expected: method === 'POST, which closes' ? closing(expectedOf(type, 'PUT')) : expectedOf(type, method),
      async give(house, text) {
        const path = `/streams/${house.key()}`
        const refusal = refusalOver(await send(house, path, text, { 'content-type': type }))
        return refusal ?? (await readBack(house, path, text, type))
      },
    }),
  ),
)

/** Without a body it only closes. */
function closing(expected: Expected): Expected {
  return (text) => (text.bytes.length === 0 ? 'as written' : expected(text))
}

/** Heads of requests that readers and writers choose. */
const HEADS = ['content-type', 'stream-ttl', 'stream-expires-at', 'stream-seq', 'producer-id', 'if-none-match']

const OF_HEADS = HEADS.map(
  (name): Door => ({
    name: `/streams: the header ${name}`,
    expected: () => HANDLED,
    async give(house, { bytes }) {
      const path = `/streams/${house.key()}`
      // What no client can send is left out; a node sees the rest.
      const value = bytes
        .toString('latin1')
        .replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '')
        .slice(0, 500)
      const outcomes = []
      for (const method of ['PUT', 'POST', 'GET', 'HEAD', 'DELETE']) {
        const body = method === 'PUT' || method === 'POST' ? Buffer.from('x') : undefined
        const answer = await house.http(method, path, body, { 'content-type': 'text/plain', [name]: value })
        outcomes.push(handled(answer))
      }
      return [...new Set(outcomes)].join(', then ')
    },
  }),
)

const OF_KEYS: Door = {
  name: '/streams: the key',
  expected: () => HANDLED,
  async give(house, { bytes }) {
    const key = [...bytes.subarray(0, 900)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
    return handled(await house.http('PUT', `/streams/${key}`, Buffer.from('x'), { 'content-type': 'text/plain' }))
  },
}

export const DURABLE_DOORS: readonly Door[] = [...BODIES, ...OF_HEADS, OF_KEYS]

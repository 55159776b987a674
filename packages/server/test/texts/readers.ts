import { SseClient } from 'webmq-conformance'
import { memberOutcome } from './door.js'
import { type LogPlace, shownOf } from './foreign-log.js'
import type { House } from './house.js'
import { refusalOver } from './http.js'
import { PATIENCE_MS, type Peer } from './peer.js'
import type { RawAnswer } from './raw-http.js'
import { comparison, type HostileText, MAX_DEPTH } from './texts.js'

/** What a reader is given: `as written`, `rewritten`, `refused CODE`, `isCut`, or `answered`, without the text. */
type Read = (house: House, peer: Peer, key: string, text: HostileText, place: LogPlace) => Promise<string>

interface Reader {
  readonly read: Read
  /** `messages`: it gives them as they are in the log. `members`: the last stream with its parts. `content`: its content alone. */
  readonly gives: 'messages' | 'members' | 'content'
  /** Its reader gets JavaScript values. */
  readonly isProcess?: true
}

/** Messages of a key, as a connection gets them with this request. */
const byRequest =
  (header: (id: string, key: string) => string): Read =>
  async (_house, peer, key, text) => {
    peer.frames = []
    const answer = await peer.ask((id) => header(id, key))
    const refusal = peer.refusalIn(answer)
    if (refusal !== undefined) return refusal
    const count = Number(/ replayed=(\d+)/.exec(answer?.header ?? '')?.[1] ?? 0)
    const messages = () => peer.frames.filter(({ verb, name }) => verb === 'message' && name === key)
    await peer.next(() => messages().length >= count)
    if (messages().length < count) return peer.closeCode === undefined ? 'nothing came' : `closed ${peer.closeCode}`
    return messages().some(({ body }) => body !== undefined && Buffer.compare(body, text.bytes) === 0)
      ? 'as written'
      : 'answered'
  }

/** A member of the answer, or what the answer says in its place. */
function inJson(answer: RawAnswer, text: HostileText, place: LogPlace): string {
  const refusal = refusalOver(answer)
  return refusal ?? inBody(answer.body, text, shownOf(place))
}

function inBody(body: Buffer, text: HostileText, member: string): string {
  if (member === 'no member') return body.includes('"isCut":true') ? 'isCut' : 'answered'
  const outcome = memberOutcome(text, body, member)
  if (outcome === 'as written' || outcome === 'rewritten') return outcome
  return body.includes('"isCut":true') ? 'isCut' : 'answered'
}

/** As JSON, or what is none as a text. */
function amongMessages(answer: RawAnswer, text: HostileText): string {
  const refusal = refusalOver(answer)
  if (refusal !== undefined) return refusal
  return isAmong(answer.body, text) ? 'as written' : 'answered'
}

function isAmong(body: Buffer, { bytes, isJson, isUtf8 }: HostileText): boolean {
  if (!isUtf8) return body.includes(`"base64":"${bytes.toString('base64')}"`)
  if (bytes.length === 0) return true
  return isJson
    ? body.includes(Buffer.concat([Buffer.from('"payload":'), bytes]))
    : body.includes(`"text":${JSON.stringify(bytes.toString())}`)
}

/** A stream that has ended is told in two events; the second one has its result. */
const isWhole = (body: string) =>
  /event: whole\n(?:.+\n)+\n/.test(body) &&
  (/"status":"(?:active|none)"/.test(body) || /event: end\n(?:.+\n)+\n/.test(body))

/** Reads an event stream until something has come. */
async function overSse(house: House, query: string, isThere: (body: string) => boolean): Promise<string> {
  const client = new SseClient(house.api.port, `/sse?${query}`, { headers: { authorization: `Bearer ${house.token}` } })
  try {
    const { statusCode = 0 } = await client.response()
    const deadline = Date.now() + PATIENCE_MS
    while (!isThere(client.body) && !client.isEnded && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 2))
    if (statusCode >= 500) throw new Error(`failed with ${statusCode} ${client.body}`)
    if (statusCode >= 400) throw new Error(`refused ${/"code":"(\w+)"/.exec(client.body)?.[1]}`)
    if (!isThere(client.body)) throw new Error('nothing came')
    return client.body
  } finally {
    client.destroy()
  }
}

/** Every way out of a node. */
const READERS = {
  'listen, last': { read: byRequest((id, key) => `listen ${id} ${key} last=10`), gives: 'messages' },
  'listen, rewind with meta': {
    read: byRequest((id, key) => `listen ${id} ${key} rewind=60000 meta`),
    gives: 'messages',
  },
  history: { read: byRequest((id, key) => `history ${id} ${key} last=10`), gives: 'messages' },
  read: {
    gives: 'members',
    async read(_house, peer, key, text, place) {
      const answer = await peer.ask((id) => `read ${id} ${key}`)
      return peer.refusalIn(answer) ?? inBody(answer?.body ?? Buffer.alloc(0), text, shownOf(place))
    },
  },
  'GET /api/history': {
    gives: 'messages',
    read: async (house, _peer, key, text) => amongMessages(await house.http('GET', `/api/history?key=${key}`), text),
  },
  'GET /api/streams': {
    gives: 'members',
    read: async (house, _peer, key, text, place) =>
      inJson(await house.http('GET', `/api/streams?key=${key}`), text, place),
  },
  'GET /api/streams, raw': {
    gives: 'content',
    read: async (house, _peer, key) =>
      refusalOver(
        await house.http('GET', `/api/streams?key=${key}`, undefined, { accept: 'application/octet-stream' }),
      ) ?? 'answered',
  },
  'GET /streams': {
    gives: 'content',
    read: async (house, _peer, key) => refusalOver(await house.http('GET', `/streams/${key}`)) ?? 'answered',
  },
  'HEAD /streams': {
    gives: 'content',
    read: async (house, _peer, key) => {
      const { status } = await house.http('HEAD', `/streams/${key}`)
      return status < 500 ? 'answered' : `failed with ${status}`
    },
  },
  '/sse?stream=': {
    gives: 'members',
    async read(house, _peer, key, text, place) {
      const body = await overSse(house, `stream=${key}`, isWhole)
      return inBody(Buffer.from(body), text, shownOf(place))
    },
  },
  '/sse, last': {
    gives: 'messages',
    async read(house, _peer, key, text) {
      const body = await overSse(house, `listen=${key}&last=10`, (body) => body.includes('event: live'))
      return isAmong(Buffer.from(body), text) ? 'as written' : 'answered'
    },
  },
  'server.readStream': {
    gives: 'members',
    isProcess: true,
    async read(house, _peer, key, text, place) {
      const { meta, result, isCut } = await house.api.server.readStream(key)
      const shown = shownOf(place)
      if (shown === 'no member') return isCut ? 'isCut' : 'answered'
      const value = shown === 'meta' ? meta : result
      if (value === undefined) return isCut ? 'isCut' : 'answered'
      // What is deep cannot be compared, and of what is no JSON a part may be given.
      if (text.depth > MAX_DEPTH || !text.isJson) return 'answered'
      return comparison(text, JSON.stringify(value))
    },
  },
  'server.history': {
    gives: 'messages',
    isProcess: true,
    async read(house, _peer, key, text) {
      const { messages } = await house.api.server.history(key)
      const isSame = ({ payload }: { readonly payload: unknown }) =>
        /written$/.test(comparison(text, payload === undefined ? '' : JSON.stringify(payload)))
      return text.depth > MAX_DEPTH || messages.some(isSame) ? 'as written' : 'answered'
    },
  },
} as const satisfies Record<string, Reader>

type ReaderName = keyof typeof READERS
const READER_NAMES = Object.keys(READERS) as ReaderName[]

/** Reads a key by one door. An error says which outcome it is. */
async function readBy(
  name: ReaderName,
  house: House,
  peer: Peer,
  key: string,
  text: HostileText,
  place: LogPlace,
): Promise<string> {
  const reader: Reader = READERS[name]
  try {
    return await reader.read(house, peer, key, text, place)
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message: string }
    return code?.startsWith('E_') ? `refused ${code}` : message
  }
}

const HARMLESS = ['as written', 'rewritten', 'isCut', 'answered']
/** What a reader may be told of a stream, or a text, that the server cannot give. */
const REFUSALS = ['E_PAYLOAD_INVALID', 'E_STREAM_LIMIT', 'E_STREAM_NOT_FOUND', 'E_STREAM_GONE'].map(
  (code) => `refused ${code}`,
)

/** What a door may give of a text at a place of the log. Never `E_INTERNAL`, `E_NODE_BEHIND`, a 5xx, or nothing. */
function mayBe(name: ReaderName, text: HostileText, place: LogPlace): readonly string[] {
  const { gives, isProcess } = READERS[name] as Reader
  if (gives === 'content') return ['answered', ...REFUSALS]
  if (isProcess) {
    // A function gets a value, or an error that says that it is none.
    return [...HARMLESS, ...REFUSALS]
  }
  if (gives === 'messages') return place === 'message' ? ['as written'] : HARMLESS
  // What a writer of today may say is given byte for byte. The rest is given, left out, or said to be missing.
  const isFit = text.isJson && text.depth <= MAX_DEPTH && shownOf(place) !== 'no member'
  return isFit ? ['as written'] : [...HARMLESS, ...REFUSALS]
}

/** The cells of a key: what each reader got, and what it was to get. The last one says whether the node is unharmed. */
export async function readRow(house: House, key: string, text: HostileText, place: LogPlace) {
  const cells: Record<string, string> = {}
  const wanted: Record<string, string> = {}
  let peer = await house.peer()
  for (const name of READER_NAMES) {
    if (peer.closeCode !== undefined) peer = await house.peer()
    const cell = `${text.name} as ${place}, ${name}`
    const outcome = await readBy(name, house, peer, key, text, place)
    const allowed = mayBe(name, text, place)
    cells[cell] = outcome
    wanted[cell] = allowed.includes(outcome) ? outcome : allowed.join(' or ')
  }
  peer.close()
  const cell = `${text.name} as ${place}, the node`
  cells[cell] = `unharmed${await house.harm()}`
  wanted[cell] = 'unharmed'
  return { cells, wanted }
}

import type { Peer } from './peer.js'
import type { RawAnswer } from './raw-http.js'
import { comparison, type HostileText, MAX_DEPTH } from './texts.js'

/** What becomes of a text, or what may: `as written`, `refused CODE`, `closed 1007`. */
export type Expected = (text: HostileText) => string | readonly string[]

/** A node, as somebody outside of it sees it. */
export interface NodeAccess {
  /** Listens to all keys. */
  readonly reader: Peer
  /** A key that nobody has used. */
  key(prefix?: string): string
  /** A connection for one text: it may end it. */
  peer(): Promise<Peer>
  /** What the reader got at a key; `undefined` when nothing comes. */
  arrived(key: string): Promise<Buffer | undefined>
  /** A request with an API key, whose path, head and body are sent as they are. */
  http(method: string, path: string, body?: Uint8Array, headers?: Record<string, string>): Promise<RawAnswer>
  /** The status of a GET whose answer may never end, with the token of a client. */
  status(path: string, headers: Record<string, string>): Promise<number>
}

/** A way into a node. */
export interface Door<Access extends NodeAccess = NodeAccess> {
  readonly name: string
  /** Brings a text through it. @returns What became of it. */
  readonly give: (node: Access, text: HostileText) => Promise<string>
  readonly expected: Expected
  /** Error lines are right: the application has answered with the text itself. */
  readonly mayTell?: boolean
}

const REFUSED = 'refused E_PAYLOAD_INVALID'

export const isTooDeep = ({ depth }: HostileText) => depth > MAX_DEPTH
/** Deeper than a call stack can write, or infinite: JavaScript itself refuses. */
export const isUnspeakable = ({ depth, name }: HostileText) => depth > 10_000 || name === '1e400'

/** The server does not look. */
export const opaque: Expected = () => 'as written'

/** The server looks, and keeps what it gets. */
export const lookedInto: Expected = (text) =>
  text.bytes.length === 0 ? 'as written' : !text.isJson || isTooDeep(text) ? REFUSED : 'as written'

/** RFC 6455 §8.1: a text frame that is no UTF-8 ends its connection. */
export const inTextFrame =
  (expected: Expected): Expected =>
  (text) =>
    text.isUtf8 ? expected(text) : 'closed 1007'

/** A member of a JSON object, by its bytes. Nothing is a member that is absent. */
export function memberOutcome(text: HostileText, json: Buffer | undefined, name: string): string {
  if (json === undefined) return 'nothing came'
  const head = Buffer.from(`"${name}":`)
  if (text.bytes.length === 0) return json.includes(head) ? 'other: it is there' : 'as written'
  if (json.includes(Buffer.concat([head, text.bytes]))) return 'as written'
  return comparison(text, writtenAgain(json, name))
}

/** As JavaScript writes it; `undefined` without it. */
function writtenAgain(json: Buffer, name: string): string | undefined {
  let found: string | undefined
  try {
    JSON.parse(json.toString(), (key, value: unknown) => {
      if (key === name) found ??= JSON.stringify(value)
      return value
    })
  } catch {
    // It is no JSON, or deeper than a walk can go.
    return undefined
  }
  return found
}

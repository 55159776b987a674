import { ownText } from 'webmq-client/protocol'
import { listParts } from '../../../kernel/base/list-parts.js'
import type { UpgradeId, UpgradeKind, UpgradeRequest } from '../../../kernel/ports/transport.js'

/** How the lines of headers begin that are looked up for every connection. */
const LINE_STARTS = new Map(
  [
    'authorization',
    'cookie',
    'host',
    'origin',
    'sec-fetch-mode',
    'sec-fetch-site',
    'sec-websocket-protocol',
    'x-forwarded-for',
  ].map((name) => [name, `\n${name}:`]),
)

/** An upgrade request as text. Headers are parsed only when asked for. */
export class TextUpgradeRequest implements UpgradeRequest {
  readonly id: UpgradeId
  readonly kind: UpgradeKind
  readonly remotePort: number
  readonly remoteAddress: string
  readonly path: string
  readonly query: string
  /** One line `name:value` per header, with a line end before the first one. */
  readonly #headerLines: string

  /** @param text Lines: address, path, query, and the headers. */
  constructor(id: UpgradeId, kind: UpgradeKind, remotePort: number, text: string) {
    const addressEnd = text.indexOf('\n')
    const pathEnd = text.indexOf('\n', addressEnd + 1)
    const queryEnd = text.indexOf('\n', pathEnd + 1)
    this.id = id
    this.kind = kind
    this.remotePort = remotePort
    this.remoteAddress = ownText(text.slice(0, addressEnd))
    this.path = text.slice(addressEnd + 1, pathEnd)
    this.query = text.slice(pathEnd + 1, queryEnd)
    this.#headerLines = text.slice(queryEnd)
  }

  get headers(): Readonly<Record<string, string>> {
    const headers: Record<string, string> = Object.create(null)
    for (const line of this.#headerLines.slice(1, -1).split('\n')) {
      const name = line.slice(0, line.indexOf(':'))
      headers[name] ??= this.header(name) ?? ''
    }
    return headers
  }

  get subprotocols(): readonly string[] {
    return listParts(this.header('sec-websocket-protocol') ?? '')
  }

  header(name: string): string | undefined {
    const start = LINE_STARTS.get(name) ?? `\n${name}:`
    const lines = this.#headerLines
    let joined: string | undefined
    for (let at = lines.indexOf(start); at >= 0; at = lines.indexOf(start, at + 1)) {
      const value = lines.slice(at + start.length, lines.indexOf('\n', at + 1))
      // RFC 6265 §5.4 and RFC 9110 §5.3.
      joined = joined === undefined ? value : `${joined}${name === 'cookie' ? '; ' : ', '}${value}`
    }
    return joined
  }
}

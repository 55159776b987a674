/** A status as `+OK`. */
export class Status {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** An error as `-ERR …`. */
export class ReplyError extends Error {}

/** What subscriptions bring: in RESP3 apart from answers. */
export class Push {
  readonly items: readonly Reply[]

  constructor(...items: readonly Reply[]) {
    this.items = items
  }
}

/** Names and values by turns: a map in RESP3. */
export class Pairs {
  readonly items: readonly Reply[]

  constructor(...items: readonly Reply[]) {
    this.items = items
  }
}

/** A reply; texts are of bytes, one character each. */
export type Reply = string | number | null | Status | ReplyError | Push | Pairs | readonly Reply[]

/** The version of RESP. */
export type Protocol = 2 | 3

export const OK = new Status('OK')

export function encodeReply(reply: Reply, protocol: Protocol): string {
  if (reply === null) return protocol === 2 ? '$-1\r\n' : '_\r\n'
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`
  if (typeof reply === 'number') return `:${reply}\r\n`
  if (reply instanceof Status) return `+${reply.text}\r\n`
  if (reply instanceof ReplyError) return `-${reply.message.replace(/[\r\n]+/g, ' ')}\r\n`
  const items = reply instanceof Push || reply instanceof Pairs ? reply.items : reply
  const isPairs = protocol === 3 && reply instanceof Pairs
  const sign = isPairs ? '%' : protocol === 3 && reply instanceof Push ? '>' : '*'
  const body = items.map((each) => encodeReply(each, protocol)).join('')
  return `${sign}${isPairs ? items.length / 2 : items.length}\r\n${body}`
}

/** Reads commands, which are arrays of bulk strings, from bytes in any pieces. */
export class RequestReader {
  #text = ''

  /** @throws {ReplyError} for what is no command: the connection ends. */
  read(bytes: Uint8Array): string[][] {
    this.#text += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
    const requests: string[][] = []
    let start = 0
    for (;;) {
      let at = start
      const take = (sign: string): number | undefined => {
        const end = this.#text.indexOf('\r\n', at)
        if (end < 0) return undefined
        const line = this.#text.slice(at, end)
        if (line[0] !== sign || !/^\d+$/.test(line.slice(1)))
          throw new ReplyError(`ERR Protocol error: expected '${sign}', got '${line[0] ?? ''}'`)
        at = end + 2
        return Number(line.slice(1))
      }
      const count = take('*')
      if (count === undefined) break
      const request: string[] = []
      while (request.length < count) {
        const length = take('$')
        if (length === undefined || at + length + 2 > this.#text.length) break
        request.push(this.#text.slice(at, at + length))
        at += length + 2
      }
      if (request.length < count) break
      requests.push(request)
      start = at
    }
    this.#text = this.#text.slice(start)
    return requests
  }
}

import { type IncomingMessage, request } from 'node:http'

/** An answer over HTTP, in bytes. */
export interface RawAnswer {
  readonly status: number
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface RawRequest {
  readonly port: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
  /** Absent: until it is answered. */
  readonly signal?: AbortSignal | undefined
}

/** Sends a request whose path, head and body are as they are. Its connection is for it alone. */
export function askRaw(asked: RawRequest): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = send(asked, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks), headers: response.headers }),
      )
    })
    sent.on('error', reject)
    sent.end(asked.body)
  })
}

/** The status of an answer that may never end. */
export function statusOf(asked: RawRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = send(asked, (response) => {
      // Its end is ours.
      response.on('error', () => undefined)
      resolve(response.statusCode ?? 0)
      sent.destroy()
    })
    sent.on('error', reject)
    sent.end(asked.body)
  })
}

function send({ body, headers, ...target }: RawRequest, answered: (response: IncomingMessage) => void) {
  const length = body === undefined ? {} : { 'content-length': body.length }
  return request({ host: '127.0.0.1', agent: false, ...target, headers: { ...length, ...headers } }, answered)
}

import { lookup } from 'node:dns/promises'
import type { IncomingMessage } from 'node:http'
import { decodeServerMessage } from 'webmq-client/protocol'
import { WebSocket } from 'ws'
import { RunError } from '../exit-codes.js'
import { type Deployment, tlsOptionsOf } from './deployment.js'
import { codeOfClose, faultText, refusalText, statusText } from './refusal.js'

const TIMEOUT_MS = 10_000
const MAX_BODY_BYTES = 4_096

export interface Reached {
  readonly address: string
}

/**
 * Plays each action of the load once: connects, listens, publishes, and receives the message.
 * @throws {RunError} when the server refuses: its code, and what to do.
 */
export async function probe(deployment: Deployment, signal: AbortSignal): Promise<Reached> {
  const { url, keyPrefix } = deployment
  // `[::1]` is a host in a URL only.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const { address } = await lookup(host).catch((error: NodeJS.ErrnoException) => {
    throw refused(url, faultText(`${error.code} ${host}`, keyPrefix))
  })
  await new Promise<void>((resolve, reject) => {
    const socket = new WebSocket(url, ['webmq.v1'], {
      ...tlsOptionsOf(deployment),
      handshakeTimeout: TIMEOUT_MS,
      perMessageDeflate: false,
      ...(deployment.token === undefined ? {} : { headers: { authorization: `Bearer ${deployment.token}` } }),
    })
    const end = (text?: string) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      socket.removeAllListeners()
      // A socket that is terminated while it connects reports that.
      socket.on('error', () => undefined)
      socket.terminate()
      if (text === undefined) resolve()
      else reject(refused(url, text))
    }
    const abort = () => end('interrupted')
    const timer = setTimeout(() => end(`no answer within ${TIMEOUT_MS / 1_000} s; is it a WebMQ server?`), TIMEOUT_MS)
    signal.addEventListener('abort', abort, { once: true })
    socket.on('unexpected-response', (_, response) => {
      refusalOf(response, keyPrefix).then(end, (error: Error) => end(error.message))
    })
    socket.on('error', (error: NodeJS.ErrnoException) =>
      end(faultText([error.code, error.message].filter(Boolean).join(' '), keyPrefix)),
    )
    socket.on('close', (closeCode) => {
      const code = codeOfClose(closeCode)
      end(code === undefined ? `the server closed with ${closeCode}` : refusalText(code, keyPrefix))
    })
    const dialogue = new Dialogue(keyPrefix, (text) => socket.send(text), end)
    socket.on('message', (data) => {
      try {
        dialogue.hear(String(data))
      } catch {
        end('its messages are not of webmq.v1: is it a WebMQ server?')
      }
    })
  })
  return { address }
}

/** The messages of one connection: `welcome`, `listen`, `publish`, the message itself. */
class Dialogue {
  readonly #key: string
  readonly #keyPrefix: string
  readonly #say: (text: string) => void
  readonly #end: (refusal?: string) => void
  #isAcknowledged = false
  #hasArrived = false

  constructor(keyPrefix: string, say: (text: string) => void, end: (refusal?: string) => void) {
    this.#key = `${keyPrefix}.probe`
    this.#keyPrefix = keyPrefix
    this.#say = say
    this.#end = end
  }

  hear(text: string): void {
    const message = decodeServerMessage(text)
    switch (message.verb) {
      case 'welcome':
        if (message.auth === 'required') this.#end(refusalText('E_UNAUTHENTICATED', this.#keyPrefix))
        else this.#say(`listen 1 ${this.#key}`)
        return
      case 'ok':
        if (message.id === '1') this.#say(`publish 2 ${this.#key}\n"probe"`)
        else this.#isAcknowledged = true
        break
      case 'message':
        this.#hasArrived = true
        break
      case 'error':
        this.#end(refusalText(message.code, this.#keyPrefix))
        return
      default:
    }
    if (this.#isAcknowledged && this.#hasArrived) this.#end()
  }
}

async function refusalOf(response: IncomingMessage, keyPrefix: string): Promise<string> {
  let body = ''
  for await (const chunk of response.setEncoding('utf8')) {
    body += chunk
    if (body.length > MAX_BODY_BYTES) break
  }
  const [, code] = /"code"\s*:\s*"(E_[A-Z_]+)"/.exec(body) ?? []
  const { statusCode = 0 } = response
  return code === undefined ? statusText(statusCode) : `HTTP ${statusCode}, ${refusalText(code, keyPrefix)}`
}

function refused(url: URL, text: string): RunError {
  return new RunError(`${url.origin}${url.pathname}: ${text}`)
}

import { createHmac, randomUUID } from 'node:crypto'
import type { Agent, IncomingMessage } from 'node:http'
import { limitedBytes } from '../../../kernel/base/limited-bytes.js'

/** An answer with more is no answer. 1,000 granted patterns of 255 bytes take 255 kB. */
const MAX_ANSWER_BYTES = 262_144
/** Requests that wait for a connection, per connection. */
const MAX_WAITING_SHARE = 16
/** Characters of the requests that wait for an answer. */
const MAX_WAITING_CHARS = 64 * 1024 ** 2
/** A connection that is not used for this time is closed, before most servers and balancers do. */
const IDLE_MS = 4_000

/**
 * How a webhook failed: it cannot be reached; it is silent; it answers that it cannot, with 429 or 5xx; its answer makes
 * no sense, or refuses the request. A client may have caused all but the first.
 */
export type WebhookFault = 'unreachable' | 'silent' | 'unwell' | 'nonsense'

export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  readonly fault: WebhookFault

  constructor(message: string, fault: WebhookFault, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.fault = fault
  }
}

/** Posts JSON to a webhook over connections that stay open. Follows no redirects. */
export class WebhookClient {
  /** Signs the next requests; absent: they are not signed. */
  signer: Signer | undefined
  readonly #concurrency: number
  readonly #timeoutMs: number
  readonly #url: URL
  readonly #http: Pick<typeof import('node:http'), 'Agent' | 'request'>
  readonly #agent: Agent
  #count = 0
  #charCount = 0

  /**
   * @param concurrency Requests at the same time, each over a connection of its own.
   * @param timeoutMs From the call to the end of the answer.
   */
  constructor(url: string, concurrency: number, timeoutMs: number) {
    this.#concurrency = concurrency
    this.#timeoutMs = timeoutMs
    this.#url = new URL(url)
    // Not imported: few servers have a webhook, and TLS takes memory.
    this.#http = process.getBuiltinModule(this.#url.protocol === 'https:' ? 'node:https' : 'node:http')
    this.#agent = new this.#http.Agent({
      keepAlive: true,
      maxSockets: concurrency,
      timeout: IDLE_MS,
      scheduling: 'lifo',
    })
  }

  /**
   * Resolves to the text of the answer; empty for a 204.
   * @param headers Names in lower case.
   * @throws {WebhookError}
   */
  async post(body: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    if (this.#count >= this.#concurrency * (1 + MAX_WAITING_SHARE)) {
      throw new WebhookError(`${this.#count} questions wait for an answer already`, 'silent')
    }
    if (this.#charCount > 0 && this.#charCount + body.length > MAX_WAITING_CHARS) {
      throw new WebhookError(`questions of ${this.#charCount} characters wait for an answer already`, 'silent')
    }
    this.#count++
    this.#charCount += body.length
    const endMs = performance.now() + this.#timeoutMs
    try {
      return await this.#attempt(body, headers, endMs)
    } catch (error) {
      // A server may close an idle connection at the moment in which it is used again: it has not read the request.
      if (!(error instanceof ReusedSocketError)) throw error
      return await this.#attempt(body, headers, endMs)
    } finally {
      this.#count--
      this.#charCount -= body.length
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #attempt(body: string, headers: Readonly<Record<string, string>>, endMs: number): Promise<string> {
    const timeoutMs = this.#timeoutMs
    return new Promise((resolve, reject) => {
      const request = this.#http.request(this.#url, {
        method: 'POST',
        agent: this.#agent,
        headers: this.#headersOf(body, headers),
      })
      const timer = setTimeout(
        () => request.destroy(new WebhookError(`it did not answer within ${timeoutMs} ms`, 'silent')),
        Math.max(0, endMs - performance.now()),
      )
      let isAnswered = false
      let isSent = false
      const fail = (error: Error) => {
        clearTimeout(timer)
        const isUnread = !isAnswered && request.reusedSocket && 'code' in error && error.code === 'ECONNRESET'
        if (isUnread) reject(new ReusedSocketError())
        else if (error instanceof WebhookError) reject(error)
        else reject(new WebhookError(error.message, isAnswered || isSent ? 'silent' : 'unreachable', error))
      }
      request.on('error', fail)
      request.on('response', (response) => {
        isAnswered = true
        read(response).then(
          (text) => {
            clearTimeout(timer)
            resolve(text)
          },
          (error: Error) => {
            request.destroy()
            fail(error)
          },
        )
      })
      request.on('finish', () => {
        isSent = true
      })
      request.end(body)
    })
  }

  #headersOf(body: string, headers: Readonly<Record<string, string>>): Record<string, string | number> {
    const id = randomUUID()
    const timestampS = Math.floor(Date.now() / 1_000)
    const { signer } = this
    return {
      ...headers,
      accept: 'application/json',
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'webhook-id': id,
      'webhook-timestamp': timestampS,
      ...(signer === undefined ? undefined : { 'webhook-signature': signer.sign(id, timestampS, body) }),
    }
  }
}

/** The connection was closed while the request was on its way. */
class ReusedSocketError extends Error {}

async function read(response: IncomingMessage): Promise<string> {
  const { statusCode = 0 } = response
  if (statusCode !== 200 && statusCode !== 204) {
    response.resume()
    throw new WebhookError(`it answered ${statusCode}`, statusCode >= 500 || statusCode === 429 ? 'unwell' : 'nonsense')
  }
  const tooLarge = (text: string) => new WebhookError(`its answer has ${text}`, 'nonsense')
  const bytes = await limitedBytes(response, MAX_ANSWER_BYTES, tooLarge)
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw new WebhookError('its answer is not UTF-8', 'nonsense', cause)
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Secrets of Standard Webhooks begin with this, and are base64. */
const PREFIX = 'whsec_'

/** Signs the requests to a webhook, as https://www.standardwebhooks.com describes it. */
export class Signer {
  readonly #key: Buffer

  /** @param secret `whsec_` and base64, or any text, whose UTF-8 bytes are then the key. */
  constructor(secret: string) {
    this.#key = secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
  }

  /** The value of `webhook-signature`. @param timestampS Unix time in seconds, as in `webhook-timestamp`. */
  sign(id: string, timestampS: number, body: string): string {
    const signed = createHmac('sha256', this.#key).update(`${id}.${timestampS}.${body}`)
    return `v1,${signed.digest('base64')}`
  }
}

import { createHmac } from 'node:crypto'

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

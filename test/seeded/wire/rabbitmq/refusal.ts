const NAMES: Readonly<Record<number, string>> = {
  320: 'CONNECTION_FORCED',
  403: 'ACCESS_REFUSED',
  404: 'NOT_FOUND',
  405: 'RESOURCE_LOCKED',
  406: 'PRECONDITION_FAILED',
  503: 'COMMAND_INVALID',
  504: 'CHANNEL_ERROR',
  530: 'NOT_ALLOWED',
  540: 'NOT_IMPLEMENTED',
}

/** Closes the channel, or with a hard error (AMQP 0-9-1, 1.2) the connection. */
export class Refusal extends Error {
  readonly code: number

  constructor(code: number, text: string) {
    super(`${NAMES[code] ?? 'INTERNAL_ERROR'} - ${text}`)
    this.code = code
  }

  get isOfConnection(): boolean {
    return this.code === 320 || this.code >= 500
  }
}

export interface FleetMessage {
  /** Of its key, from 0. */
  readonly number: number
  readonly createdUs: number
}

/** The payload of a message, padded to a size. */
export function payloadOf({ number, createdUs }: FleetMessage, bytes: number): object {
  const bare = { n: number, t: createdUs, pad: '' }
  return { ...bare, pad: 'x'.repeat(Math.max(0, bytes - JSON.stringify(bare).length)) }
}

/** `undefined`: it is not one of {@link payloadOf}. */
export function readPayload(payload: unknown): FleetMessage | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined
  const { n, t } = payload as { readonly n?: unknown; readonly t?: unknown }
  return Number.isSafeInteger(n) && typeof t === 'number' ? { number: n as number, createdUs: t } : undefined
}

import type { ServerInfo } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import type { NatsJetStream } from './library.js'

/** The numbers of JetStream's reasons that are looked at. */
export const JETSTREAM_REASONS = {
  insufficientResources: 10_023,
  notEnabledForAccount: 10_039,
  noStorage: 10_047,
  invalidConfig: 10_052,
  nameInUse: 10_058,
  streamNotFound: 10_059,
  subjectsOverlap: 10_065,
  tooManyReplicas: 10_074,
  notEnabled: 10_076,
} as const

/** Trying again is of no use: somebody has to change something at the server. */
const FINAL_REASONS: ReadonlySet<number | undefined> = new Set([
  JETSTREAM_REASONS.insufficientResources,
  JETSTREAM_REASONS.notEnabledForAccount,
  JETSTREAM_REASONS.noStorage,
  JETSTREAM_REASONS.invalidConfig,
  JETSTREAM_REASONS.subjectsOverlap,
  JETSTREAM_REASONS.tooManyReplicas,
  JETSTREAM_REASONS.notEnabled,
])

/** Where a request was made, for the errors. */
export interface JetStreamPlace {
  readonly jetStream: NatsJetStream
  /** Of the server at the other end. */
  readonly info: ServerInfo | undefined
  /** What the subjects of the node's messages begin with. */
  readonly prefix: string
}

/** The number of the reason, when it is JetStream that refuses. */
export function reasonOf(cause: unknown, { JetStreamApiError }: NatsJetStream): number | undefined {
  for (const error of causesOf(cause)) if (error instanceof JetStreamApiError) return error.code
  return undefined
}

/** What the failure of a request to JetStream means for a node: `E_BROKER_REFUSED` when the next try would fail, too. */
export function explained(cause: unknown, { jetStream, info, prefix }: JetStreamPlace): Error {
  if (cause instanceof WebMQError) return cause
  const errors = causesOf(cause)
  const text = errors.at(-1)?.message ?? String(cause)
  if (errors.some(({ name }) => name === 'PermissionViolationError'))
    return refused(`${text}; ${neededBy(prefix)}`, cause)
  if (errors.some(({ name }) => name === 'NoResponders')) {
    // In a cluster others may have it, and a leader may be missing for a while.
    if (info?.jetstream === true) return new Error('JetStream does not answer yet', { cause })
    const remedy = 'put `jetstream {}` into the configuration of nats-server, or start it with -js'
    return refused(`history needs JetStream, and it is not enabled: ${remedy}`, cause)
  }
  const isFinal = FINAL_REASONS.has(reasonOf(cause, jetStream))
  return isFinal ? refused(`JetStream: ${text}`, cause) : new Error(`JetStream: ${text}`, { cause })
}

/** What the server's user must be allowed for a log. */
export function neededBy(prefix: string): string {
  return (
    `for history its user must be allowed to publish to $JS.API.>, $JS.FC.> and ${prefix}>, ` +
    `and to subscribe to _INBOX.> and ${prefix}>`
  )
}

function refused(detail: string, cause: unknown): WebMQError {
  return new WebMQError('E_BROKER_REFUSED', { detail, cause })
}

/** An error, its cause, and so on. */
function causesOf(cause: unknown): readonly Error[] {
  const errors: Error[] = []
  for (let error = cause; error instanceof Error && !errors.includes(error); error = error.cause) errors.push(error)
  return errors
}

import type { JetStreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import type { NatsJetStream } from './connect.js'
import type { NatsSubjects } from './subjects.js'

/** JetStream, over one connection. */
export interface JetStreamClient {
  readonly jetStream: NatsJetStream
  readonly manager: JetStreamManager
  readonly connection: NatsConnection
  readonly subjects: NatsSubjects
}

/** Error numbers of JetStream that are handled. */
export const JETSTREAM_REASONS = {
  consumerNotFound: 10_014,
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

/** Another attempt would fail too: somebody must change the server's configuration. */
const FINAL_REASONS: ReadonlySet<number | undefined> = new Set([
  JETSTREAM_REASONS.insufficientResources,
  JETSTREAM_REASONS.notEnabledForAccount,
  JETSTREAM_REASONS.noStorage,
  JETSTREAM_REASONS.invalidConfig,
  JETSTREAM_REASONS.subjectsOverlap,
  JETSTREAM_REASONS.tooManyReplicas,
  JETSTREAM_REASONS.notEnabled,
])

export function reasonOf(cause: unknown, { JetStreamApiError }: NatsJetStream): number | undefined {
  for (const error of causesOf(cause)) if (error instanceof JetStreamApiError) return error.code
  return undefined
}

/** The error for a failed request to JetStream: `E_BROKER_REFUSED` if another attempt would fail too. */
export function explained(cause: unknown, { jetStream, connection, subjects }: JetStreamClient): Error {
  if (cause instanceof WebMQError) return cause
  const errors = causesOf(cause)
  const text = errors.at(-1)?.message ?? String(cause)
  if (errors.some(({ name }) => name === 'PermissionViolationError'))
    return refused(`${text}; ${neededBy(subjects.prefix)}`, cause)
  if (errors.some(({ name }) => name === 'NoResponders')) {
    // In a cluster other servers may have it, and a leader may be missing for a while.
    if (connection.info?.jetstream === true) return new Error('JetStream does not answer yet', { cause })
    const remedy = 'put `jetstream {}` into the configuration of nats-server, or start it with -js'
    return refused(`history needs JetStream, and it is not enabled: ${remedy}`, cause)
  }
  const isFinal = FINAL_REASONS.has(reasonOf(cause, jetStream))
  return isFinal ? refused(`JetStream: ${text}`, cause) : new Error(`JetStream: ${text}`, { cause })
}

function neededBy(prefix: string): string {
  return (
    `for history its user must be allowed to publish to $JS.API.>, $JS.FC.> and ${prefix}>, ` +
    `and to subscribe to _INBOX.> and ${prefix}>`
  )
}

function refused(detail: string, cause: unknown): WebMQError {
  return new WebMQError('E_BROKER_REFUSED', { detail, cause })
}

function causesOf(cause: unknown): readonly Error[] {
  const errors: Error[] = []
  for (let error = cause; error instanceof Error && !errors.includes(error); error = error.cause) errors.push(error)
  return errors
}

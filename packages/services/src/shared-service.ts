import { request } from 'node:http'
import type { Service, ServiceKind } from './service.js'
import { COORDINATOR_VARIABLE, type CoordinatorAnswer, type CoordinatorQuestion } from './service-coordinator.js'
import { ServiceError } from './service-error.js'

/** A service shared by the tests of a run: use names of your own, and do not change its settings. */
export type SharedService = Pick<Service, 'kind' | 'url' | 'source'>

/** A RabbitMQ shared by the tests of a run. */
export interface SharedRabbitmq extends SharedService {
  /** As `RabbitmqService.ctl`. */
  ctl(...args: readonly string[]): Promise<string>
}

/** The first caller waits for the start, and on a new machine for the installation. */
const ANSWER_TIMEOUT_MS = 600_000

/**
 * The one RabbitMQ, Redis, NATS (with JetStream) or PostgreSQL of a test run: started when the first test asks, ended with the run.
 * @throws {ServiceError} when it is not available, or the run has no coordinator.
 */
export async function sharedService(kind: 'rabbitmq'): Promise<SharedRabbitmq>
export async function sharedService(kind: ServiceKind): Promise<SharedService>
export async function sharedService(kind: ServiceKind): Promise<SharedService | SharedRabbitmq> {
  const { url, source } = await askCoordinator({ kind })
  if (kind !== 'rabbitmq') return { kind, url, source }
  return { kind, url, source, ctl: async (...ctl) => (await askCoordinator({ kind, ctl })).output ?? '' }
}

async function askCoordinator(question: CoordinatorQuestion): Promise<Exclude<CoordinatorAnswer, { error: string }>> {
  const socketPath = process.env[COORDINATOR_VARIABLE]
  if (socketPath === undefined) {
    throw new ServiceError('sharedService needs startServiceCoordinator in the globalSetup of vitest')
  }
  const answer = JSON.parse(await post(socketPath, JSON.stringify(question))) as CoordinatorAnswer
  if ('error' in answer) throw new ServiceError(answer.error)
  return answer
}

function post(socketPath: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
    const sent = request({ socketPath, method: 'POST', signal }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
      response.on('error', reject)
    })
    sent.on('error', (cause) => reject(new ServiceError('the coordinator of the test run does not answer', cause)))
    sent.end(body)
  })
}

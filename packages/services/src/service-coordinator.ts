import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { RabbitmqService } from './rabbitmq.js'
import type { Service, ServiceKind } from './service.js'

/** The environment variable through which tests find the coordinator: the path of its socket. */
export const COORDINATOR_VARIABLE = 'WEBMQ_TEST_COORDINATOR'

/** A test's request to the coordinator: a service, or a run of `rabbitmqctl`. */
export interface CoordinatorQuestion {
  readonly kind: ServiceKind
  readonly ctl?: readonly string[]
}

/** The answer: the service and the output of `rabbitmqctl`, or an error. */
export type CoordinatorAnswer =
  | (Pick<Service, 'url' | 'source'> & { readonly output?: string })
  | { readonly error: string }

/** Starts each service on the first demand of any process of a test run. */
export interface ServiceCoordinator {
  /** Ends the services that it started. */
  stop(): Promise<void>
}

const MAX_QUESTION_BYTES = 64 * 1024

/**
 * For the `globalSetup` of vitest. Starts a service when the first test calls `sharedService`, and none twice. Its
 * socket is in a folder that only this user can enter, because `rabbitmqctl` can run anything.
 */
export async function startServiceCoordinator(): Promise<ServiceCoordinator> {
  const services = new Map<ServiceKind, Promise<Service>>()
  const folder = await mkdtemp(path.join(tmpdir(), 'webmq-shared-'))
  const socket = path.join(folder, 'socket')
  const server = createServer((request, response) => {
    answer(services, request).then(
      (value) => reply(response, value),
      (error: unknown) => reply(response, { error: error instanceof Error ? error.message : String(error) }),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(socket, resolve)
  })
  process.env[COORDINATOR_VARIABLE] = socket
  return {
    async stop() {
      delete process.env[COORDINATOR_VARIABLE]
      server.close()
      server.closeAllConnections()
      // A service that did not start needs no stop; its caller got the error.
      await Promise.all(
        [...services.values()].map((service) =>
          service.then(
            (started) => started.stop(),
            () => undefined,
          ),
        ),
      )
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function answer(
  services: Map<ServiceKind, Promise<Service>>,
  request: IncomingMessage,
): Promise<CoordinatorAnswer> {
  const { kind, ctl } = await readQuestion(request)
  const service = await demand(services, kind)
  const { url, source } = service
  if (ctl === undefined) return { url, source }
  return { url, source, output: await (service as RabbitmqService).ctl(...ctl) }
}

function demand(services: Map<ServiceKind, Promise<Service>>, kind: ServiceKind): Promise<Service> {
  const known = services.get(kind)
  if (known !== undefined) return known
  // Loaded on demand, so a run without services does not pay for them.
  const starting = import('./start-service.js').then(({ startService }) => startService(kind))
  services.set(kind, starting)
  starting.catch(() => services.delete(kind))
  return starting
}

async function readQuestion(request: IncomingMessage): Promise<CoordinatorQuestion> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk
    if (text.length > MAX_QUESTION_BYTES) throw new Error(`a question has at most ${MAX_QUESTION_BYTES} bytes`)
  }
  return JSON.parse(text) as CoordinatorQuestion
}

function reply(response: ServerResponse, value: CoordinatorAnswer): void {
  response.end(JSON.stringify(value))
}

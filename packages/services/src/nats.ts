import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type ContainerSpec, startContainer } from './container/service.js'
import { freePort } from './free-port.js'
import { GivenService } from './given-service.js'
import { obtainProgram } from './obtain-program.js'
import { pingNats } from './ping.js'
import { dataFolder, ProgramService, startProgram } from './program-service.js'
import type { Service, ServiceOptions } from './service.js'

/** Settings of a NATS server. */
export interface NatsOptions extends ServiceOptions {
  /** More arguments of `nats-server`. */
  readonly args?: readonly string[]
  /** Text of a configuration file. */
  readonly config?: string
  /** JetStream, with its store in the data folder, which survives `kill` and `restart`. Default false. */
  readonly hasJetStream?: boolean
}

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 5_000

/**
 * A NATS server that accepts connections.
 * @throws {ServiceError} when it is not available, or does not start.
 */
export async function startNats(options: NatsOptions = {}): Promise<Service> {
  const { args = [], config = '', hasJetStream = false, dataParent, version } = options
  const { isPrivate = args.length > 0 || config !== '' || hasJetStream || version !== undefined } = options
  const origin = await obtainProgram('nats', { isPrivate, version })
  if (origin.source === 'url') return new GivenService('nats', origin.url)
  if (origin.source === 'container')
    return await startContainer(containerSpec(origin.image, config, hasJetStream, args))
  return await startProgram(async () => {
    const port = await freePort()
    const folder = await dataFolder('nats', dataParent)
    const configFile = path.join(folder, 'nats.conf')
    await writeFile(configFile, config)
    const jetStreamArgs = hasJetStream ? ['--jetstream', '--store_dir', folder] : []
    return new ProgramService({
      kind: 'nats',
      url: `nats://127.0.0.1:${port}`,
      source: origin.source,
      folder,
      stores: ['jetstream'],
      logFiles: /\/streams\/.*\.blk$/,
      process: {
        title: 'nats-server',
        command: origin.file,
        args: ['--addr', '127.0.0.1', '--port', String(port), '--config', configFile, ...jetStreamArgs, ...args],
      },
      startTimeoutMs: START_TIMEOUT_MS,
      stopTimeoutMs: STOP_TIMEOUT_MS,
      ping: () => pingNats(port),
    })
  })
}

function containerSpec(image: string, config: string, hasJetStream: boolean, args: readonly string[]): ContainerSpec {
  const configFile = '/etc/nats/webmq.conf'
  return {
    kind: 'nats',
    image,
    port: 4222,
    command: ['--config', configFile, ...(hasJetStream ? ['--jetstream', '--store_dir', '/data'] : []), ...args],
    files: { [configFile]: config },
    urlOf: (port) => `nats://127.0.0.1:${port}`,
    ping: pingNats,
  }
}

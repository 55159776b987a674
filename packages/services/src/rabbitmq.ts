import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { startContainer } from './container/service.js'
import { findProgram } from './find-program.js'
import { freePort } from './free-port.js'
import { GivenService } from './given-service.js'
import { obtainProgram } from './obtain-program.js'
import { ask, pingRabbitmq } from './ping.js'
import { dataFolder, ProgramService, type ServiceProgram, startProgram } from './program-service.js'
import type { Service, ServiceOptions } from './service.js'
import { ServiceError } from './service-error.js'
import { SupervisedProcess } from './supervised-process.js'

/** Settings of a RabbitMQ. */
export interface RabbitmqOptions extends ServiceOptions {
  /** More lines of `rabbitmq.conf`. */
  readonly config?: string
}

/** A RabbitMQ, user guest, password guest, vhost `/`. */
export interface RabbitmqService extends Service {
  /**
   * Runs `rabbitmqctl`, for queries that AMQP lacks: `ctl('list_queues', 'name')`. Takes about a second.
   * @returns its output, rows without headings
   * @throws {ServiceError} with its output when it fails, or when the service was given by URL.
   */
  ctl(...args: readonly string[]): Promise<string>
}

/** On an idle machine it takes 4 to 6 s. */
const START_TIMEOUT_MS = 90_000
const STOP_TIMEOUT_MS = 20_000
const CTL_TIMEOUT_MS = 60_000
const EPMD_START_TIMEOUT_MS = 30_000
const EPMD_POLL_INTERVAL_MS = 10
const MAX_LOG_CHARS = 4_000

/**
 * A RabbitMQ that accepts connections.
 * @throws {ServiceError} when it is not available, or does not start.
 */
export async function startRabbitmq(options: RabbitmqOptions = {}): Promise<RabbitmqService> {
  const { config = '', dataParent, version } = options
  const { isPrivate = config !== '' || version !== undefined } = options
  const origin = await obtainProgram('rabbitmq', { isPrivate, version })
  if (origin.source === 'url') return new GivenRabbitmq('rabbitmq', origin.url)
  if (origin.source === 'container') return await startRabbitmqContainer(origin.image, config)
  return await startProgram(async () => {
    const folder = await dataFolder('rabbitmq', dataParent)
    const port = await freePort()
    // Debian has Erlang beside it: /usr/lib/rabbitmq/bin, /usr/lib/erlang/bin.
    const erlang = path.resolve(path.dirname(origin.file), '../../erlang/bin')
    const env = await prepareFolder(folder, port, config, erlang)
    const epmd = await startEpmd(env, erlang)
    const log = () => readFile(path.join(folder, 'log', LOG_FILE), 'utf8').catch(() => '')
    return new RabbitmqProgram(path.dirname(origin.file), env, {
      kind: 'rabbitmq',
      url: `amqp://guest:guest@127.0.0.1:${port}`,
      source: origin.source,
      folder,
      stores: ['mnesia'],
      logFiles: /\.segment$/,
      process: { title: 'rabbitmq-server', command: origin.file, args: [], env },
      companions: [epmd],
      startTimeoutMs: START_TIMEOUT_MS,
      stopTimeoutMs: STOP_TIMEOUT_MS,
      ping: () => pingRabbitmq(port),
      log: async () => (await log()).slice(-MAX_LOG_CHARS),
    })
  })
}

class RabbitmqProgram extends ProgramService implements RabbitmqService {
  readonly #programFolder: string
  readonly #env: Readonly<Record<string, string>>

  constructor(programFolder: string, env: Readonly<Record<string, string>>, program: ServiceProgram) {
    super(program)
    this.#programFolder = programFolder
    this.#env = env
  }

  async ctl(...args: readonly string[]): Promise<string> {
    const options = { env: this.#env, timeout: CTL_TIMEOUT_MS, cwd: '/', maxBuffer: 64 * 1024 * 1024 }
    try {
      const file = path.join(this.#programFolder, 'rabbitmqctl')
      return (await promisify(execFile)(file, ['--silent', ...args], options)).stdout
    } catch (cause) {
      const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string }
      throw new ServiceError(`rabbitmqctl ${args.join(' ')}: ${`${stdout}${stderr}`.trim() || String(cause)}`, cause)
    }
  }
}

class GivenRabbitmq extends GivenService implements RabbitmqService {
  async ctl(): Promise<string> {
    throw new ServiceError('the RabbitMQ was given by URL and rabbitmqctl cannot reach it: ask for { isPrivate: true }')
  }
}

async function startRabbitmqContainer(image: string, config: string): Promise<RabbitmqService> {
  const service = await startContainer({
    kind: 'rabbitmq',
    image,
    port: 5672,
    files: { '/etc/rabbitmq/conf.d/90-webmq.conf': `${config}\n` },
    urlOf: (port) => `amqp://guest:guest@127.0.0.1:${port}`,
    ping: pingRabbitmq,
  })
  return Object.assign(service, {
    ctl: (...args: readonly string[]) => service.run('rabbitmqctl', '--silent', ...args),
  })
}

const LOG_FILE = 'rabbitmq.log'

/** The whole environment of the broker and of `rabbitmqctl`, without the machine's settings for its own broker. */
async function prepareFolder(
  folder: string,
  port: number,
  config: string,
  erlang: string,
): Promise<Readonly<Record<string, string>>> {
  const inFolder = (name: string) => path.join(folder, name)
  await mkdir(inFolder('log'))
  // The cookie that admits rabbitmqctl; Erlang refuses one that others may read.
  await writeFile(inFolder('.erlang.cookie'), randomBytes(20).toString('hex'), { mode: 0o400 })
  await writeFile(inFolder('enabled_plugins'), '[].\n')
  // Without any such file RabbitMQ reads no schemas, which saves half a second of its start.
  if (config !== '') await writeFile(inFolder('rabbitmq.conf'), `${config}\n`)
  return {
    PATH: [erlang, process.env.PATH ?? ''].join(path.delimiter),
    LANG: 'C.UTF-8',
    HOME: folder,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_EPMD_PORT: String(await freePort()),
    ERL_CRASH_DUMP_BYTES: '0',
    // Makes the start script become the broker instead of waiting for it, as it does for systemd.
    RUNNING_UNDER_SYSTEMD: 'true',
    RABBITMQ_NODENAME: `webmq-${randomBytes(6).toString('hex')}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(await freePort()),
    // RabbitMQ itself has turned off busy waiting, which burns CPU in an idle broker.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    RABBITMQ_CTL_ERL_ARGS: '-dist_listen false',
    RABBITMQ_MNESIA_BASE: inFolder('mnesia'),
    RABBITMQ_LOG_BASE: inFolder('log'),
    RABBITMQ_LOGS: path.join(inFolder('log'), LOG_FILE),
    RABBITMQ_ENABLED_PLUGINS_FILE: inFolder('enabled_plugins'),
    RABBITMQ_CONFIG_FILE: inFolder('rabbitmq.conf'),
    RABBITMQ_CONFIG_FILES: inFolder('conf.d'),
    RABBITMQ_ADVANCED_CONFIG_FILE: inFolder('advanced.config'),
    RABBITMQ_CONF_ENV_FILE: inFolder('rabbitmq-env.conf'),
    RABBITMQ_GENERATED_CONFIG_DIR: inFolder('config'),
    RABBITMQ_PID_FILE: inFolder('pid'),
  }
}

/** Erlang's name server. Otherwise the broker starts one that outlives it. */
async function startEpmd(env: Readonly<Record<string, string>>, erlang: string): Promise<SupervisedProcess> {
  const command = findProgram('epmd', [erlang, '/usr/lib/erlang/bin'])
  if (command === undefined) throw new ServiceError("rabbitmq needs Erlang's epmd on PATH")
  const epmd = new SupervisedProcess({ title: 'epmd', command, args: [], env, folder: env.HOME ?? '' })
  const deadline = Date.now() + EPMD_START_TIMEOUT_MS
  const port = Number(env.ERL_EPMD_PORT)
  // EPMD_NAMES_REQ: a request of one byte, 110; the answer begins with the port in four bytes.
  while (!(await ask(port, '\0\x01n', (received) => received.length >= 4).then(Boolean, () => false))) {
    if (!epmd.isRunning || Date.now() > deadline) {
      await epmd.kill()
      throw new ServiceError(`epmd did not start: ${epmd.output}`)
    }
    await new Promise((resolve) => setTimeout(resolve, EPMD_POLL_INTERVAL_MS))
  }
  return epmd
}

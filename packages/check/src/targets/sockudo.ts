import { execFileSync, type StdioOptions } from 'node:child_process'
import { createHash, createHmac } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { canInstallPackages, installPackage } from 'webmq-services'
import { listenByLines } from './lines.js'
import { type NodeOptions, post, type System } from './system.js'

const VERSION = '5.2.0'
const CLIENT_VERSION = '2.2.0'
const LISTENER = fileURLToPath(new URL('../../targets/sockudo-listener.mjs', import.meta.url))
const PYTHON_LISTENER = fileURLToPath(new URL('../../targets/sockudo_listener.py', import.meta.url))
const STDIO: StdioOptions = ['ignore', 'inherit', 'inherit']
const FOLDER = path.resolve('.cache', `sockudo-${VERSION}`)
const MAX_BUILD_MS = 50 * 60_000
const HISTORY_SIZE = 100_000
const APP = { id: 'app', key: 'app-key', secret: 'app-secret' }

/** Where the server is, once it has been obtained. */
const SOCKUDO = path.join(FOLDER, 'bin/sockudo')
const PYTHON_PACKAGES = path.join(FOLDER, 'python')

/** With its client for JavaScript. */
export async function obtainSockudo(): Promise<System> {
  const client = process.env.WEBMQ_SOCKUDO_CLIENT
  if (client === undefined) {
    throw new Error('@sockudo/client was not on npm: WEBMQ_SOCKUDO_CLIENT names its built file dist/node/sockudo.js')
  }
  await obtainServer()
  return sockudo(`@sockudo/client ${CLIENT_VERSION}`, process.execPath, [LISTENER, client])
}

/** With its client for Python. */
export async function obtainSockudoPython(): Promise<System> {
  await obtainServer()
  if (!existsSync(PYTHON_PACKAGES)) {
    const args = ['-m', 'pip', 'install', '--quiet', '--target', PYTHON_PACKAGES, `sockudo-python==${CLIENT_VERSION}`]
    execFileSync('python3', args, { timeout: MAX_BUILD_MS, stdio: STDIO })
  }
  return sockudo(`sockudo-python ${CLIENT_VERSION}`, 'python3', [PYTHON_LISTENER])
}

/** Builds it from its crate with Cargo, once. */
async function obtainServer(): Promise<void> {
  if (existsSync(SOCKUDO)) return
  // A crate for its metrics needs protoc.
  if (canInstallPackages()) await installPackage('protobuf-compiler')
  // Optimized as a whole it takes far longer to build, and is no more right.
  const env = { ...process.env, CARGO_PROFILE_RELEASE_LTO: 'off', CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16' }
  const features = ['--no-default-features', '--features', 'local,v2,redis,postgres']
  const args = ['install', 'sockudo', '--version', VERSION, '--locked', ...features, '--root', FOLDER]
  execFileSync('cargo', args, { env, timeout: MAX_BUILD_MS, stdio: STDIO })
}

function configOf({ port, redisUrl = '', postgresUrl = '', namespace }: Omit<NodeOptions, 'folder'>): object {
  const redis = new URL(redisUrl)
  const postgres = new URL(postgresUrl)
  const recovery = { enabled: true, buffer_ttl_seconds: 600, max_buffer_size: HISTORY_SIZE }
  const history = {
    ...{ enabled: true, rewind_enabled: true, retention_window_seconds: 600 },
    // A rewind brings no more than a page.
    ...{ max_page_size: HISTORY_SIZE, max_messages_per_channel: HISTORY_SIZE },
  }
  return {
    host: '127.0.0.1',
    port,
    shutdown_grace_period: 1,
    adapter: { driver: 'redis', fallback_to_local: false, redis: { prefix: `${namespace}:adapter:` } },
    cache: { driver: 'redis', redis: { prefix: `${namespace}:cache:` } },
    queue: { driver: 'memory' },
    rate_limiter: { enabled: false },
    metrics: { enabled: false },
    database: {
      redis: { host: redis.hostname, port: Number(redis.port) },
      postgres: {
        ...{ host: postgres.hostname, port: Number(postgres.port), username: postgres.username },
        ...{ database: postgres.pathname.slice(1), password: '' },
      },
    },
    app_manager: {
      driver: 'memory',
      array: { apps: [{ ...APP, enabled: true, policy: { connection_recovery: recovery, history } }] },
    },
    connection_recovery: recovery,
    // It ends a connection when more of a replay waits.
    websocket: { max_messages: HISTORY_SIZE },
    history: {
      ...history,
      backend: 'postgres',
      postgres: { table_prefix: namespace.replaceAll(/\W/g, '_') },
    },
  }
}

/** The query by which a back end proves that a POST is its own, as Pusher's HTTP API has it. */
export function signed(
  { key, secret }: { readonly key: string; readonly secret: string },
  pathname: string,
  body: unknown,
  atSeconds: number,
): string {
  const md5 = createHash('md5').update(JSON.stringify(body)).digest('hex')
  const query = `auth_key=${key}&auth_timestamp=${atSeconds}&auth_version=1.0&body_md5=${md5}`
  const signature = createHmac('sha256', secret).update(`POST\n${pathname}\n${query}`).digest('hex')
  return `${query}&auth_signature=${signature}`
}

const sockudo = (client: string, listener: string, args: readonly string[]): System => ({
  title: `Sockudo ${VERSION}, ${client}`,
  settings:
    `adapter redis, connection_recovery with max_buffer_size ${HISTORY_SIZE}, history in PostgreSQL, ` +
    `websocket.max_messages ${HISTORY_SIZE}; the client: protocol V2, connection recovery, a rewind of 60 s`,
  needsPostgres: true,
  nodeProgram: (options) => {
    const file = path.join(options.folder, `sockudo-${options.port}.json`)
    writeFileSync(file, JSON.stringify(configOf(options)))
    return { command: SOCKUDO, args: ['--config', file], healthPath: '/up' }
  },
  publish: (origin, { channel, number }) => {
    const pathname = `/apps/${APP.id}/events`
    const body = { name: 'message', channel, data: JSON.stringify({ number }) }
    return post(`${origin}${pathname}?${signed(APP, pathname, body, Math.floor(Date.now() / 1_000))}`, body, () => true)
  },
  listen: (port, channels, heard) => {
    const env = { ...process.env, PYTHONPATH: PYTHON_PACKAGES, PYTHONDONTWRITEBYTECODE: '1' }
    return listenByLines({ command: listener, args: [...args, String(port), APP.key, ...channels], env }, heard)
  },
})

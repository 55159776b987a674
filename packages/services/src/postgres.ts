import { execFile } from 'node:child_process'
import { chown, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Certificate } from './certificate.js'
import { startContainer } from './container/service.js'
import { findProgram } from './find-program.js'
import { freePort } from './free-port.js'
import { GivenService } from './given-service.js'
import { obtainProgram } from './obtain-program.js'
import { pingPostgres } from './ping.js'
import { dataFolder, ProgramService, startProgram } from './program-service.js'
import type { Service, ServiceOptions } from './service.js'
import { ServiceError } from './service-error.js'

/** Settings of a PostgreSQL. */
export interface PostgresOptions extends ServiceOptions {
  /** Settings of `postgresql.conf`: `{ max_connections: '20' }`. */
  readonly settings?: Readonly<Record<string, string>>
  /** It then takes connections with TLS, and others. Not in a container. */
  readonly tls?: Certificate
}

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 20_000
const INIT_TIMEOUT_MS = 120_000
const DATA = 'data'
/** Of those that have no user for it. */
const NOBODY = { uid: 65_534, gid: 65_534 }

/**
 * A PostgreSQL that accepts connections of the user `postgres` without a password.
 * @throws {ServiceError} when it is not available, or does not start.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<Service> {
  const { settings = {}, tls, dataParent, version } = options
  const { isPrivate = tls !== undefined || version !== undefined || Object.keys(settings).length > 0 } = options
  const origin = await obtainProgram('postgres', { isPrivate, version })
  if (origin.source === 'url') return new GivenService('postgres', origin.url)
  const settingArgs = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  if (origin.source === 'container') {
    return await startContainer({
      kind: 'postgres',
      image: origin.image,
      port: 5432,
      environment: { POSTGRES_HOST_AUTH_METHOD: 'trust' },
      command: ['postgres', ...settingArgs],
      urlOf,
      ping: pingPostgres,
    })
  }
  const user = await userOfServer()
  return await startProgram(async () => {
    const port = await freePort()
    const folder = await dataFolder('postgres', dataParent)
    const data = path.join(folder, DATA)
    if (user !== undefined) await chown(folder, user.uid, user.gid)
    await initialise(path.join(path.dirname(origin.file), 'initdb'), data, user)
    const tlsArgs = tls === undefined ? [] : await writeCertificate(data, tls, user)
    const place = ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
    return new ProgramService({
      kind: 'postgres',
      url: urlOf(port),
      source: origin.source,
      folder,
      stores: [DATA],
      logFiles: /\/pg_wal\/[0-9A-F]{24}$/,
      process: {
        title: 'postgres',
        ...asUser(origin.file, [...place, ...tlsArgs, ...settingArgs], user),
        // SIGTERM would wait until the last client has gone.
        endSignal: 'SIGINT',
      },
      startTimeoutMs: START_TIMEOUT_MS,
      stopTimeoutMs: STOP_TIMEOUT_MS,
      ping: () => pingPostgres(port),
    })
  })
}

function urlOf(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`
}

type User = typeof NOBODY | undefined

/** PostgreSQL refuses to run as root: the user for it then, `undefined` for this one. */
async function userOfServer(): Promise<User> {
  if (process.getuid?.() !== 0) return undefined
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(await readFile('/etc/passwd', 'utf8')) ?? []
  return uid === undefined ? NOBODY : { uid: Number(uid), gid: Number(gid) }
}

function asUser(file: string, args: readonly string[], user: User): { command: string; args: readonly string[] } {
  if (user === undefined) return { command: file, args }
  const setpriv = findProgram('setpriv')
  if (setpriv === undefined) throw new ServiceError('as root, postgres needs setpriv (util-linux) on PATH')
  return { command: setpriv, args: [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', file, ...args] }
}

async function initialise(initdb: string, data: string, user: User): Promise<void> {
  const args = ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync']
  try {
    await promisify(execFile)(initdb, args, { ...user, cwd: '/', timeout: INIT_TIMEOUT_MS })
  } catch (cause) {
    throw new ServiceError(`initdb: ${String(cause).slice(-2_000)}`, cause)
  }
}

async function writeCertificate(data: string, { cert, key }: Certificate, user: User): Promise<readonly string[]> {
  for (const [name, text] of Object.entries({ 'server.crt': cert, 'server.key': key })) {
    const file = path.join(data, name)
    await writeFile(file, text, { mode: 0o600 })
    if (user !== undefined) await chown(file, user.uid, user.gid)
  }
  return ['-c', 'ssl=on']
}

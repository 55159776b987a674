import path from 'node:path'
import { userCacheFolder } from '../cache-folder.js'
import { canRunContainers } from '../container/runtime.js'
import { findProgram } from '../find-program.js'
import { findGo, goInstall, newestOf } from '../go-program.js'
import type { ServiceKind } from '../service.js'
import { ServiceError } from '../service-error.js'
import type { ServiceOrigin } from '../service-origin.js'
import { BROKER_VERSIONS, type BrokerVersion, findVersion, fits } from './broker-versions.js'
import { unpackDebianPackage } from './debian-suite.js'
import { versionOf } from './program-version.js'

const NATS_MODULE = 'github.com/nats-io/nats-server/v2'

/**
 * A release of a broker: the program of this system when it is that one, else a package of Debian, unpacked, or a program
 * that Go builds, else a container. Containers are last because they cannot be measured, wiped or damaged.
 * @param folders Of the system's program.
 * @throws {ServiceError} with what to do when it cannot be had.
 */
export async function obtainVersion(
  kind: ServiceKind,
  asked: string,
  folders: readonly string[],
): Promise<Exclude<ServiceOrigin, { source: 'url' }>> {
  const ofSystem = await findOfSystem(kind, asked, folders)
  if (ofSystem !== undefined) return { source: 'binary', file: ofSystem }
  const row = findVersion(kind, asked)
  if (row === undefined) {
    const known = BROKER_VERSIONS.filter((each) => each.kind === kind).map(({ version }) => version)
    throw new ServiceError(`there is no version ${asked} of ${kind}: ask for ${[...known, 'system'].join(', ')}`)
  }
  try {
    const file = await fetchProgram(row)
    const version = await versionOf(kind, file)
    if (row.version !== 'newest' && !fits(version ?? '', row.version)) {
      throw new ServiceError(`${file} is of version ${version}: remove it`)
    }
    return { source: 'package', file }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    if (await canRunContainers()) return { source: 'container', image: row.image }
    const reason = error.message
    throw new ServiceError(
      `${kind} ${row.version} is not to be had here, and no container runtime answers: ${reason}`,
      error,
    )
  }
}

async function findOfSystem(kind: ServiceKind, asked: string, folders: readonly string[]): Promise<string | undefined> {
  const programs = new Set(BROKER_VERSIONS.filter((row) => row.kind === kind).map(({ program }) => program))
  for (const program of programs) {
    const file = findProgram(program, folders)
    if (file !== undefined && fits((await versionOf(kind, file)) ?? '', asked)) return file
  }
  return undefined
}

async function fetchProgram({ version, program, from }: BrokerVersion): Promise<string> {
  if ('suite' in from) {
    const root = await unpackDebianPackage(from.suite, from.debianPackage)
    const folders = ['usr/lib/rabbitmq/bin', 'usr/bin', 'usr/sbin'].map((folder) => path.join(root, folder))
    const file = findProgram(program, folders)
    if (file?.startsWith(root) !== true) throw new ServiceError(`${root} has no ${program}: remove this folder`)
    return file
  }
  const go = findGo()
  if (go === undefined) throw new ServiceError(`nats ${version} is built by Go: install it from https://go.dev/dl`)
  // A minor release is built once; the newest one is what it is today.
  const number = version === 'newest' ? await newestOf(go, NATS_MODULE, from.goQuery) : from.goQuery
  return await goInstall(go, NATS_MODULE, number, path.join(userCacheFolder(), `nats-server-${number}`))
}

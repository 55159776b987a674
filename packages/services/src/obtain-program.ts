import { existsSync, readdirSync } from 'node:fs'
import { canRunContainers } from './container/runtime.js'
import { canInstallPackages, installPackage } from './debian-package.js'
import { findProgram } from './find-program.js'
import type { ServiceKind, ServiceOptions } from './service.js'
import { ServiceError } from './service-error.js'
import type { ServiceOrigin } from './service-origin.js'
import { obtainVersion } from './versions/obtain-version.js'

interface KindSpec {
  readonly program: string
  /** Folders of the program when it is not on PATH, or PATH has a wrapper instead. */
  readonly folders: readonly string[]
  readonly debianPackage: string
  /** What is started in a container, unless a version is asked for: one of those that are tested. */
  readonly image: string
  /** The environment variable with the URL of a running one. */
  readonly variable: string
}

const KINDS: Readonly<Record<ServiceKind, KindSpec>> = {
  rabbitmq: {
    program: 'rabbitmq-server',
    // Debian's /usr/sbin/rabbitmq-server is a wrapper that becomes the user rabbitmq; this is the real one.
    folders: ['/usr/lib/rabbitmq/bin', '/usr/local/sbin', '/opt/homebrew/sbin'],
    debianPackage: 'rabbitmq-server',
    image: 'rabbitmq:4.0',
    variable: 'WEBMQ_TEST_RABBITMQ_URL',
  },
  redis: {
    program: 'redis-server',
    folders: [],
    debianPackage: 'redis-server',
    image: 'redis:8.0-alpine',
    variable: 'WEBMQ_TEST_REDIS_URL',
  },
  nats: {
    program: 'nats-server',
    folders: ['/usr/sbin'],
    debianPackage: 'nats-server',
    image: 'nats:2.10-alpine',
    variable: 'WEBMQ_TEST_NATS_URL',
  },
  postgres: {
    program: 'postgres',
    get folders() {
      return postgresFolders()
    },
    debianPackage: 'postgresql',
    image: 'postgres:16-alpine',
    variable: 'WEBMQ_TEST_POSTGRES_URL',
  },
}

/** Debian keeps each version in a folder of its own. The newest first. */
function postgresFolders(): readonly string[] {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).map(Number) : []
  return versions.sort((one, other) => other - one).map((version) => `${root}/${version}/bin`)
}

/** One result per process, so that concurrent calls do not install twice. */
const found = new Map<string, Promise<ServiceOrigin>>()

/** The version of those that tests need no other than that of the system. */
const OF_SYSTEM = 'system'

/**
 * Finds a service: the URL of the environment, a program of this machine, a container, or the Debian package, in this
 * order. When a version is asked for, by the options or by `WEBMQ_TEST_<KIND>_VERSION`, see {@link obtainVersion}.
 * @throws {ServiceError} with instructions when there is none.
 */
export async function obtainProgram(
  kind: ServiceKind,
  { isPrivate = false, version = versionAsked(kind) }: Pick<ServiceOptions, 'isPrivate' | 'version'>,
): Promise<ServiceOrigin> {
  const url = isPrivate ? undefined : urlGiven(kind)
  if (url !== undefined) return { source: 'url', url }
  const name = `${kind} ${version}`
  const known = found.get(name)
  if (known !== undefined) return await known
  const origin = version === OF_SYSTEM ? search(kind) : obtainVersion(kind, version, KINDS[kind].folders)
  found.set(name, origin)
  origin.catch(() => found.delete(name))
  return await origin
}

/** The URL of a running service, from the environment. */
export function urlGiven(kind: ServiceKind): string | undefined {
  return process.env[KINDS[kind].variable] || undefined
}

/** The version to play on, from the environment: `WEBMQ_TEST_RABBITMQ_VERSION=4.0`. */
function versionAsked(kind: ServiceKind): string {
  return process.env[`WEBMQ_TEST_${kind.toUpperCase()}_VERSION`] || OF_SYSTEM
}

async function search(kind: ServiceKind): Promise<ServiceOrigin> {
  const { program, folders, debianPackage, image, variable } = KINDS[kind]
  const file = findProgram(program, folders)
  if (file !== undefined) return { source: 'binary', file }
  if (await canRunContainers()) return { source: 'container', image }
  if (canInstallPackages()) {
    await installPackage(debianPackage)
    const installed = findProgram(program, KINDS[kind].folders)
    if (installed !== undefined) return { source: 'package', file: installed }
  }
  throw new ServiceError(
    `${kind} is not to be had here: install ${program}, start Docker or Podman, or give the URL of a running one in ${variable}`,
  )
}

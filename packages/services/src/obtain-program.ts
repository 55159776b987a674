import { existsSync, readdirSync } from 'node:fs'
import { canRunContainers } from './container/runtime.js'
import { canInstallPackages, installPackage } from './debian-package.js'
import { findProgram } from './find-program.js'
import type { ServiceKind, ServiceOptions } from './service.js'
import { ServiceError } from './service-error.js'

/** The sources of a service. */
export type ServiceOrigin =
  | { readonly source: 'url'; readonly url: string }
  | { readonly source: 'binary' | 'package'; readonly file: string }
  | { readonly source: 'container' }

interface KindSpec {
  readonly program: string
  /** Folders of the program when it is not on PATH, or PATH has a wrapper instead. */
  readonly folders: readonly string[]
  readonly debianPackage: string
  /** The environment variable with the URL of a running one. */
  readonly variable: string
}

const KINDS: Readonly<Record<ServiceKind, KindSpec>> = {
  rabbitmq: {
    program: 'rabbitmq-server',
    // Debian's /usr/sbin/rabbitmq-server is a wrapper that becomes the user rabbitmq; this is the real one.
    folders: ['/usr/lib/rabbitmq/bin', '/usr/local/sbin', '/opt/homebrew/sbin'],
    debianPackage: 'rabbitmq-server',
    variable: 'WEBMQ_TEST_RABBITMQ_URL',
  },
  redis: { program: 'redis-server', folders: [], debianPackage: 'redis-server', variable: 'WEBMQ_TEST_REDIS_URL' },
  nats: {
    program: 'nats-server',
    folders: ['/usr/sbin'],
    debianPackage: 'nats-server',
    variable: 'WEBMQ_TEST_NATS_URL',
  },
  postgres: {
    program: 'postgres',
    get folders() {
      return postgresFolders()
    },
    debianPackage: 'postgresql',
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
const found = new Map<ServiceKind, Promise<ServiceOrigin>>()

/**
 * Finds a service: the URL of the environment, a program of this machine, a container, or the Debian package, in this
 * order.
 * @throws {ServiceError} with instructions when there is none.
 */
export async function obtainProgram(kind: ServiceKind, { isPrivate = false }: ServiceOptions): Promise<ServiceOrigin> {
  const url = isPrivate ? undefined : urlGiven(kind)
  if (url !== undefined) return { source: 'url', url }
  const known = found.get(kind)
  if (known !== undefined) return await known
  const origin = search(kind)
  found.set(kind, origin)
  origin.catch(() => found.delete(kind))
  return await origin
}

/** The URL of a running service, from the environment. */
export function urlGiven(kind: ServiceKind): string | undefined {
  return process.env[KINDS[kind].variable] || undefined
}

async function search(kind: ServiceKind): Promise<ServiceOrigin> {
  const { program, folders, debianPackage, variable } = KINDS[kind]
  const file = findProgram(program, folders)
  if (file !== undefined) return { source: 'binary', file }
  if (await canRunContainers()) return { source: 'container' }
  if (canInstallPackages()) {
    await installPackage(debianPackage)
    const installed = findProgram(program, KINDS[kind].folders)
    if (installed !== undefined) return { source: 'package', file: installed }
  }
  throw new ServiceError(
    `${kind} is not to be had here: install ${program}, start Docker or Podman, or give the URL of a running one in ${variable}`,
  )
}

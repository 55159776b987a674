import { createRequire } from 'node:module'
import { WebMQError } from 'webmq-client/protocol'
import { MANIFEST } from './manifest.js'
import { reasonOf } from './reason.js'

/**
 * Whether an import failed because its package is not installed; otherwise the package is there, and broken.
 * @param name Of the package.
 */
export function isNotInstalled(error: unknown, name: string): boolean {
  if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return true
  try {
    createRequire(import.meta.url).resolve(name)
    return false
  } catch (cause) {
    // The loader of Yarn throws in another thread, from where no code of an error comes. `require` asks Yarn in this one.
    return cause instanceof Error && 'code' in cause && cause.code === 'MODULE_NOT_FOUND'
  }
}

/** npx installs into a folder of its own, where an `npm install` of the user adds nothing. */
const IS_RUN_BY_NPX = /[\\/]_npx[\\/]/.test(import.meta.url)

/** A package of WebMQ, an optional peer of the server with the same version. */
export interface OptionalPackage {
  readonly packageName: string
  readonly exportName: string
  readonly importPackage: () => Promise<unknown>
}

/**
 * Loads the package of a broker, or of the database outbox.
 * @param user What needs it, for the error: `the broker nats://…`.
 * @returns Its export; `undefined` when it has none of the name.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs it, or the version that belongs to this server.
 */
export async function loadPackage(
  { packageName, exportName, importPackage }: OptionalPackage,
  user: string,
): Promise<unknown> {
  try {
    return ((await importPackage()) as Readonly<Record<string, unknown>>)[exportName]
  } catch (cause) {
    if (!isNotInstalled(cause, packageName))
      throw unfitPackage(packageName, `${user} cannot load ${packageName}: ${reasonOf(cause)}`, cause)
    const message = `${user} needs the package ${packageName}; ${wayToInstall(packageName, IS_RUN_BY_NPX)}`
    throw new WebMQError('E_BROKER_MISSING', { message, cause })
  }
}

/** `E_BROKER_MISSING`, with the command for the version of the package that belongs to this server: all have one version. */
export function unfitPackage(packageName: string, what: string, cause?: unknown): WebMQError {
  const message = `${what}; ${wayToInstall(`${packageName}@${MANIFEST.version}`, IS_RUN_BY_NPX)}`
  return new WebMQError('E_BROKER_MISSING', { message, ...(cause !== undefined && { cause }) })
}

/**
 * @param wanted A package, with a version or without.
 * @param isRunByNpx The server is in npx's cache.
 */
export function wayToInstall(wanted: string, isRunByNpx: boolean): string {
  return isRunByNpx
    ? `start with it: \`npx -p webmq-server -p ${wanted} webmq-server …\``
    : `install it next to webmq-server: \`npm install ${wanted}\``
}

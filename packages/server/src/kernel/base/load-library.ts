import { createRequire } from 'node:module'
import { WebMQError } from 'webmq-client/protocol'
import { MANIFEST } from './manifest.js'
import { unsupportedVersion } from './supported-versions.js'

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

/**
 * Loads the package of a broker, or the library of a database: an optional peer.
 * @param name Its package.
 * @param user What needs it, for the error: `history with NATS (--broker nats://…)`.
 * @param wayToMend What to do when it does not load. Default: nothing helps.
 * @throws {WebMQError} `E_BROKER_MISSING`, with the command that installs it, or a version that is supported.
 */
export async function loadLibrary<Module>(
  name: string,
  user: string,
  importModule: () => Promise<Module>,
  wayToMend?: string,
): Promise<Module> {
  const unsupported = unsupportedVersion(name)
  if (unsupported !== undefined) {
    const { reason, wanted } = unsupported
    throw new WebMQError('E_BROKER_MISSING', {
      message: `${user} needs ${reason}; ${wayToInstall(wanted, IS_RUN_BY_NPX)}`,
    })
  }
  try {
    return await importModule()
  } catch (cause) {
    if (!isNotInstalled(cause, name)) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      const mend = wayToMend === undefined ? '' : `; ${wayToMend}`
      throw new WebMQError('E_BROKER_MISSING', { message: `${user} cannot load ${name}: ${reason}${mend}`, cause })
    }
    throw new WebMQError('E_BROKER_MISSING', {
      message: `${user} needs the package ${name}; ${wayToInstall(name, IS_RUN_BY_NPX)}`,
      cause,
    })
  }
}

/**
 * @param wanted A package, or one with a range in quotes.
 * @param isRunByNpx The server is in npx's cache.
 */
export function wayToInstall(wanted: string, isRunByNpx: boolean): string {
  return isRunByNpx
    ? `start with it: \`npx -p webmq-server -p ${wanted} webmq-server …\``
    : `install it next to webmq-server: \`npm install ${wanted}\``
}

/** How to get the version of another package of WebMQ that belongs to this server: all have one version. */
export function packageOfThisVersion(name: string): string {
  return wayToInstall(`${name}@${MANIFEST.version}`, IS_RUN_BY_NPX)
}

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withFileLock } from './file-lock.js'
import { findProgram } from './find-program.js'
import { ServiceError } from './service-error.js'

const MODULE = 'github.com/Shopify/toxiproxy/v2/cmd/server'
const VERSION = 'v2.12.0'
/** With nothing cached it takes a minute on one core. */
const BUILD_TIMEOUT_MS = 600_000

/**
 * The program of toxiproxy: `toxiproxy-server` on PATH, else built by Go, once, into the cache folder.
 * @throws {ServiceError} with instructions when there is neither.
 */
export async function obtainToxiproxy(): Promise<{ readonly file: string; readonly source: 'binary' | 'package' }> {
  const onPath = findProgram('toxiproxy-server')
  if (onPath !== undefined) return { file: onPath, source: 'binary' }
  const folder = path.join(cacheFolder(), `toxiproxy-${VERSION}`)
  const file = path.join(folder, 'server')
  if (existsSync(file)) return { file, source: 'binary' }
  const go = findProgram('go', ['/usr/local/go/bin'])
  if (go === undefined) {
    throw new ServiceError('faults need toxiproxy: put toxiproxy-server on PATH, or install Go, which builds it')
  }
  await mkdir(folder, { recursive: true })
  await withFileLock(`${folder}.lock`, BUILD_TIMEOUT_MS, async () => {
    if (existsSync(file)) return
    try {
      // Go moves the finished program into place, so nobody sees an incomplete one.
      const env = { ...process.env, GOBIN: folder, GOFLAGS: '' }
      await promisify(execFile)(go, ['install', `${MODULE}@${VERSION}`], { env, timeout: BUILD_TIMEOUT_MS })
    } catch (cause) {
      throw new ServiceError(`toxiproxy could not be built: ${String(cause).slice(-2_000)}`, cause)
    }
  })
  return { file, source: 'package' }
}

/** `.cache` of the repository, or of the home folder for users of the package. */
function cacheFolder(): string {
  const repository = fileURLToPath(new URL('../../..', import.meta.url))
  if (existsSync(path.join(repository, 'pnpm-workspace.yaml'))) return path.join(repository, '.cache')
  return path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'webmq')
}

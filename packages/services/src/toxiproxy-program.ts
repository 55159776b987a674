import { existsSync } from 'node:fs'
import path from 'node:path'
import { cacheFolder } from './cache-folder.js'
import { findProgram } from './find-program.js'
import { findGo, goInstall } from './go-program.js'
import { ServiceError } from './service-error.js'

const PROGRAM = 'github.com/Shopify/toxiproxy/v2/cmd/server'
const VERSION = 'v2.12.0'

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
  const go = findGo()
  if (go === undefined) {
    throw new ServiceError('faults need toxiproxy: put toxiproxy-server on PATH, or install Go, which builds it')
  }
  // It passes a few megabytes on.
  return { file: await goInstall(go, PROGRAM, VERSION, folder, false), source: 'package' }
}
